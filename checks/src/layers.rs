//! The direction of dependencies between the extension's modules.

use crate::finding::Finding;
use crate::graph::{Graph, Place};
use crate::modules::{self, ModulePath};
use crate::tree::Tree;

/// From left to right. A module uses layers to its left; the slices of one layer use each other, in no cycle.
const LAYERS: [&[&str]; 5] = [
    &["pg"],
    &["runtime"],
    &[
        "actions",
        "dispatch",
        "queue",
        "recovery",
        "commands",
        "execution",
        "journeys",
        "webhooks",
        "alerts",
        "history",
        "inspect",
        "access",
        "requests",
    ],
    &["workers"],
    &[ROOT],
];
const SLICES: usize = 2;
const ROOT: &str = "lib.rs";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let (references, mut findings) = modules::references(tree);
    let mut folders = Graph::default();
    let mut files = Graph::default();
    for reference in &references {
        let place = Place {
            path: reference.path.clone(),
            line: reference.line,
        };
        folders.add(
            &node(&reference.from, 1),
            &node(&reference.to, 1),
            place.clone(),
        );
        files.add(&node(&reference.from, 2), &node(&reference.to, 2), place);
    }
    findings.extend(homeless(tree));
    findings.extend(wrong_ways(&files));
    findings.extend(cycles(&folders));
    findings.extend(cycles(&files));
    findings
}

/// The first names of a module's path.
fn node(path: &ModulePath, depth: usize) -> String {
    match path.as_slice() {
        [] => ROOT.to_owned(),
        names => names[..names.len().min(depth)].join("::"),
    }
}

fn layer_of(node: &str) -> Option<usize> {
    let folder = node.split("::").next().unwrap_or(node);
    LAYERS.iter().position(|names| names.contains(&folder))
}

/// Modules that belong to no layer.
fn homeless(tree: &Tree) -> Vec<Finding> {
    let expected: Vec<&str> = LAYERS
        .iter()
        .flat_map(|names| names.iter().copied())
        .collect();
    let mut findings: Vec<Finding> = Vec::new();
    for file in tree.rust_under("src/") {
        let name = file.path.trim_start_matches("src/");
        let folder = name.split_once('/').map_or(name, |(folder, _)| folder);
        let module = if folder == ROOT {
            ROOT
        } else {
            folder.trim_end_matches(".rs")
        };
        let message = format!(
            "{module} stands in no layer: expected one of {}",
            expected.join(", ")
        );
        if layer_of(module).is_none() && !findings.iter().any(|finding| finding.message == message)
        {
            findings.push(Finding::new(&file.path, 1, message));
        }
    }
    findings
}

fn wrong_ways(files: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (from, to, place) in files.edges() {
        let (Some(left), Some(right)) = (layer_of(to), layer_of(from)) else {
            continue;
        };
        let folder = |node: &str| node.split("::").next().map(str::to_owned);
        let same = folder(from) == folder(to) || (left == SLICES && right == SLICES);
        if left >= right && !same {
            let message = format!("{from} uses {to}, which is a layer to its right");
            findings.push(Finding::new(&place.path, place.line, message));
        }
    }
    findings
}

fn cycles(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (cycle, knot) in graph.cycles() {
        let next = |at: usize| cycle[(at + 1) % cycle.len()];
        let places = (0..cycle.len()).filter_map(|at| graph.place(cycle[at], next(at)));
        let places: Vec<String> = places
            .map(|place| format!("{}:{}", place.path, place.line))
            .collect();
        let mut message = format!(
            "a cycle: {} → {} ({})",
            cycle.join(" → "),
            cycle[0],
            places.join(", ")
        );
        if knot.len() > cycle.len() {
            let names: Vec<&str> = knot.into_iter().collect();
            message.push_str(&format!(
                "; all of these reach each other: {}",
                names.join(", ")
            ));
        }
        if let Some(place) = graph.place(cycle[0], next(0)) {
            findings.push(Finding::new(&place.path, place.line, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Tree::of(files))
            .into_iter()
            .map(|finding| finding.to_string())
            .collect()
    }

    #[test]
    fn layers_that_point_left_are_fine() {
        assert_eq!(
            found(&[
                (
                    "src/lib.rs",
                    "mod workers; fn f() { workers::start(); pg::x(); }"
                ),
                ("src/pg/mod.rs", ""),
                ("src/runtime/mod.rs", "use crate::pg::x;"),
                ("src/queue/mod.rs", "use crate::runtime::x;"),
                ("src/dispatch/mod.rs", "use crate::queue::x;"),
                ("src/workers/mod.rs", "use crate::{dispatch::x, pg::y};"),
            ]),
            [""; 0]
        );
    }

    #[test]
    fn a_layer_to_the_right_is_found() {
        assert_eq!(
            found(&[
                ("src/lib.rs", ""),
                ("src/pg/time.rs", "\nuse crate::queue::claim::x;"),
                ("src/queue/claim.rs", "fn f() { crate::start() }"),
            ]),
            [
                "src/pg/time.rs:2: pg::time uses queue::claim, which is a layer to its right",
                "src/queue/claim.rs:1: queue::claim uses lib.rs, which is a layer to its right",
            ]
        );
    }

    #[test]
    fn a_cycle_between_slices_is_printed() {
        assert_eq!(
            found(&[
                ("src/queue/claim.rs", "use crate::history::x;"),
                ("src/history/mod.rs", "use crate::queue::lease::x;"),
                ("src/queue/lease.rs", ""),
            ]),
            [
                "src/history/mod.rs:1: a cycle: history → queue → history (src/history/mod.rs:1, src/queue/claim.rs:1)"
            ]
        );
    }

    #[test]
    fn a_cycle_inside_a_slice_is_printed() {
        assert_eq!(
            found(&[
                ("src/queue/claim.rs", "use super::lease::x;"),
                ("src/queue/lease.rs", "fn f() { super::claim::y() }"),
            ]),
            [
                "src/queue/claim.rs:1: a cycle: queue::claim → queue::lease → queue::claim \
              (src/queue/claim.rs:1, src/queue/lease.rs:1)"
            ]
        );
    }

    #[test]
    fn a_module_outside_all_layers_is_found() {
        let found = found(&[
            ("src/api/mod.rs", ""),
            ("src/api/x.rs", ""),
            ("src/pg.rs", ""),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        let expected = "src/api/mod.rs:1: api stands in no layer: expected one of pg, runtime, ";
        assert!(found[0].starts_with(expected), "{found:?}");
    }
}
