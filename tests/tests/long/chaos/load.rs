//! What goes on while faults happen: letters are sent, and accounts are kept in the database itself.

use postgres::{Client, NoTls};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// What a failed attempt waits: nothing that a round would notice.
pub const BACKOFF: &str = r#"{"base": "100 milliseconds", "factor": 1, "cap": "1 second"}"#;
/// An attempt is lost with every crash; none may be the last.
pub const ATTEMPTS: i32 = 1_000;

pub fn pause(milliseconds: u64) {
    thread::sleep(Duration::from_millis(milliseconds));
}

/// What the threads share with the test.
struct Shared {
    /// The folder of the server's socket; a link, which follows a failover.
    host: PathBuf,
    stop: AtomicBool,
    letters: Mutex<Letters>,
    /// While a clock that was set back catches up, nothing is edited: an edit counts from the clock's now, and
    /// occurrences that were skipped before would be due once more.
    edits_from: Mutex<Instant>,
}

/// Letters by number.
#[derive(Clone, Default)]
pub struct Letters {
    /// How many were sent, with or without an answer.
    pub sent: i64,
    /// Those that the server has confirmed, with the dispatch of each.
    pub confirmed: BTreeMap<i64, Uuid>,
}

/// Threads that are joined when this is dropped.
pub struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Letters are sent by hand for these actions too.
    pub fn start(host: PathBuf, actions: Vec<Uuid>) -> Load {
        let shared = Arc::new(Shared {
            host,
            stop: AtomicBool::new(false),
            letters: Mutex::default(),
            edits_from: Mutex::new(Instant::now()),
        });
        let (sender, editor) = (Arc::clone(&shared), Arc::clone(&shared));
        let edited = actions.clone();
        let mut threads = vec![
            thread::spawn(move || send_letters(&sender, &actions)),
            thread::spawn(move || edit(&editor, &edited)),
        ];
        for keeper in [keep_in_one_transaction as Keeper, keep_in_two_transactions] {
            let shared = Arc::clone(&shared);
            threads.push(thread::spawn(move || keep_accounts(&shared, keeper)));
        }
        Load { shared, threads }
    }

    /// Runs `set_back`, which sets the clock back by as much as `by`. Nothing is edited until the clock has caught up.
    pub fn without_edits(&self, by: Duration, set_back: impl FnOnce()) {
        let mut edits_from = self.shared.edits_from.lock().expect("no panic meanwhile");
        set_back();
        let now = Instant::now();
        *edits_from = now.max(*edits_from) + by + Duration::from_millis(500);
    }

    pub fn letters(&self) -> Letters {
        self.shared.letters.lock().expect("letters").clone()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Calls `work` with a connection until the end, and replaces the connection after each error.
    fn repeat(&self, mut work: impl FnMut(&mut Client) -> Result<(), postgres::Error>) {
        let mut client = None;
        while !self.stop.load(Ordering::Relaxed) {
            let Some(connected) = client.as_mut() else {
                client = self.connect();
                pause(20);
                continue;
            };
            if work(connected).is_err() {
                client = None;
            }
        }
    }

    fn connect(&self) -> Option<Client> {
        let mut client = postgres::Config::new()
            .host_path(&self.host)
            .user("postgres")
            .dbname("app")
            .application_name("pg_recur-tests load")
            .connect(NoTls)
            .ok()?;
        // Nothing here waits long for a lock: a session that waited for ever would never see the end.
        client.batch_execute("SET statement_timeout = '20s'").ok()?;
        Some(client)
    }
}

/// By turns enqueued and triggered, for the consumers and for the keepers of accounts.
fn send_letters(shared: &Shared, actions: &[Uuid]) {
    shared.repeat(|client| {
        let number = {
            let mut letters = shared.letters.lock().expect("letters");
            letters.sent += 1;
            letters.sent
        };
        let payload = serde_json::json!({
            "to": format!("letter {number}"), "letter": number, "seconds": (number % 5) as f64 / 5.0
        });
        let row = match number % 3 {
            0 => client.query_one(
                "SELECT recur.trigger($1::uuid, $2)",
                &[&actions[number as usize / 3 % actions.len()], &payload],
            ),
            turn => client.query_one(
                "SELECT recur.enqueue($1, 'email', $2, max_attempts => $3, retry_backoff => $4::text::jsonb)",
                &[&["", "mailer", "ledger"][turn as usize], &payload, &ATTEMPTS, &BACKOFF],
            ),
        };
        let id = row?.get(0);
        let mut letters = shared.letters.lock().expect("letters");
        letters.confirmed.insert(number, id);
        drop(letters);
        pause(40);
        Ok(())
    });
}

/// Changes what has no influence on the occurrences, and pauses and resumes at once. Either withdraws dispatches that
/// are staged.
fn edit(shared: &Shared, actions: &[Uuid]) {
    let mut number = 0;
    shared.repeat(|client| {
        number += 1;
        let action = actions[number * 7 % actions.len()];
        let edits_from = shared.edits_from.lock().expect("no panic meanwhile");
        if *edits_from > Instant::now() {
            drop(edits_from);
            pause(70);
            return Ok(());
        }
        let mut transaction = client.transaction()?;
        // A test that sets the clock back waits for this transaction, and may hold locks.
        transaction.batch_execute("SET LOCAL lock_timeout = '500ms'")?;
        if number % 2 == 0 {
            let changes = serde_json::json!({ "priority": number / 2 % 3 });
            transaction.execute("SELECT recur.update($1::uuid, $2)", &[&action, &changes])?;
        } else {
            transaction.execute("SELECT recur.pause($1::uuid)", &[&action])?;
            transaction.execute("SELECT recur.resume($1::uuid)", &[&action])?;
        }
        transaction.commit()?;
        drop(edits_from);
        pause(70);
        Ok(())
    });
}

/// Claims, enters and completes; returns how many.
type Keeper = fn(&mut Client) -> Result<usize, postgres::Error>;

fn keep_accounts(shared: &Shared, keeper: Keeper) {
    shared.repeat(|client| {
        if keeper(client)? == 0 {
            pause(50);
        }
        Ok(())
    });
}

const CLAIM: &str = "
    SELECT id, attempt
      FROM recur.claim(4, providers => '{ledger}', lease => '2 seconds', consumer => 'ledger')";
const ENTER: &str = "INSERT INTO public.entries (dispatch, attempt) VALUES ($1, $2)";
const COMPLETE: &str = "SELECT status FROM recur.complete($1, $2)";

/// The claim, the effect and the report commit together.
fn keep_in_one_transaction(client: &mut Client) -> Result<usize, postgres::Error> {
    let mut transaction = client.transaction()?;
    let claimed = transaction.query(CLAIM, &[])?;
    for row in &claimed {
        let (id, attempt): (Uuid, i32) = (row.get(0), row.get(1));
        transaction.execute(ENTER, &[&id, &attempt])?;
        transaction.execute(COMPLETE, &[&id, &attempt])?;
    }
    transaction.commit()?;
    Ok(claimed.len())
}

/// The claim commits first; the effect and the report commit together.
fn keep_in_two_transactions(client: &mut Client) -> Result<usize, postgres::Error> {
    let claimed = client.query(CLAIM, &[])?;
    for row in &claimed {
        let (id, attempt): (Uuid, i32) = (row.get(0), row.get(1));
        let mut transaction = client.transaction()?;
        transaction.execute(ENTER, &[&id, &attempt])?;
        transaction.execute(COMPLETE, &[&id, &attempt])?;
        transaction.commit()?;
    }
    Ok(claimed.len())
}
