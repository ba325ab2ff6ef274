// Jobs per second of graphile-worker: node graphile-worker.mjs SOCKETS CONCURRENCY LOCAL_QUEUE|none COUNT
import { run, makeWorkerUtils } from "graphile-worker";
import pg from "pg";

const [sockets, concurrency, localQueue, count] = process.argv.slice(2);
const total = Number(count);
const pool = new pg.Pool({ host: sockets, user: "postgres", database: "bench", max: Number(concurrency) + 2 });

const utils = await makeWorkerUtils({ pgPool: pool });
await utils.migrate();
await pool.query("TRUNCATE graphile_worker._private_jobs");
await pool.query(
  `SELECT count(*) FROM graphile_worker.add_jobs(ARRAY(
     SELECT json_populate_record(NULL::graphile_worker.job_spec, json_build_object(
              'identifier', 'noop', 'payload', json_build_object('n', n, 'text', repeat('x', 270))))
       FROM generate_series(1, $1::int) AS n))`,
  [total],
);
await pool.query("CHECKPOINT");

const preset = {
  worker: localQueue === "none" ? {} : {
    localQueue: { size: Number(localQueue) },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
};
const left = async () => Number((await pool.query("SELECT count(*) FROM graphile_worker._private_jobs")).rows[0].count);
let done = 0;
let finished;
const all = new Promise((resolve) => { finished = resolve; });
const logger = { scope: () => logger, error: console.error, warn() {}, info() {}, debug() {} };
const started = process.hrtime.bigint();
const runner = await run({
  pgPool: pool,
  concurrency: Number(concurrency),
  noHandleSignals: true,
  preset,
  logger: new (await import("graphile-worker")).Logger(() => () => {}),
  taskList: { noop: async () => { if (++done === total) finished(); } },
});
await all;
// Its reports may still be on their way: done is what the table says.
while ((await left()) > 0) await new Promise((resolve) => setTimeout(resolve, 2));
const seconds = Number(process.hrtime.bigint() - started) / 1e9;
await runner.stop();
await pool.end();
console.log(total / seconds);
process.exit(0);
