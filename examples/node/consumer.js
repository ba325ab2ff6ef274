// A consumer in Node: prints mails and reports instead of sending them.
//
// Usage: npm install; node consumer.js postgresql://…
//
// Environment, all optional: CONSUMER (its name), CONCURRENCY, LEASE, POLL and GRACE (seconds), LISTEN=no (only polls,
// as is needed behind a pooler in transaction mode).
//
// Handlers share one thread with everything else. Long computations belong into a worker thread (node:worker_threads):
// a blocked event loop renews no leases.

import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

const NAME = process.env.CONSUMER ?? 'node'
const CONCURRENCY = Number(process.env.CONCURRENCY ?? 4)
const LEASE = Number(process.env.LEASE ?? 60) * 1000
const POLL = Number(process.env.POLL ?? 10) * 1000
const GRACE = Number(process.env.GRACE ?? 20) * 1000
const LISTEN = process.env.LISTEN !== 'no'

// For the last statements before the end. A server that is there answers within milliseconds.
const LAST_ANSWER = 2000
// Between two attempts to connect.
const FIRST_PAUSE = 100
const LONGEST_PAUSE = 10_000

const PROVIDERS = ['mailer']
const CLAIM = `SELECT id, attempt, scheduled_at, tenant, subject, action_type, payload, context
                 FROM recur.claim($1, providers => $2, action_types => $3, lease => make_interval(secs => $4),
                                  consumer => $5)`
const COMPLETE = 'SELECT status FROM recur.complete($1, $2, $3)'
const FAIL = 'SELECT status FROM recur.fail($1, $2, $3, $4)'
const EXTEND = 'SELECT status, cancel_requested FROM recur.extend($1, $2, make_interval(secs => $3))'
const RELEASE = 'SELECT status FROM recur.release($1, $2)'

class Permanent extends Error {} // another attempt would fail as well

// By action type, or by a pattern such as 'task:*'. A handler is given its dispatch and an AbortSignal that asks it to
// stop.
const handlers = {
  // Mails the payload's `to`; takes as long as its `seconds` say.
  async email(dispatch, signal) {
    const { to, seconds = 0 } = dispatch.payload
    if (to === undefined) throw new Permanent('the payload has no "to"')
    await sleep(seconds * 1000, undefined, { signal }) // the work
    console.log(`mail to ${to}${details(dispatch)}`)
    return { sent_to: to }
  },

  // Makes the report that is due, for the payload's `to`.
  async report(dispatch) {
    console.log(`report for ${dispatch.payload.to ?? 'all'}${details(dispatch)}`)
  },
}

const details = ({ scheduled_at, tenant, subject, attempt }) =>
  ` (due ${scheduled_at.toISOString()}, tenant ${tenant}, subject ${subject}, attempt ${attempt})`

// A signal to the process stops claims. After the grace, handlers that still run are left behind.
const stop = new AbortController()
const giveUp = new AbortController()

const options = {
  connectionString: process.argv[2],
  // These find out about a server that has gone silent.
  connectionTimeoutMillis: 10_000,
  query_timeout: 30_000,
  keepAlive: true,
  keepAliveInitialDelayMillis: 30_000,
}
// The pool replaces connections that are lost.
const pool = new pg.Pool({ ...options, max: 2 })
pool.on('error', (error) => console.error(`connection lost: ${error.message}`))

// An error that the server has not sent is a broken connection. Class 57P means that the server starts up or shuts
// down, class 08 that a pooler has no server.
const isDisconnected = (error) => !(error instanceof pg.DatabaseError) || /^(57P|08)/.test(error.code)

// Repeats the statement until the server answers, or until the signal. The server refuses a report that is late or
// repeated.
async function query(signal, sql, ...parameters) {
  for (let pause = FIRST_PAUSE; ; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
    try {
      const { rows } = await answer(pool.query(sql, parameters), signal)
      return rows
    } catch (error) {
      if (signal.aborted || !isDisconnected(error)) throw error
      console.error(`no connection: ${error.message}; next attempt in ${pause} ms`)
    }
    await sleep(pause, undefined, { signal })
  }
}

// Waits for an answer, after the signal only a moment longer: the server may carry out what it has received.
function answer(promise, signal) {
  return new Promise((resolve, reject) => {
    let timer
    const limit = () => {
      timer = setTimeout(() => reject(new Error('the server did not answer in time')), LAST_ANSWER)
    }
    if (signal.aborted) limit()
    signal.addEventListener('abort', limit, { once: true })
    promise.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', limit)
    })
  })
}

// Ends the pause between two claims: something may be due, a handler has finished, or the consumer stops.
let wakeup = new AbortController()
const wake = () => wakeup.abort()

async function idle() {
  await sleep(POLL, undefined, { signal: wakeup.signal }).catch(() => {})
  wakeup = new AbortController()
}

// Wakes the consumer when something is due, and after each gap in listening.
async function listen() {
  for (;;) {
    const client = new pg.Client(options)
    const gone = new Promise((resolve) => client.on('error', resolve).on('end', resolve))
    try {
      await client.connect()
      client.on('notification', wake)
      await client.query('LISTEN recur')
      wake()
      await gone
      console.error('not listening: connection lost')
    } catch (error) {
      console.error(`not listening: ${error.message}`)
    }
    client.end().catch(() => {})
    await sleep(1000)
  }
}

async function claim(limit) {
  if (limit === 0) return []
  try {
    return await query(stop.signal, CLAIM, limit, PROVIDERS, Object.keys(handlers), LEASE / 1000, NAME)
  } catch (error) {
    if (!stop.signal.aborted) console.error(`claim failed: ${error.message}`)
    return []
  }
}

// Runs one dispatch: its handler works, its lease is renewed, its outcome is reported.
async function run(dispatch) {
  const attempt = [dispatch.id, dispatch.attempt]
  const work = new AbortController()
  const finished = new AbortController()
  const left = new Promise((resolve) => {
    const leave = () => {
      resolve([RELEASE])
      work.abort(new Error('the consumer stops'))
    }
    giveUp.signal.addEventListener('abort', leave, { once: true, signal: finished.signal })
  })
  keepLease(attempt, work, finished.signal)
  const [report, ...parameters] = await Promise.race([handle(dispatch, work.signal), left])
  finished.abort()
  try {
    await query(giveUp.signal, report, ...attempt, ...parameters)
  } catch (error) {
    // RC001: the attempt is over, and another one counts.
    console.error(`dispatch ${dispatch.id}, attempt ${dispatch.attempt}: not reported: ${error.message}`)
  }
}

// The handler of this type, or else of the longest pattern that matches.
function handlerOf(actionType) {
  const matches = (key) => key.endsWith('*') && actionType.startsWith(key.slice(0, -1))
  const longest = Object.keys(handlers).filter(matches).sort((a, b) => b.length - a.length)[0]
  return handlers[actionType] ?? handlers[longest]
}

// Returns the report to send and what it says.
async function handle(dispatch, signal) {
  try {
    const result = await handlerOf(dispatch.action_type)(dispatch, signal)
    return [COMPLETE, result === undefined ? null : JSON.stringify(result)]
  } catch (error) {
    const reason = signal.aborted ? signal.reason : error
    return [FAIL, reason.message ?? String(reason), !(error instanceof Permanent)]
  }
}

// Renews the lease three times in its length; asks the handler to stop when the lease is lost, or on request.
async function keepLease(attempt, work, finished) {
  const expiry = setTimeout(() => work.abort(new Error('the lease has expired')), LEASE)
  try {
    for (;;) {
      await sleep(LEASE / 3, undefined, { signal: finished })
      const [row] = await query(finished, EXTEND, ...attempt, LEASE / 1000)
      expiry.refresh()
      if (row.cancel_requested) work.abort(new Error('stopped on request'))
    }
  } catch (error) {
    work.abort(error) // without effect when the handler has finished
  } finally {
    clearTimeout(expiry)
  }
}

for (const name of ['SIGTERM', 'SIGINT']) {
  process.on(name, () => {
    stop.abort()
    wake()
  })
}
if (LISTEN) listen()
const running = new Set()
while (!stop.signal.aborted) {
  for (const dispatch of await claim(CONCURRENCY - running.size)) {
    const task = run(dispatch).finally(() => {
      running.delete(task)
      wake()
    })
    running.add(task)
  }
  await idle()
}
setTimeout(() => giveUp.abort(), GRACE)
await Promise.all(running)
console.log('stopped')
// Neither a listener nor a handler that was left behind delays the end.
process.exit(0)
