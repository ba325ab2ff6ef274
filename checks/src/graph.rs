//! A graph of names, and its cycles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Each edge keeps the first place where it was seen.
#[derive(Default)]
pub struct Graph {
    edges: BTreeMap<String, BTreeMap<String, Place>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Place {
    pub path: String,
    pub line: usize,
}

impl Graph {
    /// An edge from a node to itself is none.
    pub fn add(&mut self, from: &str, to: &str, place: Place) {
        if from != to {
            let targets = self.edges.entry(from.to_owned()).or_default();
            targets.entry(to.to_owned()).or_insert(place);
        }
    }

    pub fn edges(&self) -> impl Iterator<Item = (&str, &str, &Place)> {
        self.edges.iter().flat_map(|(from, targets)| {
            targets
                .iter()
                .map(move |(to, place)| (from.as_str(), to.as_str(), place))
        })
    }

    pub fn place(&self, from: &str, to: &str) -> Option<&Place> {
        self.edges.get(from)?.get(to)
    }

    /// For each set of nodes that all reach each other: one shortest cycle, and the set.
    pub fn cycles(&self) -> Vec<(Vec<&str>, BTreeSet<&str>)> {
        let reach: BTreeMap<&str, BTreeSet<&str>> = self
            .edges
            .keys()
            .map(|node| (node.as_str(), self.reachable(node)))
            .collect();
        let mut seen = BTreeSet::new();
        let mut cycles = Vec::new();
        for (node, targets) in &reach {
            if !targets.contains(node) || seen.contains(node) {
                continue;
            }
            let set: BTreeSet<&str> = targets
                .iter()
                .copied()
                .filter(|target| reach.get(target).is_some_and(|back| back.contains(node)))
                .collect();
            seen.extend(set.iter().copied());
            let shortest = set
                .iter()
                .filter_map(|node| self.cycle_through(node))
                .min_by_key(Vec::len);
            cycles.extend(shortest.map(|cycle| (cycle, set)));
        }
        cycles
    }

    fn targets(&self, node: &str) -> impl Iterator<Item = &str> {
        self.edges
            .get(node)
            .into_iter()
            .flat_map(|targets| targets.keys().map(String::as_str))
    }

    fn reachable(&self, start: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let mut waiting: Vec<&str> = self.targets(start).collect();
        while let Some(node) = waiting.pop() {
            if reached.insert(node) {
                waiting.extend(self.targets(node));
            }
        }
        reached
    }

    /// The shortest way from the node back to itself, without the repeated end.
    fn cycle_through<'a>(&'a self, start: &'a str) -> Option<Vec<&'a str>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut waiting = VecDeque::from([start]);
        while let Some(node) = waiting.pop_front() {
            for target in self.targets(node) {
                if target == start {
                    let mut cycle = vec![node];
                    while let Some(previous) = came_from.get(cycle[cycle.len() - 1]) {
                        cycle.push(previous);
                    }
                    cycle.reverse();
                    return Some(cycle);
                }
                if !came_from.contains_key(target) {
                    came_from.insert(target, node);
                    waiting.push_back(target);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        for (index, (from, to)) in edges.iter().enumerate() {
            let place = Place {
                path: "a.rs".to_owned(),
                line: index + 1,
            };
            graph.add(from, to, place);
        }
        graph
    }

    #[test]
    fn a_graph_that_points_one_way_has_no_cycle() {
        assert!(
            graph(&[("a", "b"), ("b", "c"), ("a", "c"), ("a", "a")])
                .cycles()
                .is_empty()
        );
    }

    #[test]
    fn each_knot_shows_its_shortest_cycle() {
        let graph = graph(&[
            ("a", "b"),
            ("b", "c"),
            ("c", "a"),
            ("c", "b"),
            ("x", "y"),
            ("y", "x"),
            ("x", "a"),
        ]);
        let cycles = graph.cycles();
        let shown: Vec<_> = cycles
            .iter()
            .map(|(cycle, set)| (cycle.clone(), set.len()))
            .collect();
        assert_eq!(shown, [(vec!["b", "c"], 3), (vec!["x", "y"], 2)]);
    }

    #[test]
    fn an_edge_keeps_its_first_place() {
        let graph = graph(&[("a", "b"), ("a", "b")]);
        assert_eq!(graph.place("a", "b").map(|place| place.line), Some(1));
        assert_eq!(graph.edges().count(), 1);
    }
}
