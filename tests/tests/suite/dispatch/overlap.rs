//! What counts as unfinished for the overlap policy, how runs by hand follow it, and where its default comes from.

use pg_recur_tests::queue::{claim_this, status};
use pg_recur_tests::timers::{of_action, set_due};
use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

#[test]
fn a_dispatch_that_waits_for_its_retry_holds_up_others_for_an_hour() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('a', '@hourly', 'p', 't', overlap => 'skip')");
    let first: Uuid = session.value("SELECT recur.trigger('a')", &[]);
    claim_this(&mut session, first);
    session.execute("SELECT recur.fail($1, 1, 'no')", &[&first]);
    let mut ticked = |age: &str| -> (i64, i64) {
        session.execute(
            &format!(
                "UPDATE recur_internal.live_dispatches SET scheduled_at = now() - interval '{age}' WHERE id = $1"
            ),
            &[&first],
        );
        set_due(&mut session, "now()", &of_action("a"));
        let row = &session.rows("SELECT dispatched, skipped FROM recur.tick()", &[])[0];
        (row.get(0), row.get(1))
    };
    assert_eq!(ticked("59 minutes"), (0, 1));
    assert_eq!(ticked("61 minutes"), (1, 0));
    assert_eq!(status(&mut session, first), "pending", "it is tried again");
    let said = session.texts(
        "SELECT recur_internal.explain_skip(detail) FROM recur.events WHERE kind LIKE '%skipped'",
        &[],
    );
    assert_eq!(
        said,
        [
            "an earlier dispatch was unfinished, and by the overlap policy it gave way; one that waits for its retry \
          counts for an hour after its occurrence"
        ]
    );
}

#[test]
fn a_first_context_leaves_the_overlap_policy_as_it_is_and_says_so() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    session.batch("SELECT recur.create('a', '@hourly', 'p', 't')");
    let output = cluster.psql(
        "app",
        "SELECT recur.update('a', '{\"context\": {\"n\": 1}}');
         SELECT recur.update('a', '{\"context\": {\"n\": 2}}');
         SELECT recur.create('b', '@hourly', 'p', 't');
         SELECT recur.update('b', '{\"context\": {\"n\": 1}, \"overlap\": \"skip\"}')",
    );
    let said = String::from_utf8_lossy(&output.stderr);
    let notice = "NOTICE:  action \"a\" has a context now, and its overlap policy stays allow";
    assert_eq!(said.matches("NOTICE").count(), 1, "{said}");
    assert!(said.contains(notice), "{said}");
}

fn create(session: &mut Session, overlap: &str) -> Uuid {
    session.value(
        "SELECT recur.create('of ' || $1, '@hourly', 'p', 't', overlap => $1)",
        &[&overlap],
    )
}

fn trigger(session: &mut Session, action: Uuid) -> Uuid {
    session.value("SELECT recur.trigger($1::uuid)", &[&action])
}

#[track_caller]
fn assert_gives_way(session: &mut Session, overlap: &str, state: &str) {
    let (code, message, hint) = session.error(&format!("SELECT recur.trigger('of {overlap}')"));
    let expected = format!(
        "a dispatch of action \"of {overlap}\" is {state}, and with overlap {overlap} another one gives way"
    );
    assert_eq!((code.as_str(), message), ("55000", expected));
    assert_eq!(
        hint,
        "Trigger it when that one is finished, or with overlap => 'allow'."
    );
}

#[test]
fn a_run_by_hand_gives_way_like_an_occurrence() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "skip");
    let first = trigger(&mut session, action);
    assert_gives_way(&mut session, "skip", "pending");
    claim_this(&mut session, first);
    assert_gives_way(&mut session, "skip", "running");
    session.batch("SELECT recur.trigger('of skip', overlap => 'queue_one')");
    session.batch("SELECT recur.trigger('of skip', overlap => 'allow')");
    assert_eq!(session.count("recur.claim(9)"), 2);

    let action = create(&mut session, "queue_one");
    let first = trigger(&mut session, action);
    claim_this(&mut session, first);
    trigger(&mut session, action);
    assert_gives_way(&mut session, "queue_one", "pending");

    let action = create(&mut session, "allow");
    trigger(&mut session, action);
    trigger(&mut session, action);
    session.assert_error(
        "SELECT recur.trigger('of allow', overlap => 'skip')",
        "55000",
        "a dispatch of action \"of allow\" is pending, and with overlap skip another one gives way",
    );
    session.assert_error(
        "SELECT recur.trigger('of skip', overlap => 'never')",
        "22023",
        "invalid overlap \"never\": must be allow, skip, queue_one or cancel_previous",
    );
}

#[test]
fn a_run_by_hand_cancels_those_before_it_but_not_those_ahead_of_their_time() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "cancel_previous");
    let [first, second] = [trigger(&mut session, action), trigger(&mut session, action)];
    assert_eq!(status(&mut session, first), "cancelled");
    let error: String = session.value(
        "SELECT error FROM recur.dispatches WHERE id = $1",
        &[&first],
    );
    assert_eq!(error, "the action was triggered");
    claim_this(&mut session, second);
    trigger(&mut session, action);
    let asked: bool = session.value(
        "SELECT cancel_requested FROM recur.dispatches WHERE id = $1",
        &[&second],
    );
    assert!(asked);

    let (ahead, now) = ("recur.dispatches WHERE scheduled_at > now()", "now()");
    session.batch("SELECT recur.create('far', '@daily', 'p', 't', horizon => '3 days')");
    session.tick(now);
    let before = session.count(ahead);
    assert!(before > 1);
    session.batch("SELECT recur.trigger('far', overlap => 'cancel_previous')");
    assert_eq!(
        session.count(&format!("{ahead} AND status = 'pending'")),
        before
    );
}

#[test]
fn concurrent_runs_by_hand_are_as_many_as_the_policy_allows() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create(&mut session, "skip");
    std::thread::scope(|scope| {
        for _ in 0..6 {
            let mut session = cluster.session("app");
            scope.spawn(move || {
                for _ in 0..5 {
                    session.batch(&format!(
                        "DO $$ BEGIN PERFORM recur.trigger('{action}'::uuid);
                         EXCEPTION WHEN object_not_in_prerequisite_state THEN NULL; END $$"
                    ));
                }
            });
        }
    });
    assert_eq!(session.count("recur.dispatches"), 1);
}
