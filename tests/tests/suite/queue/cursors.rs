//! Claim cursors: under a held snapshot, claims soon stop to scan the dead entries of everything that was ever
//! pending, and yet they overlook nothing.

use pg_recur_tests::consumers::{Example, LANGUAGES};
use pg_recur_tests::queue::{claimed, enqueue, enqueue_many, queue_many};
use pg_recur_tests::{Cluster, Session, eventually};
use std::collections::HashSet;
use uuid::Uuid;

/// What a consumer of recur-client filters by: its providers, and the action types that it has handlers for.
const FILTER: &str = "providers => '{test}', action_types => '{noop}'";

const DEAD: i32 = 20_000;

/// A claim that reads fewer entries than this has not scanned the dead ones.
const FEW: i64 = DEAD as i64 / 10;

/// A database with thousands of dead entries, which stay while the second session holds its snapshot.
fn with_dead_entries(cluster: &Cluster) -> (Session, Session) {
    with_dead_entries_of(cluster, DEAD, "")
}

/// The same, of dispatches with these arguments.
fn with_dead_entries_of(cluster: &Cluster, number: i32, arguments: &str) -> (Session, Session) {
    let mut session = cluster.database("app");
    session.batch("SET stats_fetch_consistency = none");
    let mut holder = cluster.session("app");
    holder.batch("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM recur_internal.timers");
    enqueue_many(&mut session, number, arguments);
    session.execute(
        "SELECT count(*) FROM (SELECT array_agg(id) AS ids, array_agg(attempt) AS attempts FROM recur.claim($1)) AS c,
                              recur.complete_many(c.ids, c.attempts)",
        &[&number],
    );
    (session, holder)
}

/// Index entries that claims have read.
fn entries(session: &mut Session) -> i64 {
    session.batch("SELECT pg_stat_force_next_flush()");
    session.value(
        "SELECT sum(idx_tup_read)::bigint FROM pg_stat_user_indexes
          WHERE indexrelname LIKE 'live_dispatches_claimable%'",
        &[],
    )
}

/// Claims that many, with this filter: what was claimed, and how many entries that took.
fn counted(session: &mut Session, limit: usize, filter: &str) -> (Vec<Uuid>, i64) {
    let before = entries(session);
    let ids = claimed(session, &format!("{limit}, {filter}"));
    (ids, entries(session) - before)
}

/// Claims one at a time until a claim begins at a cursor, and returns the ids of all.
#[track_caller]
fn claim_until_cursor(session: &mut Session, filter: &str) -> Vec<Uuid> {
    let mut all = Vec::new();
    for _ in 0..50 {
        let (ids, read) = counted(session, 1, filter);
        assert_eq!(ids.len(), 1);
        all.extend(ids);
        if read < FEW {
            return all;
        }
    }
    panic!("no claim begins at a cursor");
}

/// What a session without a cursor would claim next, in this order.
fn next_in_order(cluster: &Cluster, limit: usize, filter: &str) -> Vec<Uuid> {
    let mut fresh = cluster.session("app");
    fresh.batch("BEGIN");
    let ids = claimed(&mut fresh, &format!("{limit}, {filter}"));
    fresh.batch("ROLLBACK");
    ids
}

#[test]
fn claims_of_a_client_save_a_cursor_by_themselves() {
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_dead_entries(&cluster);
    queue_many(&mut session, 1_000);
    let (ids, read) = counted(&mut session, 10, FILTER);
    assert_eq!(ids.len(), 10);
    assert!(read >= i64::from(DEAD), "{read} entries");
    claim_until_cursor(&mut session, FILTER);
    // Now and then a claim scans everything, because a cursor is not trusted for long; most claims do not, although
    // each leaves dead entries behind the cursor.
    let reads: Vec<i64> = (0..60)
        .map(|_| counted(&mut session, 10, FILTER).1)
        .collect();
    let cheap = reads.iter().filter(|read| **read < FEW).count();
    assert!(cheap >= 30, "{reads:?} entries");
}

/// The programs themselves, with the filters that they send.
#[test]
fn the_shipped_consumers_claim_with_a_cursor() {
    // The more there are, the longer a cursor is trusted: consumers that the machine slows down profit as well.
    const DEAD: i32 = 60_000;
    const MAILS: i32 = 200;
    const MAIL: &str =
        "provider => 'mailer', action_type => 'email', payload => '{\"to\": \"me\"}'";
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_dead_entries_of(&cluster, DEAD, MAIL);
    for language in LANGUAGES {
        enqueue_many(&mut session, MAILS, MAIL);
        let before = entries(&mut session);
        // One dispatch with each claim.
        let settings = [("CONCURRENCY", "1"), ("POLL", "60")];
        let consumer = Example::start(language, &cluster, "app", &settings);
        eventually("all mails are sent", || {
            session.count("recur_internal.live_dispatches") == 0
        });
        drop(consumer);
        // A session that ends reports what it has read. The holder of the snapshot stays.
        let others = "pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
                         AND pid <> pg_backend_pid()";
        eventually("the consumer has left", || session.count(others) == 1);
        let read = entries(&mut session) - before;
        let of_all = i64::from(MAILS) * i64::from(DEAD);
        assert!(read >= i64::from(DEAD), "{language:?}: {read} entries");
        assert!(
            read < of_all / 2,
            "{language:?}: {read} entries of {of_all}"
        );
    }
}

#[test]
fn claims_without_a_filter_save_a_cursor_too() {
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_dead_entries(&cluster);
    queue_many(&mut session, 100);
    claim_until_cursor(&mut session, "providers => NULL");
}

#[test]
fn a_consumer_that_keeps_up_saves_a_cursor() {
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_dead_entries(&cluster);
    let mut reads = Vec::new();
    for _ in 0..60 {
        let id = enqueue(&mut session, "");
        let (ids, read) = counted(&mut session, 1, FILTER);
        assert_eq!(ids, [id]);
        reads.push(read);
    }
    assert!(reads[0] >= i64::from(DEAD), "{reads:?} entries");
    let cheap = reads.iter().filter(|read| **read < FEW).count();
    assert!(cheap >= 30, "{reads:?} entries");
}

#[test]
fn the_order_is_that_of_claims_without_a_cursor() {
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_dead_entries(&cluster);
    queue_many(&mut session, 300);
    claim_until_cursor(&mut session, FILTER);
    for round in 0..20 {
        // A higher priority is claimed first, one that is not available yet is in the way of nothing.
        let urgent = enqueue(&mut session, &format!("priority => {}", 1 + round % 3));
        enqueue(
            &mut session,
            "priority => 9, run_at => now() + interval '1 hour'",
        );
        enqueue(&mut session, "priority => -1");
        let expected = next_in_order(&cluster, 5, FILTER);
        assert_eq!(expected[0], urgent);
        assert_eq!(claimed(&mut session, &format!("5, {FILTER}")), expected);
    }
    // Urgent dispatches have not dropped the cursor for good.
    claim_until_cursor(&mut session, FILTER);
}

#[test]
fn what_becomes_available_behind_a_cursor_is_claimed() {
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_dead_entries(&cluster);
    queue_many(&mut session, 100);
    let mut done = claim_until_cursor(&mut session, FILTER);
    let before = "run_at => now() - interval '1 hour'";
    let straggler = enqueue(&mut session, before);
    // A claim that wants more than there is behind the cursor gets everything.
    let rest = claimed(&mut session, &format!("1000, {FILTER}"));
    assert!(rest.contains(&straggler));
    done.extend(rest);
    assert_eq!(done.len(), 101, "each is claimed once");
    assert_eq!(done.iter().collect::<HashSet<_>>().len(), 101);

    // So does a consumer that claims one at a time, once the cursor is no longer trusted.
    queue_many(&mut session, 10);
    claim_until_cursor(&mut session, FILTER);
    let straggler = enqueue(&mut session, before);
    eventually("the straggler is claimed", || {
        enqueue(&mut session, "");
        claimed(&mut session, &format!("1, {FILTER}")) == [straggler]
    });
}

#[test]
fn what_waited_for_its_group_is_claimed_from_behind_a_cursor() {
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_dead_entries(&cluster);
    let running = enqueue(&mut session, "lock_group => 'g'");
    assert_eq!(claimed(&mut session, "1"), [running]);
    let waiting = enqueue(
        &mut session,
        "lock_group => 'g', run_at => now() - interval '1 hour'",
    );
    queue_many(&mut session, 100);
    // The cursor gets past what can't be claimed.
    claim_until_cursor(&mut session, FILTER);
    session.execute("SELECT recur.complete($1, 1)", &[&running]);
    let rest = claimed(&mut session, &format!("1000, {FILTER}"));
    assert!(rest.contains(&waiting));
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'pending'"),
        0
    );
}

#[test]
fn a_cursor_of_one_filter_is_of_no_other() {
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_dead_entries(&cluster);
    queue_many(&mut session, 100);
    claim_until_cursor(&mut session, FILTER);
    let old = "run_at => now() - interval '1 hour'";
    let other_type = enqueue(&mut session, &format!("action_type => 'other', {old}"));
    let other_tenant = enqueue(&mut session, &format!("tenant => 'other', {old}"));
    let other_namespace = enqueue(&mut session, &format!("namespace => 'other', {old}"));
    let other_provider = enqueue(&mut session, &format!("provider => 'other', {old}"));
    for (filter, expected) in [
        (
            "providers => '{test}', action_types => '{other}'",
            other_type,
        ),
        (
            "providers => '{test}', action_types => '{noop}', tenants => '{other}'",
            other_tenant,
        ),
        (
            "providers => '{test}', action_types => '{noop}', namespaces => '{other}'",
            other_namespace,
        ),
        (
            "providers => '{test,other}', action_types => '{noop}'",
            other_provider,
        ),
    ] {
        let claimed = claimed(&mut session, &format!("1, {filter}"));
        assert_eq!(claimed, [expected], "{filter}");
    }
    // The role decides what is seen, and is part of the filter.
    session.batch(
        "CREATE ROLE of_another_filter; SELECT recur.grant_access('of_another_filter', 'author');
         SELECT recur.grant_access('of_another_filter', 'consumer'); SET ROLE of_another_filter",
    );
    let of_role = enqueue(&mut session, old);
    assert_eq!(claimed(&mut session, &format!("1, {FILTER}")), [of_role]);
}
