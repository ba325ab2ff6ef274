// Jobs per second of pg-boss: node pg-boss.mjs SOCKETS CONNECTIONS BATCH COUNT
import PgBoss from "pg-boss";
import pg from "pg";

const [sockets, connections, batch, count] = process.argv.slice(2);
const total = Number(count);
const connection = { host: sockets, user: "postgres", database: "bench" };
const boss = new PgBoss({ ...connection, max: Number(connections), supervise: false, schedule: false });
boss.on("error", (error) => { console.error(error); process.exit(1); });
await boss.start();
const queue = "noop";
await boss.createQueue(queue);
const pool = new pg.Pool({ ...connection, max: 1 });
await boss.purgeQueue(queue);
await pool.query("DELETE FROM pgboss.job");
await pool.query("VACUUM ANALYZE pgboss.job");
await pool.query(
  `INSERT INTO pgboss.job (name, data)
   SELECT 'noop', jsonb_build_object('n', n, 'text', repeat('x', 270)) FROM generate_series(1, $1::int) AS n`,
  [total],
);
await pool.query("CHECKPOINT");

const started = process.hrtime.bigint();
let done = 0;
const consume = async () => {
  for (;;) {
    const jobs = await boss.fetch(queue, { batchSize: Number(batch) });
    if (jobs.length === 0) return;
    await boss.complete(queue, jobs.map((job) => job.id));
    done += jobs.length;
  }
};
await Promise.all(Array.from({ length: Number(connections) }, consume));
const seconds = Number(process.hrtime.bigint() - started) / 1e9;
if (done !== total) throw new Error(`${done} of ${total}`);
await boss.stop({ graceful: false, wait: false });
await pool.end();
console.log(total / seconds);
process.exit(0);
