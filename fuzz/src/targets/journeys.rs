//! Journeys: what is read, and which states a run can reach.

use crate::input::Input;
use crate::naive;
use crate::target::Signature;
use recur_core::journey::{Graph, InteractiveTypes};

/// Is a type, in lower case, one of a list's?
type Includes = fn(&str) -> bool;

/// Lists of interactive types, and which types they mean.
const LISTS: [(&str, Includes); 3] = [
    ("wait, webhook", |kind| kind == "wait" || kind == "webhook"),
    ("Form:*", |kind| kind.starts_with("form:")),
    ("", |_| false),
];

/// Graphs, the nearest interactive state, and the way to it.
pub fn journey(input: &Input) -> Signature {
    let expected = naive::journey::read(&input.text);
    let graph = match Graph::parse(&input.text) {
        Ok(graph) => graph,
        Err(error) => {
            assert_eq!(expected, None, "refused with {error}");
            return Signature::of_error(error);
        }
    };
    let states = expected.expect("what the model refuses is refused");
    assert!(states.keys().eq(graph.states().keys()));
    assert_eq!(
        Graph::parse(&graph.to_json()).as_ref(),
        Ok(&graph),
        "as it is stored"
    );
    let number = input.choices().below(LISTS.len());
    let (list, includes) = LISTS[number];
    let types = InteractiveTypes::parse(list).expect("a list of types");
    let distances = naive::journey::distances(&states);
    let is_interactive = |id: &str| includes(&states[id].0.trim().to_lowercase());
    let mut found = 0;
    for start in states.keys() {
        let steps = states.keys().filter(|id| is_interactive(id));
        let steps = steps.filter_map(|id| distances.get(&(start.clone(), id.clone())));
        let nearest = steps.min().copied();
        let way = graph.interactive_path(start, &types);
        assert_eq!(
            way.as_ref().map(|way| way.len() - 1),
            nearest,
            "from {start}"
        );
        let Some(way) = way else { continue };
        found += 1;
        assert!(way[0] == start && is_interactive(way[way.len() - 1]));
        assert!(
            way.windows(2)
                .all(|step| states[step[0]].1.iter().any(|next| next == step[1]))
        );
    }
    Signature::of_numbers(&[states.len(), found, number])
}
