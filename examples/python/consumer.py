"""A consumer in Python: logs mails and reports instead of sending them.

Usage: pip install -r requirements.txt; python consumer.py "host=… dbname=…"

Environment, all optional: CONSUMER (its name), CONCURRENCY, LEASE, POLL and GRACE (seconds), LISTEN=no (only polls, as
is needed behind a pooler in transaction mode).

Handlers are plain functions that may block: each runs in a thread, while the event loop renews the leases, listens and
reports. A handler is given its dispatch and an event that asks it to stop.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

NAME = os.environ.get("CONSUMER", "python")
CONCURRENCY = int(os.environ.get("CONCURRENCY", 4))
LEASE = float(os.environ.get("LEASE", 60))
POLL = float(os.environ.get("POLL", 10))
GRACE = float(os.environ.get("GRACE", 20))
LISTEN = os.environ.get("LISTEN") != "no"

# Seconds for the last statements before the end. A server that is there answers within milliseconds.
LAST_ANSWER = 2
# Seconds between two attempts to connect.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10
# Find out about a server that has gone silent. The connection string can set others.
TIMEOUTS = {"connect_timeout": 10, "tcp_user_timeout": 30_000, "keepalives_idle": 30, "keepalives_interval": 10}

PROVIDERS = ["mailer"]
CLAIM = """SELECT id, attempt, scheduled_at, tenant, subject, action_type, payload, context
             FROM recur.claim(%s, providers => %s, action_types => %s, lease => make_interval(secs => %s),
                              consumer => %s)"""
COMPLETE = "SELECT status FROM recur.complete(%s, %s, %s)"
FAIL = "SELECT status FROM recur.fail(%s, %s, %s, %s)"
EXTEND = "SELECT status, cancel_requested FROM recur.extend(%s, %s, make_interval(secs => %s))"
RELEASE = "SELECT status FROM recur.release(%s, %s)"

log = logging.getLogger("consumer")


class Permanent(Exception):
    """Another attempt would fail as well."""


def email(dispatch, stop):
    """Mails the payload's `to`; takes as long as its `seconds` say."""
    to = dispatch["payload"].get("to")
    if to is None:
        raise Permanent('the payload has no "to"')
    if stop.wait(dispatch["payload"].get("seconds", 0)):  # the work
        raise InterruptedError("stopped on request")
    log.info("mail to %s%s", to, details(dispatch))
    return {"sent_to": to}


def report(dispatch, stop):
    """Makes the report that is due, for the payload's `to`."""
    log.info("report for %s%s", dispatch["payload"].get("to", "all"), details(dispatch))


def details(dispatch):
    return " (due {scheduled_at}, tenant {tenant}, subject {subject}, attempt {attempt})".format_map(dispatch)


# By action type, or by a pattern such as "task:*".
HANDLERS = {"email": email, "report": report}


class Database:
    """One connection for all statements, replaced whenever it is lost."""

    def __init__(self, conninfo):
        self.conninfo = conninfo
        self.connection = None
        self.connecting = asyncio.Lock()

    async def connect(self):
        # No prepared statements: a pooler in transaction mode may not know them.
        return await psycopg.AsyncConnection.connect(
            **TIMEOUTS | conninfo_to_dict(self.conninfo), autocommit=True, prepare_threshold=None, row_factory=dict_row
        )

    async def connected(self):
        """Returns the connection, as soon as there is one."""
        async with self.connecting:
            pause = FIRST_PAUSE
            while self.connection is None or self.connection.closed:
                try:
                    self.connection = await self.connect()
                except psycopg.OperationalError as error:
                    log.warning("no connection: %s; next attempt in %s s", error, pause)
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, LONGEST_PAUSE)
            return self.connection

    async def query(self, sql, *parameters):
        """Repeats the statement until the server answers. The server refuses a report that is late or repeated."""
        while True:
            connection = await self.connected()
            try:
                return await (await connection.execute(sql, parameters)).fetchall()
            except psycopg.OperationalError as error:
                log.warning("not answered: %s", error)
                await asyncio.sleep(FIRST_PAUSE)


async def listen(database, wakeup):
    """Wakes the consumer when something is due, and after each gap in listening."""
    while True:
        try:
            async with await database.connect() as connection:
                await connection.execute("LISTEN recur")
                wakeup.set()
                async for _ in connection.notifies():
                    wakeup.set()
        except psycopg.OperationalError as error:
            log.warning("not listening: %s", error)
        await asyncio.sleep(1)


async def first(*tasks, timeout=None):
    """Returns when one of the tasks is done. The others go on."""
    await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)


async def within(seconds, coroutine):
    """Like asyncio.wait_for, but does not wait for the coroutine to be cancelled: a silent server would delay that."""
    task = asyncio.create_task(coroutine)
    await first(task, timeout=seconds)
    if not task.done():
        task.cancel()
        raise TimeoutError("the server did not answer in time")
    return task.result()


def handler_of(action_type):
    """The handler of this type, or else of the longest pattern that matches."""
    matching = [key for key in HANDLERS if key.endswith("*") and action_type.startswith(key[:-1])]
    return HANDLERS.get(action_type) or HANDLERS[max(matching, key=len)]


async def run(database, threads, dispatch, give_up):
    """Runs one dispatch: its handler in a thread, its lease renewed, its outcome reported."""
    claim = dispatch["id"], dispatch["attempt"]
    stop = threading.Event()
    handler = handler_of(dispatch["action_type"])
    work = asyncio.get_running_loop().run_in_executor(threads, handler, dispatch, stop)
    work.add_done_callback(asyncio.Future.exception)  # asyncio complains about errors that are never looked at
    keeper = asyncio.create_task(keep_lease(database, claim, stop))
    try:
        await first(work, give_up)
        stop.set()
        await within(LEASE, database.query(*outcome(work, claim)))
    except (psycopg.Error, TimeoutError) as error:
        # RC001: the attempt is over, and another one counts.
        log.error("dispatch %s, attempt %s: not reported: %s", *claim, error)
    finally:
        keeper.cancel()


def outcome(work, claim):
    """Returns the report to send, a statement and its parameters."""
    if not work.done():
        return RELEASE, *claim
    error = work.exception()
    if error is not None:
        return FAIL, *claim, str(error) or repr(error), not isinstance(error, Permanent)
    result = work.result()
    return COMPLETE, *claim, None if result is None else Jsonb(result)


async def keep_lease(database, claim, stop):
    """Renews the lease three times in its length; asks the handler to stop when the lease is lost, or on request."""
    while True:
        await asyncio.sleep(LEASE / 3)
        try:
            [row] = await within(LEASE * 2 / 3, database.query(EXTEND, *claim, LEASE))
        except (psycopg.Error, TimeoutError) as error:
            log.warning("dispatch %s, attempt %s: lease lost: %s", *claim, error)
            stop.set()
            return
        if row["cancel_requested"]:
            stop.set()


async def consume(database, stop, wakeup):
    """Claims and runs until the stop, then lets handlers finish, or releases what they work on."""
    threads = ThreadPoolExecutor(CONCURRENCY)
    give_up = asyncio.get_running_loop().create_future()
    running = set()

    def finished(task):
        running.discard(task)
        wakeup.set()

    while not stop.done():
        wakeup.clear()
        for dispatch in await claim(database, CONCURRENCY - len(running), stop):
            task = asyncio.create_task(run(database, threads, dispatch, give_up))
            running.add(task)
            task.add_done_callback(finished)
        waiting = asyncio.create_task(wakeup.wait())
        await first(waiting, stop, timeout=POLL)
        waiting.cancel()
    if running:
        await asyncio.wait(running, timeout=GRACE)
    give_up.set_result(None)
    if running:
        await asyncio.wait(running, timeout=LAST_ANSWER)
    if running:
        log.error("%s dispatches not reported; their leases will expire", len(running))


async def claim(database, limit, stop):
    """Claims at most this many dispatches. A stop ends the wait for a server that can't be reached."""
    if limit == 0:
        return []
    connecting = asyncio.create_task(database.connected())
    await first(connecting, stop)
    if stop.done():
        connecting.cancel()
        return []
    claiming = asyncio.create_task(database.query(CLAIM, limit, PROVIDERS, list(HANDLERS), LEASE, NAME))
    await first(claiming, stop)
    # The server may carry out a claim that it has received: wait a moment for the answer.
    await first(claiming, timeout=LAST_ANSWER if stop.done() else 0)
    if not claiming.done():
        return []
    if claiming.exception() is not None:
        log.error("claim failed: %s", claiming.exception())
        return []
    return claiming.result()


async def main(conninfo):
    stopping, wakeup = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    database = Database(conninfo)
    listener = asyncio.create_task(listen(database, wakeup)) if LISTEN else None
    await consume(database, asyncio.create_task(stopping.wait()), wakeup)
    if listener is not None:
        listener.cancel()
        await first(listener, timeout=LAST_ANSWER)
    if database.connection is not None:
        await database.connection.close()
    print("stopped", flush=True)
    # A thread that blocks can't be ended, and a normal exit would wait for it.
    os._exit(0)


if __name__ == "__main__":
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO)
    asyncio.run(main(sys.argv[1]))
