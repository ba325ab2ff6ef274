// A consumer in Node: prints mails instead of sending them.
//
// Usage: npm install; node consumer.js postgresql://…
//
// Environment, all optional: CONSUMER (its name), CONCURRENCY, LEASE, POLL and GRACE (seconds), LISTEN=no (polls only, as is
// needed behind a pooler in transaction mode).

import pg from 'pg'

const NAME = process.env.CONSUMER ?? 'node'
const CONCURRENCY = Number(process.env.CONCURRENCY ?? 4)
const LEASE = Number(process.env.LEASE ?? 60)
const POLL = Number(process.env.POLL ?? 10)
const GRACE = Number(process.env.GRACE ?? 20)

const CLAIM = `SELECT id, attempt, action_type, payload, context
                 FROM recur.claim($1, action_types => $2, lease => make_interval(secs => $3), consumer => $4)`
const COMPLETE = 'SELECT FROM recur.complete($1, $2, $3)'
const FAIL = 'SELECT FROM recur.fail($1, $2, $3, $4)'
const EXTEND = 'SELECT cancel_requested FROM recur.extend($1, $2, make_interval(secs => $3))'
const RELEASE = 'SELECT FROM recur.release($1, $2)'

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000))

class Permanent extends Error {} // another try would be of no use

const handlers = {
  // stop.aborted, and its event, say that the work is not wanted any more.
  async email({ attempt, payload }, stop) {
    if (payload.to === undefined) throw new Permanent('the payload has no "to"')
    await Promise.race([sleep(payload.seconds ?? 0), aborted(stop)]) // the work
    stop.throwIfAborted()
    console.log(`mail to ${payload.to} (attempt ${attempt})`)
    return { sent_to: payload.to }
  },
}

const aborted = (signal) => new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))

// The pool makes connections again when they are lost; what was asked on a lost one is asked again. The server refuses a
// report that comes too late, or for the second time.
const connectionString = process.argv[2]
const pool = new pg.Pool({ connectionString, max: 2 })
pool.on('error', () => {})

// What is no answer of the server is a broken connection; 57P means that it is going, or not there yet, 08 that a pooler
// has lost it.
const isDisconnected = (error) => !(error instanceof pg.DatabaseError) || /^(57P|08)/.test(error.code)

async function query(sql, ...parameters) {
  for (let pause = 0.1; ; pause = Math.min(pause * 2, 10)) {
    try {
      return (await pool.query(sql, parameters)).rows
    } catch (error) {
      if (!isDisconnected(error)) throw error
      console.error(`no connection: ${error.message}; next try in ${pause} s`)
      await sleep(pause)
    }
  }
}

// The bell: rings when something may be there to be claimed.
let ring = () => {}
let rung = false
const bell = () => { rung = true; ring() }
async function wait(seconds) {
  if (!rung) {
    let timer
    await new Promise((resolve) => { ring = resolve; timer = setTimeout(resolve, seconds * 1000) })
    clearTimeout(timer)
  }
  rung = false
}

async function listen() {
  while (!stopping) {
    const client = new pg.Client({ connectionString })
    try {
      const gone = new Promise((resolve) => { client.on('error', resolve); client.on('end', resolve) })
      await client.connect()
      client.on('notification', bell)
      await client.query('LISTEN recur')
      bell() // there may be something that could not be heard
      await gone
    } catch {
      // Polling goes on meanwhile.
    }
    await client.end().catch(() => {})
    await sleep(1)
  }
}

async function run(dispatch, giveUp) {
  const claim = [dispatch.id, dispatch.attempt]
  const stop = new AbortController()
  const keeper = setInterval(async () => {
    try {
      const [row] = await query(EXTEND, ...claim, LEASE)
      if (row.cancel_requested) stop.abort(new Error('stopped on request'))
    } catch (error) {
      stop.abort(error)
    }
  }, LEASE * 1000 / 3)
  let report
  try {
    const result = await handlers[dispatch.action_type](dispatch, AbortSignal.any([stop.signal, giveUp]))
    report = [COMPLETE, ...claim, JSON.stringify(result)]
  } catch (error) {
    report = giveUp.aborted ? [RELEASE, ...claim] : [FAIL, ...claim, String(error), !(error instanceof Permanent)]
  }
  clearInterval(keeper)
  try {
    await query(...report)
  } catch (error) {
    console.error(`not reported: ${error.message}`) // RC001: this attempt is over, and another one counts
  }
}

let stopping = false
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => { stopping = true; bell() })
if (process.env.LISTEN !== 'no') listen()

const running = new Set()
const giveUp = new AbortController()
while (!stopping) {
  const free = CONCURRENCY - running.size
  if (free > 0) {
    for (const dispatch of await query(CLAIM, free, Object.keys(handlers), LEASE, NAME)) {
      const task = run(dispatch, giveUp.signal).finally(() => { running.delete(task); bell() })
      running.add(task)
    }
  }
  await wait(POLL)
}
// Finish what was begun, or give it back.
await Promise.race([Promise.all(running), sleep(GRACE)])
giveUp.abort()
await Promise.all(running)
console.log('stopped')
process.exit(0)
