//! The books: what was due, what was dispatched, what consumers did, and what the counters say.

use super::load::Letters;
use super::post::Mail;
use super::world::{Definition, World};
use chrono::{DateTime, Utc};
use pg_recur_tests::{Session, books};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use uuid::Uuid;

/// What a server has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Occurrences, as the engine yields them.
    pub due: u64,
    pub dispatched: u64,
    pub skipped: u64,
    /// Letters whose dispatch the server has confirmed, and those that are there.
    pub confirmed: u64,
    pub found: u64,
    pub dispatches: u64,
    pub completions: u64,
    /// Completions whose effect commits with them, and the effects.
    pub kept: u64,
    pub entries: u64,
    pub mails: u64,
    /// Mails beyond the first of a dispatch; each follows an attempt that ended without a report.
    pub repeated: u64,
    pub expired: u64,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals {
            dispatches,
            skipped,
            completions,
            mails,
            repeated,
            expired,
            ..
        } = self;
        write!(
            f,
            "{dispatches} dispatches, {skipped} skipped, {completions} completed, {mails} mails, {repeated} repeated, \
             {expired} leases expired"
        )
    }
}

/// Everything that was due by `until` is done, and every book agrees with every other.
pub fn check(world: &World, until: DateTime<Utc>) -> Totals {
    let mut session = world.session();
    // In this order: what is confirmed or mailed before the books are read must be in them, and what they hold must
    // have been sent or mailed by the time they have been read.
    let confirmed = world.load().letters();
    let early_mails = world.post.mails();
    session.batch("BEGIN ISOLATION LEVEL REPEATABLE READ");
    let dispatches = read_dispatches(&mut session);
    let late_mails = world.post.mails();
    let sent = world.load().letters();
    let occurrences = books::check_in(&mut session);
    check_definitions(&mut session, &world.definitions, until);
    check_attempts(&mut session);
    check_counters(&mut session);
    let found = check_letters(&mut session, &confirmed, &sent);
    let (kept, entries) = check_entries(&mut session);
    let repeated = check_mails(&dispatches, &early_mails, &late_mails);
    let row = &session.rows(
        "SELECT (SELECT count(*) FROM recur.dispatches),
                (SELECT count(*) FROM recur.dispatches WHERE status = 'completed'),
                (SELECT count(*) FROM recur.events WHERE kind = 'dispatch.recovered')",
        &[],
    )[0];
    session.batch("COMMIT");
    check_log(&world.cluster.log());
    let number = |column: usize| row.get::<_, i64>(column) as u64;
    Totals {
        due: occurrences.due as u64,
        dispatched: occurrences.dispatched as u64,
        skipped: occurrences.skipped,
        confirmed: confirmed.confirmed.len() as u64,
        found,
        dispatches: number(0),
        completions: number(1),
        kept,
        entries,
        mails: late_mails.len() as u64,
        repeated,
        expired: number(2),
    }
}

/// Nothing has crashed by itself, no code of Rust has panicked, and no worker has met what can't be.
fn check_log(log: &str) {
    let signs = [
        "signal 11",
        "signal 7",
        "panicked",
        "TRAP:",
        "sqlstate=XX",
        "ERRORDATA_STACK_SIZE",
    ];
    let wrong: Vec<&str> = log
        .lines()
        .filter(|line| signs.iter().any(|sign| line.contains(sign)))
        .collect();
    assert!(wrong.is_empty(), "the log: {wrong:#?}");
}

/// No statement returns a row that `sql` describes as wrong.
#[track_caller]
fn none(session: &mut Session, what: &str, sql: &str) {
    let wrong: Vec<String> = session.column(sql, &[]);
    assert!(wrong.is_empty(), "{what}: {wrong:#?}");
}

/// The actions are those that were defined, are still enabled, and have nothing left that was due.
fn check_definitions(session: &mut Session, defined: &[Definition], until: DateTime<Utc>) {
    let rows = session.rows(
        "SELECT id, name, schedule::text, misfire, starts_at, enabled, next_run_at, last_error
           FROM recur.recurring_actions ORDER BY created_at",
        &[],
    );
    assert_eq!(rows.len(), defined.len());
    for row in &rows {
        let found = Definition {
            id: row.get(0),
            name: row.get(1),
            schedule: row.get(2),
            misfire: row.get(3),
            starts_at: row.get(4),
        };
        assert!(defined.contains(&found), "{found:?} was not defined so");
        let error: Option<String> = row.get(7);
        assert!(row.get::<_, bool>(5), "{found:?} is paused: {error:?}");
        let next: DateTime<Utc> = row.get(6);
        assert!(next > until, "{found:?} is due since {next}");
    }
}

/// Every attempt was completed, was given back, has its error, or is under way; every lease that expired has its event.
fn check_attempts(session: &mut Session) {
    none(
        session,
        "an attempt is not accounted for",
        "SELECT to_jsonb(d)::text FROM recur.dispatches AS d
          WHERE d.attempt <> d.releases + coalesce(jsonb_array_length(d.errors), 0)
                             + (d.status IN ('running', 'completed'))::int",
    );
    none(
        session,
        "a dispatch has not been completed",
        "SELECT to_jsonb(d)::text FROM recur.dispatches AS d WHERE d.status IN ('failed', 'cancelled')",
    );
    none(
        session,
        "a dispatch is live and finished",
        "SELECT l.id::text FROM recur_internal.live_dispatches AS l
           JOIN recur_internal.finished_dispatches AS f USING (id)
          UNION ALL
         SELECT id::text FROM recur_internal.finished_dispatches GROUP BY id HAVING count(*) > 1",
    );
    none(
        session,
        "an expired lease and its event differ",
        "SELECT coalesce(e.dispatch_id, d.id)::text
           FROM (SELECT dispatch_id, (detail ->> 'attempt')::int AS attempt FROM recur.events
                  WHERE kind = 'dispatch.recovered') AS e
           FULL JOIN (SELECT d.id, (one ->> 'attempt')::int AS attempt
                        FROM recur.dispatches AS d, jsonb_array_elements(d.errors) AS e (one)
                       WHERE one ->> 'reason' = 'lease expired') AS d
                  ON d.id = e.dispatch_id AND d.attempt = e.attempt
          WHERE e.dispatch_id IS NULL OR d.id IS NULL",
    );
}

/// The counts of each action agree with the history.
fn check_counters(session: &mut Session) {
    none(
        session,
        "a count differs from the history",
        "SELECT p.action_id || ': ' || p.completed_count || ' and ' || count(f.id)
           FROM recur_internal.progress AS p
           LEFT JOIN recur_internal.finished_dispatches AS f ON f.action_id = p.action_id AND f.status = 'completed'
          GROUP BY p.action_id, p.completed_count, p.failed_count
         HAVING p.completed_count <> count(f.id) OR p.failed_count <> 0",
    );
}

/// A letter that was confirmed is there, under the id that was given; none is there twice, none that was not sent.
/// Returns how many of those that were confirmed are there.
fn check_letters(session: &mut Session, confirmed: &Letters, sent: &Letters) -> u64 {
    let rows = session.rows(
        "SELECT (payload ->> 'letter')::bigint, id FROM recur.dispatches WHERE payload ? 'letter'",
        &[],
    );
    let mut found = BTreeMap::<i64, Uuid>::new();
    for row in &rows {
        let (number, id): (i64, Uuid) = (row.get(0), row.get(1));
        assert!(
            (1..=sent.sent).contains(&number),
            "letter {number} was never sent"
        );
        let other = found.insert(number, id);
        assert_eq!(other, None, "letter {number} is there twice: {id}");
    }
    for (number, id) in &confirmed.confirmed {
        assert_eq!(found.get(number), Some(id), "letter {number} is lost");
    }
    found.retain(|number, _| confirmed.confirmed.contains_key(number));
    found.len() as u64
}

/// An entry that is kept in the transaction that completes a dispatch is there once for each completed dispatch, and
/// for no other dispatch.
/// Returns how many completed dispatches and entries there are.
fn check_entries(session: &mut Session) -> (u64, u64) {
    none(
        session,
        "an entry and its dispatch differ",
        "SELECT coalesce(e.dispatch, d.id)::text || ': ' || count(e.dispatch) || ' entries, '
                || count(d.id) || ' dispatches'
           FROM public.entries AS e
           FULL JOIN (SELECT id, attempt FROM recur.dispatches WHERE provider = 'ledger' AND status = 'completed') AS d
                  ON d.id = e.dispatch AND d.attempt = e.attempt
          GROUP BY coalesce(e.dispatch, d.id) HAVING count(e.dispatch) <> 1 OR count(d.id) <> 1",
    );
    let kept = session.count("recur.dispatches WHERE provider = 'ledger' AND status = 'completed'");
    (kept as u64, session.count("public.entries") as u64)
}

/// A dispatch for consumers.
struct Mailed {
    is_completed: bool,
    attempt: i32,
    /// Attempts that have an error: the consumer did not report in time, or reported a failure.
    failed: BTreeSet<i32>,
}

/// By what a consumer prints of them.
fn read_dispatches(session: &mut Session) -> BTreeMap<(String, String), Mailed> {
    let rows = session.rows(
        "SELECT payload ->> 'to', to_char(scheduled_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
                status = 'completed', attempt,
                ARRAY(SELECT (one ->> 'attempt')::int FROM jsonb_array_elements(errors) AS e (one))
           FROM recur.dispatches WHERE provider = 'mailer'",
        &[],
    );
    let read = |row: &postgres::Row| {
        let mailed = Mailed {
            is_completed: row.get(2),
            attempt: row.get(3),
            failed: row.get::<_, Vec<i32>>(4).into_iter().collect(),
        };
        ((row.get(0), row.get(1)), mailed)
    };
    let dispatches: BTreeMap<_, _> = rows.iter().map(read).collect();
    assert_eq!(
        dispatches.len(),
        rows.len(),
        "two dispatches of an occurrence"
    );
    dispatches
}

/// No attempt has sent two mails; each mail belongs to an attempt that there was; an attempt that sent a mail and was
/// not completed has its error; each completed attempt has sent its mail. Returns how many mails were repeated.
fn check_mails(
    dispatches: &BTreeMap<(String, String), Mailed>,
    early: &[Mail],
    late: &[Mail],
) -> u64 {
    let distinct: BTreeSet<&Mail> = late.iter().collect();
    assert_eq!(distinct.len(), late.len(), "an attempt has run twice");
    for mail in early {
        let dispatch = dispatches.get(&(mail.to.clone(), mail.due.clone()));
        let dispatch = dispatch.unwrap_or_else(|| panic!("{mail:?} belongs to no dispatch"));
        let is_latest = mail.attempt == dispatch.attempt;
        assert!(
            mail.attempt <= dispatch.attempt
                && (is_latest || dispatch.failed.contains(&mail.attempt)),
            "{mail:?} was sent, but attempt {} counts, and {:?} have failed",
            dispatch.attempt,
            dispatch.failed
        );
    }
    for ((to, due), dispatch) in dispatches {
        let mail = Mail {
            to: to.clone(),
            due: due.clone(),
            attempt: dispatch.attempt,
        };
        assert!(
            !dispatch.is_completed || distinct.contains(&mail),
            "completed without {mail:?}"
        );
    }
    let mailed: BTreeSet<_> = late.iter().map(|mail| (&mail.to, &mail.due)).collect();
    (late.len() - mailed.len()) as u64
}
