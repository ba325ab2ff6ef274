//! What can go wrong, and how it is brought about.

use super::load::pause;
use super::post::LEASE_SECONDS;
use super::world::World;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pg_recur_tests::dice::Dice;
use pg_recur_tests::workers::session_after_kill;
use pg_recur_tests::{Disk, Disks, Session, Shutdown, eventually};
use std::thread::JoinHandle;

/// Declares the faults, with their names.
macro_rules! faults {
    ($($fault:ident = $name:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault { $($fault,)* }

        impl Fault {
            pub const ALL: &[Fault] = &[$(Fault::$fault,)*];

            pub fn name(self) -> &'static str {
                match self { $(Fault::$fault => $name,)* }
            }
        }
    };
}

faults! {
    KillDispatcher = "kill -9 of a dispatcher",
    TerminateDispatcher = "SIGTERM to a dispatcher",
    StopDispatcher = "SIGSTOP of a dispatcher",
    KillExecutor = "kill -9 of an executor",
    TerminateExecutor = "SIGTERM to an executor",
    KillLauncher = "kill -9 of the launcher",
    TerminateLauncher = "SIGTERM to the launcher",
    KillBackend = "kill -9 of a consumer's backend",
    TerminateBackend = "SIGTERM to a consumer's backend",
    KillConsumer = "kill -9 of a consumer",
    StopConsumer = "SIGSTOP of a consumer, past its lease",
    KillPostmaster = "kill -9 of the postmaster",
    ImmediateStop = "immediate stop",
    FastStop = "fast stop",
    FailOver = "promotion of a standby, the primary gone",
    ClockForward = "clock set forward",
    ClockBack = "clock set back",
    FullData = "full disk: tables",
    FullWal = "full disk: WAL",
    Connections = "no connections left",
    WorkerSlots = "no worker slots left",
    RowLocks = "row locks held",
    TableLocks = "table locks held (ACCESS SHARE)",
    Snapshot = "snapshot held",
    IdleClaim = "claim in an idle transaction",
}

/// Those that go well with any other.
const BESIDE: [Fault; 4] = [
    Fault::RowLocks,
    Fault::TableLocks,
    Fault::Snapshot,
    Fault::IdleClaim,
];

/// What a fault has to undo.
pub enum Ongoing {
    Nothing,
    /// Sessions that end, and with them their transactions.
    Sessions(Vec<Session>),
    /// A process that goes on.
    Stopped(i32),
    FullDisk(fn(&Disks) -> &Disk),
    /// A query that has a time limit.
    Query(JoinHandle<()>),
    /// A transaction that is committed.
    Commit(Box<Session>),
}

impl Fault {
    pub fn any(dice: &mut Dice) -> Fault {
        loop {
            let fault = Fault::ALL[dice.roll(Fault::ALL.len() as u64) as usize];
            if fault.unavailable().is_none() {
                return fault;
            }
        }
    }

    /// One that goes well with any other.
    pub fn beside(dice: &mut Dice) -> Fault {
        BESIDE[dice.roll(BESIDE.len() as u64) as usize]
    }

    /// Why it can't happen here.
    pub fn unavailable(self) -> Option<&'static str> {
        match self {
            Fault::FullData | Fault::FullWal => Disks::unavailable(),
            _ => None,
        }
    }

    pub fn begin(self, world: &mut World, dice: &mut Dice) -> Ongoing {
        match self {
            Fault::KillDispatcher => kill_one(world, dice, DISPATCHER),
            Fault::KillExecutor => kill_one(world, dice, EXECUTOR),
            Fault::KillLauncher => kill_one(world, dice, LAUNCHER),
            Fault::KillBackend => kill_one(world, dice, CONSUMER_BACKEND),
            Fault::TerminateDispatcher => terminate(world, dice, DISPATCHER),
            Fault::TerminateExecutor => terminate(world, dice, EXECUTOR),
            Fault::TerminateLauncher => terminate(world, dice, LAUNCHER),
            Fault::TerminateBackend => terminate(world, dice, CONSUMER_BACKEND),
            Fault::StopDispatcher => stop_dispatcher(world, dice),
            Fault::KillConsumer | Fault::StopConsumer => self.hit_consumer(world, dice),
            Fault::KillPostmaster => outage(world, dice, Shutdown::Kill),
            Fault::ImmediateStop => outage(world, dice, Shutdown::Immediate),
            Fault::FastStop => outage(world, dice, Shutdown::Fast),
            Fault::FailOver => fail_over(world, dice),
            Fault::ClockForward => step_clock(world, 1 + dice.roll(20) as i64),
            Fault::ClockBack => step_clock(world, -1 - dice.roll(3) as i64),
            Fault::FullData => fill(world, |disks| &disks.data),
            Fault::FullWal => fill_wal(world),
            Fault::Connections => use_up_connections(world, dice),
            Fault::WorkerSlots => use_up_worker_slots(world, dice),
            Fault::RowLocks => lock_rows(world, dice),
            Fault::TableLocks => lock_tables(world),
            Fault::Snapshot => hold_snapshot(world, dice),
            Fault::IdleClaim => claim_and_idle(world, dice),
        }
    }

    fn hit_consumer(self, world: &mut World, dice: &mut Dice) -> Ongoing {
        let consumer = dice.roll(world.post.number() as u64) as usize;
        if self == Fault::KillConsumer {
            world.post.signal(consumer, Signal::SIGKILL);
            world.post.replace(consumer);
        } else {
            world.post.signal(consumer, Signal::SIGSTOP);
            pause(LEASE_SECONDS * 1_000 + dice.roll(500));
            world.post.signal(consumer, Signal::SIGCONT);
        }
        Ongoing::Nothing
    }
}

impl Ongoing {
    /// The fault is over.
    pub fn end(self, world: &mut World) {
        match self {
            Ongoing::Nothing => {}
            Ongoing::Sessions(sessions) => drop(sessions),
            Ongoing::Stopped(pid) => signal(pid, Signal::SIGCONT),
            Ongoing::FullDisk(disk) => {
                disk(world.cluster.disks().expect("disks")).free();
                world.cluster.revive();
            }
            Ongoing::Query(thread) => thread.join().expect("the query"),
            Ongoing::Commit(mut session) => {
                // Another fault may have ended it.
                let _ = session.0.batch_execute("COMMIT");
            }
        }
    }
}

const DISPATCHER: &str = "backend_type = 'pg_recur dispatcher' AND datname = 'app'";
const EXECUTOR: &str = "backend_type = 'pg_recur executor' AND datname = 'app'";
const LAUNCHER: &str = "backend_type = 'pg_recur launcher'";
const CONSUMER_BACKEND: &str = "backend_type = 'client backend' AND datname = 'app'
                                AND application_name NOT IN ('pg_recur-tests', 'pg_recur-tests load')";

/// One of these processes, if there is one this moment.
fn pick(session: &mut Session, dice: &mut Dice, which: &str) -> Option<i32> {
    let sql = format!("SELECT pid FROM pg_stat_activity WHERE {which} ORDER BY pid");
    let pids: Vec<i32> = session.column(&sql, &[]);
    (!pids.is_empty()).then(|| pids[dice.roll(pids.len() as u64) as usize])
}

/// It may have ended meanwhile.
fn signal(pid: i32, signal: Signal) {
    let _ = kill(Pid::from_raw(pid), signal);
}

fn kill_one(world: &World, dice: &mut Dice, which: &str) -> Ongoing {
    if let Some(pid) = pick(&mut world.session(), dice, which) {
        signal(pid, Signal::SIGKILL);
        drop(session_after_kill(&world.cluster, "app", pid));
    }
    Ongoing::Nothing
}

fn terminate(world: &World, dice: &mut Dice, which: &str) -> Ongoing {
    let mut session = world.session();
    if let Some(pid) = pick(&mut session, dice, which) {
        signal(pid, Signal::SIGTERM);
        eventually("it ends", || {
            session.count(&format!("pg_stat_activity WHERE pid = {pid}")) == 0
        });
    }
    Ongoing::Nothing
}

fn stop_dispatcher(world: &World, dice: &mut Dice) -> Ongoing {
    let Some(pid) = pick(&mut world.session(), dice, DISPATCHER) else {
        return Ongoing::Nothing;
    };
    signal(pid, Signal::SIGSTOP);
    pause(dice.roll(2_000));
    Ongoing::Stopped(pid)
}

fn outage(world: &mut World, dice: &mut Dice, shutdown: Shutdown) -> Ongoing {
    world.outage(shutdown, dice.roll(1_500));
    Ongoing::Nothing
}

fn fail_over(world: &mut World, dice: &mut Dice) -> Ongoing {
    let shutdown = [Shutdown::Kill, Shutdown::Immediate][dice.roll(2) as usize];
    world.fail_over(shutdown);
    Ongoing::Nothing
}

fn step_clock(world: &mut World, seconds: i64) -> Ongoing {
    world.step_clock(seconds);
    Ongoing::Nothing
}

fn fill(world: &World, disk: fn(&Disks) -> &Disk) -> Ongoing {
    disk(world.cluster.disks().expect("disks")).fill();
    Ongoing::FullDisk(disk)
}

/// Segments that were made in advance are used up, until one is missing and the server crashes.
fn fill_wal(world: &World) -> Ongoing {
    let mut session = world.session();
    let full = fill(world, |disks| &disks.wal);
    let switch =
        "SELECT pg_switch_wal(), pg_logical_emit_message(false, 'chaos', 'something to write')";
    for _ in 0..50 {
        if session.0.query(switch, &[]).is_err() {
            break;
        }
    }
    full
}

/// The slots for superusers too; and a consumer needs a new connection.
fn use_up_connections(world: &World, dice: &mut Dice) -> Ongoing {
    let mut session = world.session();
    let mut sessions = Vec::new();
    while let Some(one) = world.cluster.try_connect("app") {
        sessions.push(one);
    }
    if let Some(pid) = pick(&mut session, dice, CONSUMER_BACKEND) {
        signal(pid, Signal::SIGTERM);
        while let Some(one) = world.cluster.try_connect("app") {
            sessions.push(one);
        }
    }
    pause(dice.roll(800));
    Ongoing::Sessions(sessions)
}

/// A parallel query takes all that are left, and a worker needs a new one.
fn use_up_worker_slots(world: &World, dice: &mut Dice) -> Ongoing {
    let mut session = world.session();
    session.batch(
        "SET statement_timeout = '1500ms'; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;
         SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 14",
    );
    let mut observer = world.session();
    let query = std::thread::spawn(move || {
        let asleep = "SELECT count(pg_sleep(0.05)) FROM public.filler";
        let _ = session.0.batch_execute(asleep);
    });
    eventually("the query takes worker slots", || {
        query.is_finished()
            || observer.count("pg_stat_activity WHERE backend_type = 'parallel worker'") > 0
    });

    if let Some(pid) = pick(&mut observer, dice, DISPATCHER) {
        signal(pid, Signal::SIGTERM);
    }
    Ongoing::Query(query)
}

/// Of one table, some or all. Rows that are locked already are left out: another such session may hold them.
fn lock_rows(world: &World, dice: &mut Dice) -> Ongoing {
    let mut session = world.session();
    let table = ["timers", "live_dispatches", "progress", "definitions"][dice.roll(4) as usize];
    let share = [0.2, 1.0][dice.roll(2) as usize];
    session.batch(&format!(
        "BEGIN;
         SELECT count(*) FROM (SELECT FROM recur_internal.{table} WHERE random() < {share}
                                  FOR UPDATE SKIP LOCKED) AS locked"
    ));
    Ongoing::Sessions(vec![session])
}

fn lock_tables(world: &World) -> Ongoing {
    let mut session = world.session();
    session.batch(
        "BEGIN; DO $$ DECLARE name text; BEGIN
             FOR name IN SELECT oid::regclass FROM pg_class
                          WHERE relnamespace = 'recur_internal'::regnamespace AND relkind IN ('r', 'p') LOOP
                 EXECUTE 'LOCK TABLE ' || name || ' IN ACCESS SHARE MODE';
             END LOOP; END $$",
    );
    Ongoing::Sessions(vec![session])
}

/// For this round, or for some more.
fn hold_snapshot(world: &mut World, dice: &mut Dice) -> Ongoing {
    let mut session = world.session();
    session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM recur.dispatches");
    world.snapshots.truncate(dice.roll(3) as usize);
    if dice.roll(2) == 0 {
        world.snapshots.insert(0, session);
        return Ongoing::Nothing;
    }
    Ongoing::Sessions(vec![session])
}

/// In the end it is rolled back, or committed and never reported.
fn claim_and_idle(world: &World, dice: &mut Dice) -> Ongoing {
    let mut session = world.session();
    session.batch(
        "BEGIN; SELECT count(*) FROM recur.claim(10, lease => '1 second', consumer => 'idle in transaction')",
    );
    match dice.roll(2) {
        0 => Ongoing::Commit(Box::new(session)),
        _ => Ongoing::Sessions(vec![session]),
    }
}
