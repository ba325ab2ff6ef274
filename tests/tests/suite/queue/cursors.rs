//! Under a held snapshot, a claim does not walk past everything that was ever pending; and yet it overlooks nothing.

use pg_recur_tests::queue::{claimed, queue, queue_many};
use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

/// As a claim that took a minute would leave it: to be trusted for twenty.
fn mark(session: &mut Session, provider: &str, since: &str) {
    session.batch(&format!(
        "SELECT recur._mark({provider}, 0, now() - interval '{since}', '-infinity',
                            clock_timestamp() - interval '1 minute')"
    ));
}

#[test]
fn a_mark_hides_nothing_for_long() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let straggler = queue(&mut session, "available_at = now() - interval '1 hour'");
    let others: Vec<Uuid> = (1..=6)
        .map(|n| {
            queue(
                &mut session,
                &format!("available_at = now() - interval '1 minute' + {n} * interval '1 second'"),
            )
        })
        .collect();
    mark(&mut session, "NULL", "10 minutes");
    assert_eq!(claimed(&mut session, "2"), others[..2], "from the mark on");
    // Another session has no mark.
    let mut another = cluster.session("app");
    another.batch("BEGIN");
    assert_eq!(claimed(&mut another, "1"), [straggler]);
    another.batch("ROLLBACK");
    // What is more urgent is seen at once.
    let urgent = queue(&mut session, "priority = 1");
    assert_eq!(claimed(&mut session, "1"), [urgent]);
    assert_eq!(claimed(&mut session, "1"), others[2..3]);
    // Where the mark leaves too little, everything is looked at.
    let mut rest = others[3..].to_vec();
    rest.push(straggler);
    assert_eq!(claimed(&mut session, "10"), rest);
    // That was the end of the mark.
    let straggler = queue(&mut session, "available_at = now() - interval '1 hour'");
    queue(&mut session, "");
    assert_eq!(claimed(&mut session, "1"), [straggler]);
}

/// Also where the rest is found before it.
#[test]
fn a_mark_ends_where_too_little_is_behind_it() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let straggler = queue(&mut session, "available_at = now() - interval '1 hour'");
    let other = queue(&mut session, "");
    mark(&mut session, "NULL", "10 minutes");
    assert_eq!(claimed(&mut session, "2"), [other, straggler]);
    let straggler = queue(&mut session, "available_at = now() - interval '1 hour'");
    queue(&mut session, "");
    assert_eq!(claimed(&mut session, "1"), [straggler]);
}

#[test]
fn a_mark_of_one_provider() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let straggler = queue(
        &mut session,
        "provider = 'mail', available_at = now() - interval '1 hour'",
    );
    let mail = queue(&mut session, "provider = 'mail'");
    let sms = queue(
        &mut session,
        "provider = 'sms', available_at = now() - interval '1 hour'",
    );
    mark(&mut session, "'mail'", "10 minutes");
    assert_eq!(claimed(&mut session, "1, providers => '{sms}'"), [sms]);
    // That was another one's.
    assert_eq!(claimed(&mut session, "1, providers => '{mail}'"), [mail]);
    // One of another provider would be more urgent, but is not asked for.
    let urgent = queue(&mut session, "provider = 'sms', priority = 1");
    let mail = queue(&mut session, "provider = 'mail'");
    assert_eq!(claimed(&mut session, "1, providers => '{mail}'"), [mail]);
    assert_eq!(claimed(&mut session, "2"), [urgent, straggler]);
}

const DEAD: i32 = 3_000;

/// Entries of the index that claims have come across.
fn entries(session: &mut Session) -> i64 {
    session.batch("SELECT pg_stat_force_next_flush()");
    session.value(
        "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'live_dispatches_claimable'",
        &[],
    )
}

/// How many of them the claim of so many takes.
fn read_by_a_claim(session: &mut Session, limit: usize) -> i64 {
    let before = entries(session);
    assert_eq!(claimed(session, &limit.to_string()).len(), limit);
    entries(session) - before
}

/// A database in which nothing that is dead goes away while the second session is there: thousands are.
fn with_the_dead(cluster: &Cluster) -> (Session, Session) {
    let mut session = cluster.database("app");
    session.batch("SET stats_fetch_consistency = none");
    let mut holder = cluster.session("app");
    holder.batch("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM recur.timers");
    queue_many(&mut session, DEAD);
    let consume =
        "SELECT count(*) FROM (SELECT recur.complete(id, attempt) FROM recur.claim(1000)) AS done";
    while session.value::<i64>(consume, &[]) > 0 {}
    (session, holder)
}

/// A mark in front of all the dead, as an hour ago it would have been right.
fn mark_in_front(session: &mut Session) {
    mark(session, "NULL", "2 hours");
}

#[test]
fn a_mark_spares_the_dead() {
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_the_dead(&cluster);
    queue_many(&mut session, 1_000);
    // All at the same time, as a herd is.
    let times: i64 = session.value(
        "SELECT count(DISTINCT available_at) FROM recur.live_dispatches",
        &[],
    );
    assert_eq!(times, 1);
    let far = read_by_a_claim(&mut session, 10);
    assert!(far >= i64::from(DEAD), "{far} entries");
    session.batch(
        "SELECT recur._mark(NULL, 0, min(available_at), min(created_at), clock_timestamp() - interval '1 minute')
           FROM recur.live_dispatches WHERE status = 'pending'",
    );
    // Claims wear it out, and move it.
    for _ in 0..50 {
        let near = read_by_a_claim(&mut session, 10);
        assert!(near < 600, "{near} entries, {far} without a mark");
    }
    // What is more urgent, but not to be had yet, does not take it away.
    queue(
        &mut session,
        "priority = 5, available_at = now() + interval '1 hour'",
    );
    for _ in 0..20 {
        let near = read_by_a_claim(&mut session, 10);
        assert!(near < 600, "{near} entries behind something more urgent");
    }
}

#[test]
fn a_mark_gets_past_what_waits_for_its_group() {
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_the_dead(&cluster);
    queue(&mut session, "lock_group = 'g'");
    assert_eq!(claimed(&mut session, "1").len(), 1);
    let waiting = queue(
        &mut session,
        "lock_group = 'g', available_at = now() - interval '1 hour'",
    );
    queue_many(&mut session, 1_000);
    mark_in_front(&mut session);
    let far = read_by_a_claim(&mut session, 10);
    assert!(far >= i64::from(DEAD), "{far} entries");
    let last = (0..20).map(|_| read_by_a_claim(&mut session, 10)).last();
    assert!(last.unwrap() < 600, "{last:?} entries");
    // Its turn comes when its group is free, at the latest when the mark ends.
    let first: Uuid = session.value(
        "SELECT id FROM recur.live_dispatches WHERE lock_group = 'g' AND status = 'running'",
        &[],
    );
    session.execute("SELECT recur.complete($1, 1)", &[&first]);
    session.batch("SELECT recur._know_priority(NULL, NULL)");
    assert_eq!(claimed(&mut session, "1"), [waiting]);
}

#[test]
fn a_consumer_that_keeps_up_has_a_mark_too() {
    let cluster = Cluster::quiet();
    let (mut session, _holder) = with_the_dead(&cluster);
    mark_in_front(&mut session);
    let mut read = Vec::new();
    for _ in 0..40 {
        queue(&mut session, "available_at = clock_timestamp()");
        read.push(read_by_a_claim(&mut session, 1));
    }
    assert!(read[0] >= i64::from(DEAD), "{read:?} entries");
    assert!(*read.last().unwrap() < 600, "{read:?} entries");
}
