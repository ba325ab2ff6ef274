//! Journeys: graphs of states that a program runs through, and which of them a scheduled run can reach.
//!
//! A scheduled run has no one to ask. So no state that waits for a person may be reachable from the state in which the
//! run starts: [`Graph::interactive_path`] finds such a state and the way to it.

mod read;
#[cfg(test)]
mod tests;
mod types;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use read::check_state;
pub use types::InteractiveTypes;

/// The most states of a journey.
pub const MAX_STATES: usize = 1_000;
/// The most transitions of a journey, of all states together.
pub const MAX_TRANSITIONS: usize = 10_000;
/// The longest name of a journey, and the longest id or type of a state, in characters. With the version they make the
/// name of an action, which has at most 255.
pub const LONGEST_NAME: usize = 100;
/// The longest version of a journey, in characters.
pub const LONGEST_VERSION: usize = 50;

/// A state of a journey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// What the state does, in the words of the program that runs the journey.
    pub kind: String,
    /// The states that may follow; none for a state in which the journey ends.
    pub next: BTreeSet<String>,
}

/// The states of a journey, by their ids. Every state that may follow another one is a state of the graph.
///
/// ```
/// use recur_core::journey::{Graph, InteractiveTypes};
///
/// let graph = Graph::parse(
///     r#"{"charge": {"type": "task", "next": ["receipt", "ask"]},
///         "receipt": {"type": "task"},
///         "ask": {"type": "wait", "next": "charge"}}"#,
/// )
/// .unwrap();
/// let interactive = InteractiveTypes::parse("wait, webhook").unwrap();
/// assert_eq!(graph.interactive_path("charge", &interactive), Some(vec!["charge", "ask"]));
/// assert_eq!(graph.interactive_path("receipt", &interactive), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    states: BTreeMap<String, State>,
}

impl Graph {
    /// The states by their ids.
    pub fn states(&self) -> &BTreeMap<String, State> {
        &self.states
    }

    /// The state of that id.
    pub fn state(&self, id: &str) -> Option<&State> {
        self.states.get(id)
    }

    /// The shortest way from a state to one that waits for a person, both ends included; None where there is no way.
    pub fn interactive_path(
        &self,
        start: &str,
        interactive: &InteractiveTypes,
    ) -> Option<Vec<&str>> {
        let (start, _) = self.states.get_key_value(start)?;
        // Where each state was first reached from.
        let mut reached: BTreeMap<&str, Option<&str>> = BTreeMap::from([(start.as_str(), None)]);
        let mut queue = VecDeque::from([start.as_str()]);
        while let Some(id) = queue.pop_front() {
            let state = self.states.get(id)?;
            if interactive.includes(&state.kind) {
                return Some(way_to(id, &reached));
            }
            for next in &state.next {
                if !reached.contains_key(next.as_str()) {
                    reached.insert(next, Some(id));
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// The graph as JSON, in the form in which it is stored: an object of the states by their ids.
    pub fn to_json(&self) -> String {
        let states = self.states.iter().map(|(id, state)| {
            let next: Vec<&str> = state.next.iter().map(String::as_str).collect();
            let state = serde_json::json!({"type": state.kind, "next": next});
            (id.clone(), state)
        });
        serde_json::Value::Object(states.collect()).to_string()
    }
}

fn way_to<'a>(last: &'a str, reached: &BTreeMap<&'a str, Option<&'a str>>) -> Vec<&'a str> {
    let before = |id: &&'a str| reached.get(id).copied().flatten();
    let mut way: Vec<&str> = std::iter::successors(Some(last), before).collect();
    way.reverse();
    way
}

/// A way as an error shows it: whole if it is short, and without its middle if not.
///
/// ```
/// use recur_core::journey::shown;
///
/// assert_eq!(shown(&["a", "b"]), "a → b");
/// ```
pub fn shown(way: &[&str]) -> String {
    const ENDS: usize = 5;
    if way.len() <= 2 * ENDS {
        return way.join(" → ");
    }
    let (first, last) = (&way[..ENDS], &way[way.len() - ENDS..]);
    let between = way.len() - 2 * ENDS;
    format!(
        "{} → … {between} more … → {}",
        first.join(" → "),
        last.join(" → ")
    )
}
