//! Values that are far too large or too deep: refused by name, value and limit, or stored as they are, and never an
//! internal error.

use pg_recur_tests::actions::{create_to_change, create_with};
use pg_recur_tests::queue::{claim_this, queue};
use pg_recur_tests::{Cluster, Session};
use uuid::Uuid;

const MEGABYTE: usize = 1_000_000;

/// A megabyte that does not compress: an index entry keeps the size of such a text.
fn long_text() -> String {
    let mut state = 1_u32;
    let letter = |_| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        char::from(b'a' + (state >> 16) as u8 % 26)
    };
    (0..MEGABYTE).map(letter).collect()
}

/// The arguments of a function that are texts.
fn text_arguments(session: &mut Session, function: &str) -> Vec<String> {
    session.column(
        "SELECT a.name FROM pg_proc, unnest(proargnames, proargtypes::oid[]) AS a (name, type)
          WHERE oid = $1::text::regproc AND a.type = 'text'::regtype",
        &[&function],
    )
}

/// A text of a megabyte is refused: the error names the argument, shows the beginning of the text, and is short.
#[track_caller]
fn assert_too_long(error: (String, String, String), argument: &str, text: &str) {
    let (state, message, hint) = error;
    assert_eq!(state, "22023", "{argument}: {message}");
    let beginning = format!("invalid {argument} \"{}…\": ", &text[..120]);
    assert!(message.starts_with(&beginning), "{argument}: {message}");
    assert!(message.len() < 600 && hint.len() < 1_000, "{argument}");
}

#[test]
fn a_text_of_a_megabyte_is_refused_by_its_argument() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let text = long_text();
    let arguments = text_arguments(&mut session, "recur.create");
    assert!(arguments.len() > 15, "{arguments:?}");
    for argument in &arguments {
        let paused = match argument.as_str() {
            "paused_reason" => ", enabled => false",
            _ => "",
        };
        let call = create_with(&format!("{argument} => $1{paused}"));
        assert_too_long(session.error_with(&call, &[&text]), argument, &text);
    }
    for (function, others) in [
        ("recur.enqueue", ""),
        ("recur.receive", ", raw_payload => ''"),
    ] {
        for argument in text_arguments(&mut session, function) {
            let needed = ["provider", "action_type"]
                .into_iter()
                .filter(|needed| *needed != argument);
            let needed: String = needed.map(|name| format!(", {name} => 'x'")).collect();
            let call = format!("SELECT {function}({argument} => $1{needed}{others})");
            assert_too_long(session.error_with(&call, &[&text]), &argument, &text);
        }
    }
    let id = create_to_change(&mut session);
    let columns: Vec<String> = session.column(
        "SELECT attname::text FROM pg_attribute
          WHERE attrelid = 'recur.recurring_actions'::regclass AND attnum > 0",
        &[],
    );
    session.execute("SELECT recur.pause($1::uuid)", &[&id]);
    for column in &columns {
        let change = "SELECT recur.update($1::uuid, jsonb_build_object($2::text, $3::text))";
        let (state, message, _) = session.error_with(change, &[&id, column, &text]);
        // A role of such a name is none that one may act as.
        let expected = if column == "owner" { "42501" } else { "22023" };
        assert_eq!(state, expected, "{column}: {message}");
        assert!(message.starts_with("invalid ") && message.contains(column));
        assert!(message.len() < 600, "{column}: {} bytes", message.len());
    }
    assert_too_long(
        session.error_with(
            "SELECT recur.update($1::uuid, jsonb_build_object($2::text, 1))",
            &[&id, &text],
        ),
        "change",
        &text,
    );
    assert_too_long(
        session.error_with("SELECT recur.list(search => $1)", &[&text]),
        "search",
        &text,
    );
    assert_eq!(session.count("recur.recurring_actions"), 1);
    assert_eq!(session.count("recur.dispatches"), 0);
}

#[test]
fn a_name_of_a_megabyte_is_no_action() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let text = long_text();
    for call in [
        "get($1)",
        "id_of($1)",
        "id_of('a', $1)",
        "id_of('a', subject => $1)",
        "pause($1::text)",
        "update($1::text, '{}')",
        "trigger($1::text)",
    ] {
        let (state, message, _) = session.error_with(&format!("SELECT recur.{call}"), &[&text]);
        assert_eq!(state, "P0002", "{call}: {message}");
        assert!(message.len() < 600, "{call}: {} bytes", message.len());
    }
    let id = create_to_change(&mut session);
    assert_too_long(
        session.error_with("SELECT recur.pause($1::uuid, $2)", &[&id, &text]),
        "paused_reason",
        &text,
    );
}

/// The longest names that are allowed, of four bytes a character, fit into every index or are refused by name.
#[test]
fn the_longest_names_fit_into_the_indexes() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    // 255 different characters of four bytes: they do not compress.
    let name = "(SELECT string_agg(chr(120000 + (n * 7919 + $1::int) % 900), '') FROM generate_series(1, 255) AS n)";
    let long = |session: &mut Session, seed: i32| -> String {
        session.value(&format!("SELECT {name}"), &[&seed])
    };
    let texts: Vec<String> = (0..4).map(|seed| long(&mut session, seed * 13)).collect();
    let (state, message, _) = session.error_with(
        "SELECT recur.create($1, '@daily', 'p', 'a', namespace => $2, tenant => $3, subject => $4)",
        &[&texts[0], &texts[1], &texts[2], &texts[3]],
    );
    assert_eq!(state, "22023");
    assert!(
        message.ends_with("have 4080 bytes together, and at most 2500 are allowed"),
        "{message}"
    );
    for arguments in [
        "name => $1",
        "namespace => $1",
        "tenant => $1",
        "subject => $1",
        "provider => $1",
        "action_type => $1",
        "lock_group => $1",
        "dedup_key => $1",
        "description => repeat($1, 39)",
        "labels => jsonb_build_object($1::text, $1::text)",
    ] {
        let call = create_with(&format!("{arguments}, on_existing => 'add_another'"));
        session.execute(&call, &[&texts[0]]);
    }
    session.batch(
        "SELECT recur.tick(max(next_run_at)) FROM recur.recurring_actions;
         SELECT recur.complete(id, attempt) FROM recur.claim(100)",
    );
    let finished = session.count("recur.dispatches WHERE status = 'completed'");
    assert_eq!(finished, session.count("recur.recurring_actions"));
}

/// Calls that take any JSON object as $1.
fn taking_objects(action: Uuid, running: Uuid) -> [String; 12] {
    [
        create_with("payload => $1, context => $1, on_existing => 'add_another'"),
        "SELECT recur.enqueue('p', 'a', $1, dedup_key => 'k')".to_owned(),
        "SELECT recur.enqueue('p', 'a', $1, dedup_key => 'k')".to_owned(),
        "SELECT recur.receive('p', 'a', '', headers => $1)".to_owned(),
        format!("SELECT recur.trigger('{action}'::uuid, $1, overlap => 'allow')"),
        format!(
            "SELECT recur.update('{action}'::uuid, jsonb_build_object('payload', $1, 'context', $1))"
        ),
        format!("SELECT recur.compare('{action}'::uuid, jsonb_build_object('payload', $1))"),
        format!("UPDATE recur.recurring_actions SET payload = $1 WHERE id = '{action}'"),
        format!("SELECT recur.complete('{running}', 1, $1)"),
        "SELECT count(*) FROM recur.list(labels => $1)".to_owned(),
        "SELECT recur.pause_all(labels => $1)".to_owned(),
        "SELECT recur.resume_all(labels => $1)".to_owned(),
    ]
}

/// Calls that take a flat object, a back-off or columns as $1, and the argument that the error names.
fn taking_parts(action: Uuid) -> [(String, &'static str); 8] {
    let update = |changes: &str| format!("SELECT recur.update('{action}'::uuid, {changes})");
    let enqueue = |argument: &str| format!("SELECT recur.enqueue('p', 'a', {argument} => $1)");
    [
        (create_with("labels => $1"), "labels"),
        (create_with("metadata => $1"), "metadata"),
        (create_with("retry_backoff => $1"), "retry_backoff"),
        (enqueue("metadata"), "metadata"),
        (enqueue("retry_backoff"), "retry_backoff"),
        (update("$1"), "change"),
        (
            update("jsonb_build_object('priority', $1 -> 'n')"),
            "priority",
        ),
        (update("jsonb_build_object('schedule', $1)"), "schedule"),
    ]
}

/// Numbers that no machine number holds, and JSON that is nested deeply, pass through or are refused by name.
#[test]
fn json_that_is_deep_or_has_huge_numbers_is_no_internal_error() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let huge = r#"{"n": 1e400}"#.to_owned();
    let deep = format!("{{\"n\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_object = format!("{}1{}", "{\"n\": ".repeat(10_000), "}".repeat(10_000));
    let action = create_to_change(&mut session);
    for json in [&huge, &deep, &deep_object] {
        let dispatch = queue(&mut session, "priority = 1000");
        claim_this(&mut session, dispatch);
        for call in taking_objects(action, dispatch) {
            session.execute(&call.replace("$1", "$1::text::jsonb"), &[json]);
        }
        for (call, argument) in taking_parts(action) {
            let call = call.replace("$1", "$1::text::jsonb");
            let (state, message, _) = session.error_with(&call, &[json]);
            assert_eq!(state, "22023", "{call}: {message}");
            assert!(
                message.starts_with(&format!("invalid {argument} \"")) && message.len() < 600,
                "{call}: {message}"
            );
        }
    }
    // As they were given.
    let same: i64 = session.value(
        "SELECT count(DISTINCT payload) FROM recur.dispatches
          WHERE trigger = 'manual' AND payload IN ($1::text::jsonb, $2::text::jsonb, $3::text::jsonb)",
        &[&huge, &deep, &deep_object],
    );
    assert_eq!(same, 3);
    // Every one can be claimed and finished.
    let ids: Vec<Uuid> = session.column("SELECT id FROM recur.claim(1000)", &[]);
    let refused: i64 = session.value(
        "SELECT count(*) FROM recur.complete_many($1::uuid[], array_fill(1, ARRAY[cardinality($1::uuid[])]),
                                                  array_fill($2::text::jsonb, ARRAY[cardinality($1::uuid[])]))
          WHERE NOT accepted",
        &[&ids, &deep],
    );
    assert_eq!(refused, 0);
}

/// recur.max_payload bounds every JSON value, whichever function takes it.
#[test]
fn json_of_two_megabytes_is_refused_by_its_argument() {
    let cluster = Cluster::quiet();
    let mut session = cluster.database("app");
    let action = create_to_change(&mut session);
    let running = queue(&mut session, "");
    claim_this(&mut session, running);
    let update = format!("SELECT recur.update('{action}'::uuid, ");
    for (call, argument) in [
        (create_with("payload => $1"), "payload"),
        (create_with("context => $1"), "context"),
        (create_with("labels => $1"), "labels"),
        (create_with("metadata => $1"), "metadata"),
        (create_with("retry_backoff => $1"), "retry_backoff"),
        (format!("{update} $1)"), "changes"),
        ("SELECT recur.enqueue('p', 'a', $1)".to_owned(), "payload"),
        (
            "SELECT recur.enqueue('p', 'a', metadata => $1)".to_owned(),
            "metadata",
        ),
        (
            "SELECT recur.receive('p', 'a', '', headers => $1)".to_owned(),
            "headers",
        ),
        (
            format!("SELECT recur.trigger('{action}'::uuid, $1, overlap => 'allow')"),
            "payload",
        ),
        (
            format!("SELECT recur.complete('{running}', 1, $1)"),
            "result",
        ),
        (
            format!("SELECT recur.complete('{running}', 1, '{{}}', $1)"),
            "context",
        ),
        (
            format!("SELECT recur.complete_many('{{{running}}}', '{{1}}', ARRAY[$1])"),
            "results",
        ),
        (
            format!("UPDATE recur.recurring_actions SET payload = $1 WHERE id = '{action}'"),
            "payload",
        ),
    ] {
        let large = "jsonb_build_object('k', repeat('x', 2000000))";
        let (state, message, hint) = session.error(&call.replace("$1", large));
        assert_eq!(state, "22023", "{call}: {message}");
        let expected = (
            format!("invalid {argument} \"2000"),
            "bytes\": must not have more than 1048576 bytes",
        );
        assert!(
            message.starts_with(&expected.0) && message.ends_with(expected.1),
            "{call}: {message}"
        );
        assert_eq!(hint, "Store large data in a table, and refer to its row.");
    }
    assert_eq!(
        session.count("recur.dispatches WHERE status = 'running'"),
        1
    );
}
