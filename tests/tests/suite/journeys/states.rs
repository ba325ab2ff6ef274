//! What a journey may be made of.

use super::{BILLING, schedule, set};
use pg_recur_tests::Cluster;

#[test]
fn a_stored_journey_is_shown_in_one_form() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    assert_eq!(
        set(
            &mut session,
            "1",
            r#"[{"id": "a", "type": "task", "next": "b"}, {"id": "b", "type": "end"}]"#
        ),
        (true, 0)
    );
    let shown = r#"{"a": {"next": ["b"], "type": "task"}, "b": {"next": [], "type": "end"}}"#;
    assert_eq!(
        session.value::<String>("SELECT states::text FROM recur.journeys", &[]),
        shown
    );
    // What is stored can be stored again, and what is the same changes nothing.
    assert_eq!(set(&mut session, "1", shown), (false, 0));
    assert_eq!(
        session.count("recur.journeys WHERE updated_at = created_at"),
        1
    );
    assert_eq!(set(&mut session, "2", BILLING), (true, 0));
    assert_eq!(
        session.texts(
            "SELECT name || version || owner || schedules FROM recur.journeys ORDER BY version",
            &[]
        ),
        ["billing1postgres0", "billing2postgres0"]
    );
    assert_eq!(
        session.texts("SELECT kind || detail FROM recur.events ORDER BY id", &[]),
        [
            r#"journey.stored{"states": 2, "journey": "billing", "journey_version": "1"}"#,
            r#"journey.stored{"states": 5, "journey": "billing", "journey_version": "2"}"#
        ]
    );
}

#[test]
fn only_a_journey_has_states_to_schedule() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let mut refused = |states: &str| {
        session.error_with(
            "SELECT recur.set_journey('billing', '1', $1::text::jsonb)",
            &[&states],
        )
    };
    let (code, message, hint) = refused(r#"{"kind": "Api", "spec": {"states": {}}}"#);
    assert_eq!(
        (code.as_str(), message.as_str()),
        (
            "22023",
            "invalid kind \"Api\": only a Journey can be scheduled"
        )
    );
    assert_eq!(
        hint,
        "Documents of other kinds have no states; kind must be Journey."
    );
    assert_eq!(
        refused(r#"{"charge": {"type": "task", "next": "recieve"}, "receive": {"type": "end"}}"#),
        (
            "22023".to_owned(),
            "invalid next \"recieve\": state \"charge\" goes on to it, and the journey has no such state".to_owned(),
            "Did you mean \"receive\"?".to_owned()
        )
    );
    assert_eq!(
        refused(r#"{"a": {"type": "choice", "default": "b"}, "b": {"type": "end"}}"#).1,
        "invalid state \"a\": has a field \"default\", which is not understood"
    );
    // A document of that kind is understood.
    let document =
        format!(r#"{{"apiVersion": "v1", "kind": "Journey", "spec": {{"states": {BILLING}}}}}"#);
    assert_eq!(set(&mut session, "1", &document), (true, 0));
    for (call, message) in [
        (
            "'a@b', '1', '{}'",
            "invalid name \"a@b\": must not contain \"@\"",
        ),
        ("'', '1', '{}'", "invalid name \"\": must not be empty"),
        (
            "NULL, '1', '{}'",
            "invalid name \"NULL\": must have a value",
        ),
        (
            "'a', '1/2', '{}'",
            "invalid version \"1/2\": must not contain \"/\"",
        ),
        (
            "'a', NULL, '{}'",
            "invalid version \"NULL\": must have a value",
        ),
        (
            "'a', '1', NULL",
            "invalid states \"NULL\": must have a value",
        ),
    ] {
        session.assert_error(
            &format!("SELECT recur.set_journey({call})"),
            "22023",
            message,
        );
    }
    // The size is checked before anything is read.
    session.batch("SET recur.max_payload = '1kB'");
    let large = format!(r#"{{"a": {{"type": "{}"}}}}"#, "x".repeat(2_000));
    let (code, message, _) = session.error_with(
        "SELECT recur.set_journey('a', '1', $1::text::jsonb)",
        &[&large],
    );
    assert_eq!(code, "22023");
    assert!(
        message.contains("must not have more than 1024 bytes"),
        "{message}"
    );
}

#[test]
fn which_types_are_interactive_is_a_setting() {
    let cluster = Cluster::start();
    let mut session = cluster.database("app");
    let states =
        r#"{"charge": {"type": "task", "next": "sign"}, "sign": {"type": "Approval:boss"}}"#;
    set(&mut session, "1", states);
    session.batch("SET recur.interactive_state_types = 'form, approval:*'");
    session.assert_error(
        &schedule(", max_runs => 1"),
        "22023",
        "invalid start \"charge\": a run could reach \"sign\", which is of type \"Approval:boss\": \
         charge → sign",
    );
    session.batch("SET recur.interactive_state_types = ''");
    session.batch(&schedule(", max_runs => 1"));
    // With the setting as it is by default, wait is one.
    session.batch("RESET recur.interactive_state_types");
    let (code, message, _) = session
        .error(r#"SELECT recur.set_journey('billing', '1', '{"charge": {"type": "Wait"}}')"#);
    assert_eq!(code, "55006");
    assert!(message.contains("of type \"Wait\""), "{message}");
    for wrong in ["a*b", "wait,,form"] {
        assert_eq!(
            session
                .error(&format!("SET recur.interactive_state_types = '{wrong}'"))
                .0,
            "22023"
        );
    }
    // It guards the platform from its authors.
    session.batch("CREATE ROLE author LOGIN");
    let mut author = cluster.session_as("author", "app");
    assert_eq!(
        author.error("SET recur.interactive_state_types = ''").0,
        "42501"
    );
}
