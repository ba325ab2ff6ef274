//! Memory: what a large value costs the session that sends it.

use super::field::Field;
use pg_recur_tests::{Session, database_error};
use std::fs;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// A session whose memory is measured.
struct Measured {
    session: Session,
    pid: i32,
}

impl Measured {
    fn new(mut session: Session) -> Measured {
        let pid = session.pid();
        Measured { session, pid }
    }

    /// A line of the kernel's account of the process, in bytes.
    fn account(&self, name: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).expect("/proc");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .expect("a line");
        let kilobytes = line.trim_start_matches(':').trim().trim_end_matches(" kB");
        kilobytes.parse::<usize>().expect("a number") * KIB
    }

    /// How much memory a statement took at its peak, beyond what the session had before; and its error.
    #[track_caller]
    fn cost(
        &mut self,
        statement: &str,
        parameter: &str,
    ) -> (usize, Option<(String, String, String)>) {
        let prepared = self.session.0.prepare(statement).expect("a statement");
        // 5 resets the peak to what the process has now.
        fs::write(format!("/proc/{}/clear_refs", self.pid), "5").expect("clear_refs");
        let before = self.account("VmRSS");
        let outcome = self.session.0.query(&prepared, &[&parameter]);
        let peak = self.account("VmHWM");
        (
            peak.saturating_sub(before),
            outcome.err().map(|error| database_error(&error)),
        )
    }
}

/// Small shared memory: pages of it that a process touches for the first time count as its own.
fn field() -> Field {
    Field::with("shared_buffers = '2MB'\nwal_buffers = '64kB'\nrecur.enabled = off")
}

/// An object with one long text, and one of many small values, which the server stores in twelve bytes each.
fn values(bytes: usize) -> [String; 2] {
    let text = format!("{{\"k\": \"{}\"}}", "x".repeat(bytes - 10));
    let numbers = vec!["1"; bytes / 12].join(",");
    [text, format!("{{\"k\": [{numbers}]}}")]
}

/// Every way in for a JSON value; `{}` is the value.
const WAYS_IN: [&str; 6] = [
    "SELECT recur.enqueue('p', 'a', {})",
    "SELECT recur.create('n', 'at 2099-01-01T00:00:00', 'p', 'a', {}, on_existing => 'upsert')",
    "SELECT recur.update('known'::text, jsonb_build_object('payload', {}))",
    "SELECT recur.update('known'::text, jsonb_build_object('context', {}))",
    "SELECT recur.complete(id, attempt, {}) FROM recur.claim(1)",
    "INSERT INTO recur.recurring_actions (name, schedule, provider, action_type, payload)
     VALUES ('m' || clock_timestamp(), '@yearly', 'p', 'a', {})",
];

/// What the ways in need to be there.
const PREPARE: &str = "SELECT recur.create('known', '@yearly', 'p', 'a', on_existing => 'upsert');
                       SELECT recur.enqueue('p', 'a')";

/// What the server itself needs to read the value: no extension can change that.
const BASELINE: &str = "SELECT pg_column_size({})";

fn with(way: &str) -> String {
    way.replace("{}", "$1::text::jsonb")
}

#[test]
fn a_large_value_costs_at_most_four_times_its_size() {
    let field = field();
    let size = 900 * KIB;
    for value in values(size) {
        for way in WAYS_IN {
            let mut session = field.session("attacker");
            session.batch(PREPARE);
            let mut measured = Measured::new(session);
            // The first call loads code and plans.
            let _ = measured.cost(&with(way), "{\"k\": 1}");
            measured.session.batch("SELECT recur.enqueue('p', 'a')");
            let (baseline, _) = measured.cost(&with(BASELINE), &value);
            let (cost, error) = measured.cost(&with(way), &value);
            assert_eq!(error, None, "{way}");
            let own = cost.saturating_sub(baseline);
            assert!(
                own <= 4 * size,
                "{way}: {own} bytes beyond {baseline} for {size}"
            );
        }
    }
    field.assert_no_crash();
}

#[test]
fn a_value_beyond_the_limit_is_refused_without_a_copy() {
    let field = field();
    let size = 28 * MIB;
    let [text, _] = values(size);
    // The server takes seconds to read millions of small values.
    let [_, numbers] = values(4 * MIB);
    for value in [text, numbers] {
        for way in WAYS_IN {
            let mut session = field.session("attacker");
            session.batch(PREPARE);
            let mut measured = Measured::new(session);
            let _ = measured.cost(&with(way), "{\"k\": 1}");
            measured.session.batch("SELECT recur.enqueue('p', 'a')");
            let baseline = match way.contains("jsonb_build_object") {
                true => BASELINE.replace("{}", "jsonb_build_object('payload', {})"),
                false => BASELINE.to_owned(),
            };
            let (baseline, _) = measured.cost(&with(&baseline), &value);
            let (cost, error) = measured.cost(&with(way), &value);
            let (code, message, _) = error.unwrap_or_else(|| panic!("{way}: accepted"));
            assert_eq!(code, "22023", "{way}: {message}");
            assert!(message.len() < 300, "{way}: {message}");
            let own = cost.saturating_sub(baseline);
            assert!(
                own <= size,
                "{way}: {own} bytes beyond {baseline} for {size}"
            );
        }
    }
    field.assert_no_crash();
}

/// Numbers of twelve bytes each, which take 131,072 digits each as text. Every way in that reads a JSON value as text
/// somewhere; `{}` is an object of them, `[]` an array.
const WAYS_OF_DIGITS: [&str; 14] = [
    "SELECT recur.receive('p', 'a', '', headers => {})",
    "SELECT recur.enqueue('p', 'a', metadata => {})",
    "SELECT recur.enqueue('p', 'a', retry_backoff => {})",
    "SELECT recur.enqueue('p', 'a', retry_backoff => jsonb_build_object('base', '1 s', 'factor', []))",
    "SELECT recur.enqueue('p', 'a', payload => [])",
    "SELECT recur.create('n', '@yearly', 'p', 'a', labels => {})",
    "SELECT recur.create('n', '@yearly', 'p', 'a', context => [])",
    "SELECT recur.trigger('known'::text, [])",
    "SELECT recur.update(id, {}) FROM recur.recurring_actions",
    "SELECT recur.update(id, jsonb_build_object('name', [])) FROM recur.recurring_actions",
    "SELECT recur.update(id, jsonb_build_object('labels', {})) FROM recur.recurring_actions",
    "SELECT recur.compare('known'::text, jsonb_build_object('description', {}))",
    "UPDATE recur.recurring_actions SET metadata = {}",
    "SELECT recur.complete(id, attempt, '{}', []) FROM recur.claim(1)",
];

#[test]
fn numbers_of_many_digits_cost_no_memory() {
    let field = field();
    let numbers = 4_000;
    let members: Vec<String> = (0..numbers)
        .map(|n| format!("\"k{n}\": 1e131071"))
        .collect();
    let object = format!("{{{}}}", members.join(","));
    for way in WAYS_OF_DIGITS {
        let mut session = field.session("attacker");
        session.batch(PREPARE);
        let mut measured = Measured::new(session);
        let way = way
            .replace("'{}'", "'\\{\\}'")
            .replace("{}", "$1::text::jsonb")
            .replace("'\\{\\}'", "'{}'");
        let way = way.replace("[]", "jsonb_path_query_array($1::text::jsonb, '$.*')");
        let _ = measured.cost(&way, "{\"k\": 1}");
        measured.session.batch("SELECT recur.enqueue('p', 'a')");
        let (cost, error) = measured.cost(&way, &object);
        if let Some((code, message, _)) = error {
            assert!(
                ["22023", "54000"].contains(&code.as_str()),
                "{way}: {code} {message}"
            );
        }
        assert!(cost < 32 * MIB, "{way}: {cost} bytes for {}", object.len());
    }
    field.assert_no_crash();
}
