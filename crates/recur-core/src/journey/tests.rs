use super::*;
use crate::InvalidValue;

fn graph(text: &str) -> Graph {
    Graph::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> InvalidValue {
    Graph::parse(text).expect_err(text)
}

fn interactive() -> InteractiveTypes {
    InteractiveTypes::parse(InteractiveTypes::DEFAULT).unwrap()
}

#[test]
fn every_form_is_the_same_graph() {
    let by_id = graph(r#"{"a": {"type": "task", "next": ["b", "b"]}, "b": {"type": "end"}}"#);
    for text in [
        r#"[{"id": "a", "type": "task", "next": "b"}, {"id": "b", "type": "end", "next": null}]"#,
        r#"{"states": [{"id": "b", "type": "end", "next": []}, {"id": "a", "type": "task", "next": ["b"]}]}"#,
        r#"{"kind": "Journey", "states": {"a": {"type": "task", "next": "b"}, "b": {"id": "b", "type": "end"}}}"#,
        r#"{"states": {"a": {"type": "task", "next": "b"}, "b": {"type": "end"}}}"#,
        r#"{"start": "a", "states": {"a": {"type": "task", "next": "b"}, "b": {"type": "end"}}}"#,
        r#"{"spec": {"start": "a", "states": {"a": {"type": "task", "next": "b"}, "b": {"type": "end"}}}}"#,
        r#"{"spec": {"states": [{"id": "a", "type": "task", "next": "b"}, {"id": "b", "type": "end"}]}}"#,
        r#"{"apiVersion": "v1", "kind": "Journey", "metadata": {"name": "x"},
            "spec": {"start": "a", "states": {"a": {"type": "task", "next": "b"}, "b": {"type": "end"}}}}"#,
    ] {
        assert_eq!(graph(text), by_id, "{text}");
    }
    assert_eq!(
        by_id.to_json(),
        r#"{"a":{"next":["b"],"type":"task"},"b":{"next":[],"type":"end"}}"#
    );
    assert_eq!(graph(&by_id.to_json()), by_id);
    // States may have the names of a document's fields.
    let odd = graph(
        r#"{"states": {"type": "task", "next": "kind"},
            "kind": {"type": "task", "next": "spec"}, "spec": {"type": "x"}}"#,
    );
    assert_eq!(odd.states().len(), 3);
    assert_eq!(odd.state("kind").unwrap().kind, "task");
    assert_eq!(odd.state("none"), None);
    // A state that is called so and lacks its type does not hide the others.
    assert_eq!(
        refused(r#"{"states": {"next": "a"}, "a": {"type": "task"}}"#).to_string(),
        r#"invalid state "states": has no type"#
    );
    // A state may be called "type" as well.
    let inside = graph(r#"{"states": {"type": {"type": "task"}}}"#);
    assert_eq!(inside.states().len(), 1);
}

#[test]
fn documents_that_are_refused() {
    for (text, error) in [
        (
            "",
            r#"invalid states "": is not JSON, or nested too deeply"#,
        ),
        (
            "1",
            r#"invalid states "1": must be an object or a list of states"#,
        ),
        (
            "{}",
            r#"invalid states "{}": a journey has at least one state"#,
        ),
        (
            "[]",
            r#"invalid states "{}": a journey has at least one state"#,
        ),
        (
            r#"{"kind": "Api", "states": {}}"#,
            r#"invalid kind "Api": only a Journey can be scheduled"#,
        ),
        (
            r#"{"kind": "journey"}"#,
            r#"invalid kind "journey": only a Journey can be scheduled"#,
        ),
        (
            r#"{"states": {}}"#,
            r#"invalid states "{}": a journey has at least one state"#,
        ),
        (
            r#"{"kind":"Journey"}"#,
            r#"invalid states "{"kind":"Journey"}": the document has no states"#,
        ),
        (
            r#"{"kind": "Journey", "states": 1}"#,
            r#"invalid states "1": must be an object or a list of states"#,
        ),
    ] {
        assert_eq!(refused(text).to_string(), error);
    }
}

#[test]
fn states_that_are_refused() {
    let long = "x".repeat(101);
    for (text, error) in [
        (r#"{"a": 1}"#, r#"invalid state "a": must be an object"#),
        (r#"{"a": {}}"#, r#"invalid state "a": has no type"#),
        (
            r#"{"a": {"type": 1}}"#,
            r#"invalid state "a": has the type 1, which is not a text"#,
        ),
        (
            r#"{"a": {"type": ""}}"#,
            r#"invalid type "": must not be empty"#,
        ),
        (
            r#"{" ": {"type": "x"}}"#,
            r#"invalid id " ": must not be empty"#,
        ),
        (
            r#"{"a": {"type": "x", "id": "b"}}"#,
            r#"invalid id "b": it stands under "a""#,
        ),
        (
            r#"{"a": {"type": "choice", "choices": [{"next": "b"}]}}"#,
            r#"invalid state "a": has a field "choices", which is not understood"#,
        ),
        (
            r#"{"a": {"type": "x", "next": 1}}"#,
            r#"invalid state "a": next must be the id of a state, or a list of ids"#,
        ),
        (
            r#"{"a": {"type": "x", "next": ["a", 1]}}"#,
            r#"invalid state "a": next must be the id of a state, or a list of ids"#,
        ),
        (
            r#"{"charge": {"type": "x", "next": "chrage"}}"#,
            r#"invalid next "chrage": state "charge" goes on to it, and the journey has no such state"#,
        ),
        (
            r#"[1]"#,
            r#"invalid states "1": each state of a list has an id, a text"#,
        ),
        (
            r#"[{"id": "a", "type": "x"}, {"id": "a", "type": "y"}]"#,
            r#"invalid id "a": two states have it"#,
        ),
        (
            &format!(r#"{{"{long}": {{"type": "x"}}}}"#),
            &format!(r#"invalid id "{long}": must not be longer than 100 characters"#),
        ),
    ] {
        assert_eq!(refused(text).to_string(), error);
    }
}

#[test]
fn a_hint_names_the_state_that_was_meant() {
    let hint = |text: &str| refused(text).hint().unwrap().to_owned();
    assert_eq!(
        hint(r#"{"charge": {"type": "x", "next": "chrage"}}"#),
        "Did you mean \"charge\"?"
    );
    assert_eq!(
        hint(r#"{"a": {"type": "x", "next": "other"}, "b": {"type": "x"}}"#),
        "Its states: a, b."
    );
}

/// States that each go on to the next `width` ones.
fn ring(count: usize, width: usize) -> String {
    let states = (0..count).map(|number| {
        let next: Vec<String> = (1..=width)
            .map(|step| format!("\"s{}\"", (number + step) % count))
            .collect();
        format!(
            "\"s{number}\": {{\"type\": \"task\", \"next\": [{}]}}",
            next.join(",")
        )
    });
    format!("{{{}}}", states.collect::<Vec<_>>().join(","))
}

#[test]
fn sizes_are_limited() {
    assert_eq!(graph(&ring(MAX_STATES, 10)).states().len(), MAX_STATES);
    assert_eq!(
        refused(&ring(MAX_STATES + 1, 1)).to_string(),
        r#"invalid states "1001": a journey has at most 1000 states"#
    );
    assert_eq!(
        refused(&ring(MAX_STATES, 11)).to_string(),
        r#"invalid states "11000": a journey has at most 10000 transitions between its states"#
    );
    assert_eq!(
        refused(&"[".repeat(100_000)).problem(),
        "is not JSON, or nested too deeply"
    );
}

#[test]
fn a_way_to_an_interactive_state_is_found_through_cycles() {
    let graph = graph(
        r#"{"start": {"type": "task", "next": ["loop", "long"]},
            "loop": {"type": "task", "next": ["start", "loop", "done"]},
            "long": {"type": "task", "next": "longer"},
            "longer": {"type": "task", "next": ["hook", "ask"]},
            "ask": {"type": "Wait", "next": "hook"},
            "hook": {"type": "webhook", "next": "done"},
            "done": {"type": "succeed"}}"#,
    );
    let path = |start| graph.interactive_path(start, &interactive());
    assert_eq!(
        path("start"),
        Some(vec!["start", "long", "longer", "ask"]),
        "the shortest"
    );
    assert_eq!(path("loop").unwrap()[0], "loop");
    assert_eq!(path("hook"), Some(vec!["hook"]), "the start itself counts");
    assert_eq!(path("done"), None);
    assert_eq!(path("none"), None);
    let none = InteractiveTypes::parse(" ").unwrap();
    assert_eq!(graph.interactive_path("start", &none), None);
}

#[test]
fn interactive_types_are_names_and_beginnings() {
    let types = InteractiveTypes::parse("Wait,approval:* , form").unwrap();
    for included in ["wait", "WAIT", " wait ", "approval:", "Approval:x", "form"] {
        assert!(types.includes(included), "{included}");
    }
    for other in ["waiting", "approval", "forms", "task", ""] {
        assert!(!types.includes(other), "{other}");
    }
    for wrong in ["wait,", ",", "a*b", "wait,,form"] {
        assert!(InteractiveTypes::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn long_ways_are_shown_without_their_middle() {
    let ids: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    let way: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(shown(&way[..3]), "0 → 1 → 2");
    assert_eq!(
        shown(&way),
        "0 → 1 → 2 → 3 → 4 → … 2 more … → 7 → 8 → 9 → 10 → 11"
    );
}

/// A generator of small graphs with any number of cycles.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit) as usize
    }

    fn graph(&mut self) -> Graph {
        let count = 1 + self.below(8);
        let mut states = BTreeMap::new();
        for number in 0..count {
            let kind = ["task", "task", "task", "wait"][self.below(4)];
            let next = (0..self.below(4)).map(|_| format!("s{}", self.below(count as u64)));
            let state = State {
                kind: kind.to_owned(),
                next: next.collect(),
            };
            states.insert(format!("s{number}"), state);
        }
        Graph { states }
    }
}

/// How many steps each state is from the start: the naive way, round by round over all states.
fn distances(graph: &Graph, start: &str) -> BTreeMap<String, usize> {
    let mut known = BTreeMap::from([(start.to_owned(), 0)]);
    for round in 0..graph.states.len() {
        let last: Vec<String> = known
            .iter()
            .filter(|(_, distance)| **distance == round)
            .map(|(id, _)| id.clone())
            .collect();
        for next in last.iter().flat_map(|id| &graph.states[id].next) {
            known.entry(next.clone()).or_insert(round + 1);
        }
    }
    known
}

#[test]
fn the_way_is_the_shortest_of_all_in_any_graph() {
    let mut dice = Dice(17);
    let mut found = 0;
    for _ in 0..5_000 {
        let graph = dice.graph();
        assert_eq!(
            Graph::parse(&graph.to_json()).as_ref(),
            Ok(&graph),
            "what is written can be read"
        );
        for start in graph.states.keys() {
            let distances = distances(&graph, start);
            let nearest = distances
                .iter()
                .filter(|(id, _)| graph.states[*id].kind == "wait")
                .map(|(_, distance)| *distance)
                .min();
            let path = graph.interactive_path(start, &interactive());
            assert_eq!(
                path.as_ref().map(|path| path.len() - 1),
                nearest,
                "{graph:?} from {start}"
            );
            let Some(path) = path else { continue };
            found += 1;
            assert_eq!(path[0], start);
            assert!(
                path.windows(2)
                    .all(|step| graph.states[step[0]].next.contains(step[1]))
            );
            assert_eq!(graph.states[*path.last().unwrap()].kind, "wait");
        }
    }
    assert!(found > 5_000, "{found}");
}
