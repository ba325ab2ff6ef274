//! What is remembered, and for which filters.

use super::*;

fn names(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

/// A claim with a filter in a queue that has one pending dispatch.
fn claim_once(memory: &mut Memory, filter: Filter) -> Vec<Step> {
    let mut queue = Queue::new();
    queue.add_now(5);
    let mut session = Session::new(filter);
    std::mem::swap(&mut session.memory, memory);
    session.claim(&mut queue, 1);
    std::mem::swap(&mut session.memory, memory);
    session.steps
}

fn is_hinted(steps: &[Step]) -> bool {
    matches!(
        steps[0],
        Step::Take {
            only_if_highest: true,
            ..
        }
    )
}

#[test]
fn every_part_of_a_filter_counts() {
    let filters = [
        all(),
        Filter::of_role(11),
        all().with_providers(names(&["x"])),
        all().with_providers(names(&["y"])),
        all().with_providers(names(&["x", "y"])),
        all().with_providers(names(&[])),
        all().with_action_types(names(&["x"])),
        all().with_namespaces(names(&["x"])),
        all().with_tenants(names(&["x"])),
        all().with_agent(Some("x".to_owned())),
        all().with_agent(Some("y".to_owned())),
    ];
    let mut memory = Memory::new();
    for filter in &filters {
        assert!(
            !is_hinted(&claim_once(&mut memory, filter.clone())),
            "{filter:?}"
        );
    }
    for filter in &filters {
        assert!(
            is_hinted(&claim_once(&mut memory, filter.clone())),
            "{filter:?}"
        );
    }
    memory.clear();
    assert!(!is_hinted(&claim_once(&mut memory, all())));
}

#[test]
fn lists_are_sets() {
    let mut memory = Memory::new();
    claim_once(&mut memory, all().with_tenants(names(&["a", "b"])));
    let same = all().with_tenants(names(&["b", "a", "b"]));
    assert!(is_hinted(&claim_once(&mut memory, same)));
    let single = all().with_providers(names(&["mail", "mail"]));
    assert_eq!(single.single_provider(), Some("mail"));
    assert_eq!(all().single_provider(), None);
    assert_eq!(
        all().with_providers(names(&["a", "b"])).single_provider(),
        None
    );
}

#[test]
fn the_least_recently_used_filter_is_dropped() {
    let mut memory = Memory::new();
    let filter = |n: usize| all().with_tenants(names(&[&n.to_string()]));
    for n in 0..MAX_FILTERS {
        claim_once(&mut memory, filter(n));
    }
    assert!(is_hinted(&claim_once(&mut memory, filter(0))));
    claim_once(&mut memory, filter(MAX_FILTERS));
    assert_eq!(memory.len(), MAX_FILTERS);
    // The first was used since; the second was not.
    assert!(is_hinted(&claim_once(&mut memory, filter(0))));
    assert!(!is_hinted(&claim_once(&mut memory, filter(1))));
}

#[test]
fn a_filter_that_found_nothing_takes_no_room() {
    let mut session = Session::new(all());
    assert!(session.claim(&mut Queue::new(), 1).is_empty());
    assert_eq!(session.memory.len(), 0);
}

#[test]
fn a_claim_that_is_not_finished_changes_nothing() {
    let mut queue = Queue::new();
    queue.add_now(5);
    let session = Session::new(all());
    let mut claim = Claim::start(&session.memory, all(), 1, queue.clock());
    claim.found_priority(Some(5));
    drop(claim);
    assert_eq!(session.memory.len(), 0);
}

#[test]
fn an_answer_to_another_question_is_ignored() {
    let now = Queue::new().clock();
    let cost = Cost {
        began: now,
        ended: now,
        cpu: TimeDelta::zero(),
    };
    let somewhere = Position {
        available_at: 1,
        created_at: 1,
    };
    let mut claim = Claim::start(&Memory::new(), all(), 1, now);
    let asked = claim.step();
    claim.took(1, cost);
    claim.moved_cursor(somewhere, cost);
    assert_eq!(claim.step(), asked);
    claim.found_priority(Some(3));
    let asked = claim.step();
    claim.found_priority(Some(4));
    claim.moved_cursor(somewhere, cost);
    assert_eq!(claim.step(), asked);
    claim.took(1, cost);
    assert_eq!(claim.step(), Step::Done);
    assert_eq!(
        Claim::start(&Memory::new(), all(), 0, now).step(),
        Step::Done
    );
}
