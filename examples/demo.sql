\set ON_ERROR_STOP on
CREATE EXTENSION pg_recur;

SELECT recur.create('heartbeat',     '* * * * * *',       provider => 'demo', action_type => 'ping') \g /dev/null
SELECT recur.create('tokyo prices',  '*/5 * * * * *',     provider => 'demo', action_type => 'fetch',
                    payload => '{"market": "TSE"}',  timezone => 'Asia/Tokyo') \g /dev/null
SELECT recur.create('new york news', '2-59/7 * * * * *',  provider => 'demo', action_type => 'fetch',
                    payload => '{"feed": "news"}',   timezone => 'America/New_York') \g /dev/null
SELECT recur.create('morning report', '0 9 * * MON-FRI',  provider => 'demo', action_type => 'email',
                    payload => '{"to": "team"}',     timezone => 'Europe/Berlin') \g /dev/null

-- No consumer: the database runs this one itself.
CREATE TABLE pings (minute timestamptz PRIMARY KEY, heartbeats int NOT NULL);
SELECT recur.create_sql('count heartbeats', '*/4 * * * * *', $$
    INSERT INTO pings
    SELECT date_trunc('minute', scheduled_at), count(*) FROM recur.dispatches WHERE name = 'heartbeat' GROUP BY 1
        ON CONFLICT (minute) DO UPDATE SET heartbeats = EXCLUDED.heartbeats $$) \g /dev/null

\pset footer off
\echo
\echo 'The schedules:'
SELECT name, schedule, timezone, next_run_at AT TIME ZONE timezone AS next_run_there
  FROM recur.recurring_actions
 ORDER BY created_at;
