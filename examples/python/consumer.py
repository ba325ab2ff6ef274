"""A consumer in Python: prints mails instead of sending them.

Usage: pip install -r requirements.txt; python consumer.py "host=… dbname=…"

Environment, all optional: CONSUMER (its name), CONCURRENCY, LEASE, POLL and GRACE (seconds), LISTEN=no (polls only, as is
needed behind a pooler in transaction mode).
"""

import asyncio
import os
import signal
import sys

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

NAME = os.environ.get("CONSUMER", "python")
CONCURRENCY = int(os.environ.get("CONCURRENCY", 4))
LEASE = float(os.environ.get("LEASE", 60))
POLL = float(os.environ.get("POLL", 10))
LISTEN = os.environ.get("LISTEN") != "no"
GRACE = float(os.environ.get("GRACE", 20))

CLAIM = """SELECT id, attempt, action_type, payload, context
             FROM recur.claim(%s, action_types => %s, lease => make_interval(secs => %s), consumer => %s)"""
COMPLETE = "SELECT FROM recur.complete(%s, %s, %s)"
FAIL = "SELECT FROM recur.fail(%s, %s, %s, %s)"
EXTEND = "SELECT cancel_requested FROM recur.extend(%s, %s, make_interval(secs => %s))"
RELEASE = "SELECT FROM recur.release(%s, %s)"


class Permanent(Exception):
    """Another try would be of no use."""


async def email(dispatch):
    to = dispatch["payload"].get("to")
    if to is None:
        raise Permanent('the payload has no "to"')
    await asyncio.sleep(dispatch["payload"].get("seconds", 0))  # the work
    print(f"mail to {to} (attempt {dispatch['attempt']})", flush=True)
    return {"sent_to": to}


HANDLERS = {"email": email}


class Database:
    """One connection, made again whenever it is lost."""

    def __init__(self, url):
        self.url, self.connection, self.lock = url, None, asyncio.Lock()

    async def connect(self):
        # prepare_threshold: a pooler in transaction mode knows no prepared statements.
        return await psycopg.AsyncConnection.connect(
            self.url, autocommit=True, prepare_threshold=None, row_factory=dict_row)

    async def query(self, sql, *parameters):
        """Asks until it is answered. The server refuses a report that comes too late, or for the second time."""
        pause = 0.1
        while True:
            try:
                async with self.lock:
                    if self.connection is None or self.connection.closed:
                        self.connection = await self.connect()
                    return await (await self.connection.execute(sql, parameters)).fetchall()
            except psycopg.OperationalError as error:
                # A broken connection knows it; the next one to ask makes a new one.
                print(f"no connection: {error}; next try in {pause} s", file=sys.stderr)
                await asyncio.sleep(pause)
                pause = min(pause * 2, 10)


async def listen(database, bell):
    """Rings the bell when something is due, and after each time that this could not be heard."""
    while True:
        try:
            async with await database.connect() as connection:
                await connection.execute("LISTEN recur")
                bell.set()
                async for _ in connection.notifies():
                    bell.set()
        except psycopg.OperationalError:
            await asyncio.sleep(1)


async def keep_lease(database, dispatch, work):
    """Renews the lease while the work goes on, and ends the work if it can't, or if somebody asks for it."""
    while True:
        await asyncio.sleep(LEASE / 3)
        try:
            rows = await database.query(EXTEND, dispatch["id"], dispatch["attempt"], LEASE)
        except psycopg.Error as error:
            work.cancel(f"lost: {error}")
            return
        if rows[0]["cancel_requested"]:
            work.cancel("stopped on request")
            return


async def run(database, dispatch, stopping):
    claim = dispatch["id"], dispatch["attempt"]
    work = asyncio.ensure_future(HANDLERS[dispatch["action_type"]](dispatch))
    keeper = asyncio.ensure_future(keep_lease(database, dispatch, work))
    try:
        try:
            report = COMPLETE, *claim, Jsonb(await work)
        except Permanent as error:
            report = FAIL, *claim, str(error), False
        except asyncio.CancelledError as reason:
            work.cancel()
            report = (RELEASE, *claim) if stopping.is_set() else (FAIL, *claim, str(reason), True)
        except Exception as error:  # whatever it was, the dispatch must hear of it
            report = FAIL, *claim, repr(error), True
        await asyncio.wait_for(database.query(*report), LEASE)
    except (psycopg.Error, asyncio.TimeoutError) as error:
        # RC001: this attempt is over, and another one counts.
        print(f"not reported: {error}", file=sys.stderr, flush=True)
    finally:
        keeper.cancel()


async def main(url):
    stopping, bell = asyncio.Event(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, lambda: (stopping.set(), bell.set()))
    database, running = Database(url), set()
    listener = asyncio.ensure_future(listen(database, bell)) if LISTEN else None
    while not stopping.is_set():
        bell.clear()
        free = CONCURRENCY - len(running)
        if free:
            claimed = await database.query(CLAIM, free, list(HANDLERS), LEASE, NAME)
            for dispatch in claimed:
                task = asyncio.ensure_future(run(database, dispatch, stopping))
                running.add(task)
                task.add_done_callback(lambda task: (running.discard(task), bell.set()))
        try:
            await asyncio.wait_for(bell.wait(), POLL)
        except asyncio.TimeoutError:
            pass
    # Finish what was begun, or give it back.
    if running:
        _, unfinished = await asyncio.wait(running, timeout=GRACE)
        for task in unfinished:
            task.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
    if listener is not None:
        listener.cancel()
    print("stopped", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
