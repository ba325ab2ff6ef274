//! Dispatches that are for an agent, and for its fallback.

use pg_recur_tests::queue::{NONE, claimed, enqueue, idle_action, queue_for};
use pg_recur_tests::{Cluster, Session};
use serde_json::json;
use uuid::Uuid;

const ROUTED: &str =
    ", primary_agent => 'ann', fallback_agent => 'bob', fallback_after => '10 minutes'";

/// A dispatch of an action with a primary agent and a fallback.
fn routed(session: &mut Session) -> Uuid {
    let action = idle_action(session, ROUTED);
    queue_for(session, action)
}

/// As if it had become available so long ago.
fn age(session: &mut Session, id: Uuid, age: &str) {
    session.execute(
        &format!(
            "UPDATE recur_internal.live_dispatches SET available_at = available_at - interval '{age}' WHERE id = $1"
        ),
        &[&id],
    );
}

#[test]
fn only_its_agent_gets_a_dispatch() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = routed(&mut session);
    let plain = enqueue(&mut session, "");
    let mut offered = |arguments: &str| {
        session.batch("BEGIN");
        let ids = claimed(&mut session, &format!("9{arguments}"));
        session.batch("ROLLBACK");
        ids
    };
    assert_eq!(offered(""), [plain], "a claim without an agent");
    assert_eq!(
        offered(", agent => 'bob'"),
        [plain],
        "too early for the fallback"
    );
    assert_eq!(offered(", agent => 'eve'"), [plain], "another agent");
    assert_eq!(offered(", agent => 'ann'"), [id, plain]);
    assert_eq!(
        offered(", agent => '*'"),
        [id, plain],
        "a router of its own"
    );
    assert_eq!(
        offered(", agent => 'ann', action_types => '{no*}'"),
        [id, plain]
    );
    session.assert_error(
        "SELECT recur.claim(agent => ' ')",
        "22023",
        "invalid agent \" \": must not be empty",
    );
}

#[test]
fn the_fallback_takes_what_the_primary_has_not_taken_in_time() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = routed(&mut session);
    age(&mut session, id, "9 minutes");
    assert_eq!(claimed(&mut session, "1, agent => 'bob'"), NONE);
    age(&mut session, id, "1 minute");
    assert_eq!(claimed(&mut session, "1, agent => 'eve'"), NONE);
    assert_eq!(claimed(&mut session, "1"), NONE);
    assert_eq!(claimed(&mut session, "1, agent => 'bob'"), [id]);
}

#[test]
fn the_fallback_takes_what_has_failed_and_not_what_was_given_back() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let id = routed(&mut session);
    assert_eq!(claimed(&mut session, "1, agent => 'ann'"), [id]);
    session.execute("SELECT recur.release($1, 1)", &[&id]);
    assert_eq!(claimed(&mut session, "1, agent => 'bob'"), NONE);
    assert_eq!(claimed(&mut session, "1, agent => 'ann'"), [id]);
    session.execute("SELECT recur.fail($1, 2, 'no')", &[&id]);
    // Past the pause before the retry, and before the fallback's time.
    age(&mut session, id, "1 minute");
    assert_eq!(claimed(&mut session, "1, agent => 'eve'"), NONE);
    assert_eq!(claimed(&mut session, "1, agent => 'bob'"), [id]);
}

#[test]
fn without_a_primary_agent_anybody_gets_it_and_without_a_fallback_nobody_else() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ", fallback_agent => 'bob'");
    let anybodys = queue_for(&mut session, action);
    assert_eq!(claimed(&mut session, "1"), [anybodys]);
    let action = idle_action(&mut session, ", primary_agent => 'ann'");
    let anns = queue_for(&mut session, action);
    age(&mut session, anns, "1 year");
    assert_eq!(claimed(&mut session, "1, agent => 'bob'"), NONE);
    let stored =
        "SELECT concat_ws(' ', primary_agent, fallback_agent, fallback_after) FROM recur.dispatches
                   WHERE status = $1";
    assert_eq!(session.texts(stored, &[&"pending"]), ["ann"]);
    assert_eq!(session.texts(stored, &[&"running"]), ["bob 00:05:00"]);
}

/// A claim that remembers where to begin still sees what its agent may take from now on.
#[test]
fn a_cursor_does_not_hide_what_falls_to_the_fallback() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ROUTED);
    session.execute(
        "SELECT count(recur.trigger($1::uuid)) FROM generate_series(1, 5000)",
        &[&action],
    );
    for _ in 0..4 {
        let plain = enqueue(&mut session, "");
        assert_eq!(claimed(&mut session, "1, agent => 'bob'"), [plain]);
    }
    session.batch(
        "UPDATE recur_internal.live_dispatches SET available_at = available_at - interval '10 minutes'
          WHERE status = 'pending'",
    );
    assert_eq!(claimed(&mut session, "9, agent => 'bob'").len(), 9);
}

#[test]
fn explain_and_doctor_say_which_agent_is_missing() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = idle_action(&mut session, ROUTED);
    let id = queue_for(&mut session, action);
    let mut explained = || -> String {
        session.value(
            "SELECT (recur.explain($1::uuid, scheduled_at)).explanation FROM recur.dispatches WHERE id = $2",
            &[&action, &id],
        )
    };
    let text = explained();
    assert!(
        text.contains("it waits for a claim as agent \"ann\", or from ")
            && text.ends_with(" on as its fallback \"bob\""),
        "{text}"
    );
    age(&mut session, id, "9 minutes");
    let findings = session.texts(
        "SELECT concat_ws(' | ', finding, remedy) FROM recur.doctor()",
        &[],
    );
    let of_agent = findings
        .iter()
        .find(|finding| finding.contains("agent"))
        .unwrap_or_else(|| panic!("{findings:?}"));
    assert!(
        of_agent.starts_with(
            "1 dispatches wait for agent \"ann\" or its fallback \"bob\", the oldest since "
        ) && of_agent.ends_with(
            " | Start a consumer that claims as this agent: recur.claim(…, agent => 'ann')."
        ),
        "{of_agent}"
    );
    assert!(
        !findings.iter().any(|finding| finding.contains("provider")),
        "{findings:?}"
    );
    session.batch("SELECT recur.claim(agent => 'ann')");
    session.execute("SELECT recur.fail($1, 1, 'no')", &[&id]);
    let text: String = session.value(
        "SELECT (recur.explain($1::uuid, scheduled_at)).explanation FROM recur.dispatches WHERE id = $2",
        &[&action, &id],
    );
    assert!(
        text.ends_with("agent \"ann\", or as its fallback \"bob\", because an attempt has failed"),
        "{text}"
    );
    let settings: serde_json::Value = session.value(
        "SELECT to_jsonb(a) FROM recur.recurring_actions AS a WHERE id = $1",
        &[&action],
    );
    assert_eq!(settings["fallback_after"], json!("00:10:00"));
}
