//! Claims return what a scan of the whole index would, at less cost.

use super::model::State;
use super::*;

/// A queue with dead entries, each of them a microsecond of a scan, and a session that has set a cursor behind them.
fn with_cursor(filter: Filter) -> (Queue, Session) {
    let mut queue = Queue::new();
    queue.add_dead(0, 10_000);
    let mut session = Session::new(filter);
    for _ in 0..2 {
        queue.add_now(0);
        queue.add_now(0);
        assert_eq!(session.claim(&mut queue, 1).len(), 1);
    }
    assert!(session.moved_cursor());
    (queue, session)
}

#[test]
fn a_cheap_claim_sets_no_cursor() {
    let mut queue = Queue::new();
    let mut session = Session::new(all());
    for _ in 0..100 {
        queue.add_now(0);
        assert_eq!(session.claim(&mut queue, 1).len(), 1);
        assert!(!session.moved_cursor());
        // Each visits the entries that the ones before it have left, which is little.
        assert!(!session.used_cursor());
    }
    assert!(matches!(
        session.steps[..],
        [
            Step::Take {
                only_if_highest: true,
                ..
            },
            Step::Done
        ]
    ));
}

#[test]
fn a_cursor_appears_by_itself_when_claims_become_expensive() {
    for filter in [all(), only("x")] {
        let mut queue = Queue::new();
        queue.add_dead(0, 10_000);
        let mut session = Session::new(filter.clone());
        for _ in 0..200 {
            queue.add_now(0);
        }
        for n in 0..200 {
            let expected = queue.expected(None, 1);
            assert_eq!(session.claim(&mut queue, 1), expected, "{n}");
        }
        // Two scans to notice, two that set the cursor, and one whenever it is no longer trusted.
        assert!(queue.visited < 100_000, "{}", queue.visited);
    }
}

#[test]
fn one_expensive_claim_sets_no_cursor_nor_do_two_far_apart() {
    let mut queue = Queue::new();
    queue.add_dead(0, 10_000);
    let mut session = Session::new(all());
    for _ in 0..5 {
        queue.add_now(0);
        session.claim(&mut queue, 1);
        assert!(!session.moved_cursor());
        // Longer than twenty times the 10 ms that it took.
        queue.micros += 250_000;
    }
}

#[test]
fn a_claim_that_only_waited_sets_no_cursor() {
    let mut memory = Memory::new();
    let began = Queue::new().clock();
    let cost = Cost {
        began,
        ended: began + TimeDelta::seconds(1),
        cpu: TimeDelta::microseconds(529),
    };
    for _ in 0..5 {
        let mut claim = Claim::start(&memory, all(), 1, began);
        claim.found_priority(Some(0));
        claim.took(1, cost);
        assert_eq!(claim.step(), Step::Done);
        claim.finish(&mut memory);
    }
    // The same with one microsecond more.
    for expected in [false, true] {
        let mut claim = Claim::start(&memory, all(), 1, began);
        let cpu = TimeDelta::microseconds(530);
        claim.took(1, Cost { cpu, ..cost });
        assert_eq!(matches!(claim.step(), Step::MoveCursor { .. }), expected);
        claim.finish(&mut memory);
    }
}

#[test]
fn other_action_types_are_not_scanned_again_and_again() {
    let mut queue = Queue::new();
    for _ in 0..10_000 {
        let available_at = queue.micros;
        queue.add(Dispatch {
            priority: 0,
            available_at,
            action_type: "y",
            lock_group: None,
        });
    }
    let ours: Vec<u32> = (0..100).map(|_| queue.add_now(0)).collect();
    let mut session = Session::new(only("x"));
    let claimed: Vec<u32> = (0..100)
        .flat_map(|_| session.claim(&mut queue, 1))
        .collect();
    assert_eq!(claimed, ours);
    assert!(queue.visited < 70_000, "{}", queue.visited);
    // The others are left for other consumers.
    assert_eq!(Session::new(all()).claim(&mut queue, 3), [0, 1, 2]);
}

#[test]
fn a_claim_that_comes_up_short_behind_its_cursor_scans_everything_and_forgets() {
    let (mut queue, mut session) = with_cursor(all());
    // It becomes claimable behind the cursor.
    let late = queue.add(Dispatch {
        priority: 0,
        available_at: 5,
        action_type: "x",
        lock_group: None,
    });
    let expected = queue.expected(None, 100);
    let mut claimed = session.claim(&mut queue, 100);
    claimed.sort_unstable();
    let mut all_of_them = expected.clone();
    all_of_them.sort_unstable();
    assert_eq!(claimed, all_of_them);
    assert_eq!(expected[0], late);
    assert!(session.used_cursor());
    // Nothing at all, not even behind the cursor.
    assert!(session.claim(&mut queue, 1).is_empty());
    queue.add_now(0);
    session.claim(&mut queue, 1);
    assert!(!session.used_cursor());
}

#[test]
fn nothing_behind_the_cursor_is_returned_later_than_the_trust_allows() {
    let (mut queue, mut session) = with_cursor(all());
    let late = queue.add(Dispatch {
        priority: 0,
        available_at: 5,
        action_type: "x",
        lock_group: None,
    });
    let set_at = queue.micros;
    loop {
        // Always enough for the claim.
        queue.add_now(0);
        let claimed = session.claim(&mut queue, 1);
        let waited = queue.micros - set_at;
        if claimed == [late] {
            // The scan and the move took 10 ms each.
            assert!(waited > 200_000, "{waited}");
            return;
        }
        assert!(session.used_cursor());
        assert!(waited < 20 * 25_000, "{waited}");
        queue.micros += 1_000;
    }
}

#[test]
fn a_cursor_is_trusted_for_a_minute_at_most() {
    let mut memory = Memory::new();
    let mut now = Queue::new().clock();
    let position = Position {
        available_at: 7,
        created_at: 7,
    };
    // Scans of ten seconds would be trusted for more than three.
    for _ in 0..2 {
        let mut claim = Claim::start(&memory, all(), 1, now);
        claim.found_priority(Some(0));
        let ended = now + TimeDelta::seconds(10);
        let cost = Cost {
            began: now,
            ended,
            cpu: ended - now,
        };
        claim.took(1, cost);
        claim.moved_cursor(position, cost);
        claim.finish(&mut memory);
        now = ended;
    }
    let begins = |now| Claim::start(&memory, all(), 1, now).step();
    let from_cursor = |step| matches!(step, Step::Take { from: Some(at), .. } if at == position);
    assert!(from_cursor(begins(now)));
    assert!(from_cursor(begins(now + TimeDelta::milliseconds(59_999))));
    assert!(!from_cursor(begins(now + TimeDelta::seconds(60))));
    // A clock that was set back does not prolong it.
    assert!(!from_cursor(begins(now - TimeDelta::microseconds(1))));
}

#[test]
fn a_cursor_is_moved_after_some_uses_which_does_not_prolong_its_trust() {
    let (mut queue, mut session) = with_cursor(all());
    let began = queue.micros;
    let mut moved = 0;
    loop {
        queue.add_dead(0, 100);
        queue.add_now(0);
        session.claim(&mut queue, 1);
        if !session.used_cursor() {
            break;
        }
        moved += u32::from(session.moved_cursor());
        queue.micros += 1_000;
        let trusted_for = queue.micros - began;
        assert!(trusted_for < 20 * 30_000, "{trusted_for}");
    }
    assert!(moved >= 5, "{moved}");
}

#[test]
fn a_higher_priority_comes_first_and_leaves_the_cursor() {
    let (mut queue, mut session) = with_cursor(all());
    // Its position lies before the cursor, which is that of another priority.
    let urgent = queue.add(Dispatch {
        priority: 9,
        available_at: 5,
        action_type: "x",
        lock_group: None,
    });
    let expected = queue.expected(None, 2);
    assert_eq!(expected[0], urgent);
    let before = queue.visited;
    assert_eq!(session.claim(&mut queue, 2), expected);
    queue.add_now(0);
    session.claim(&mut queue, 1);
    assert!(session.used_cursor());
    // Neither claim has scanned the dead entries before the cursor, not even to find the next priority.
    assert!(queue.visited - before < 100, "{}", queue.visited - before);
}

#[test]
fn when_nothing_is_behind_the_cursor_it_is_dropped_before_the_next_scan() {
    let (mut queue, mut session) = with_cursor(all());
    assert_eq!(session.claim(&mut queue, 2).len(), 2);
    assert!(session.claim(&mut queue, 1).is_empty());
    let whole = |priority| Step::Take {
        priority,
        from: None,
        only_if_highest: false,
        limit: 1,
    };
    let find = |below, above| Step::FindPriority { below, above };
    assert!(matches!(session.steps[0], Step::Take { from: Some(_), .. }));
    assert_eq!(
        session.steps[1..],
        [
            find(None, Some(0)),
            whole(0),
            find(Some(0), None),
            Step::Done
        ]
    );
}

#[test]
fn the_hint_is_the_priority_that_satisfied_a_claim_if_it_is_the_highest() {
    let mut queue = Queue::new();
    let mut session = Session::new(all());
    let begins_at = |session: &Session| match session.steps[0] {
        Step::Take { priority, .. } => Some(priority),
        _ => None,
    };
    for (priority, hint) in [(3, None), (3, Some(3)), (4, Some(3)), (4, Some(4))] {
        queue.add_now(priority);
        assert_eq!(session.claim(&mut queue, 1).len(), 1);
        assert_eq!(begins_at(&session), hint);
    }
    // Short at the hint, and satisfied below it.
    queue.add_now(4);
    queue.add_now(2);
    assert_eq!(session.claim(&mut queue, 2).len(), 2);
    assert_eq!(begins_at(&session), Some(4));
    queue.add_now(2);
    session.claim(&mut queue, 1);
    assert_eq!(begins_at(&session), None);
    // A higher priority that stays pending, because it is not available yet.
    let available_at = queue.micros + 1_000_000;
    queue.add(Dispatch {
        priority: 9,
        available_at,
        action_type: "x",
        lock_group: None,
    });
    for hint in [Some(2), None, None] {
        queue.add_now(2);
        assert_eq!(session.claim(&mut queue, 1).len(), 1);
        assert_eq!(begins_at(&session), hint);
    }
}

#[test]
fn lower_priorities_are_reached_when_higher_ones_are_short() {
    let mut queue = Queue::new();
    let ids: Vec<u32> = [3, -7, 0, i32::MAX, i32::MIN]
        .map(|priority| queue.add_now(priority))
        .into();
    let mut session = Session::new(all());
    let claimed = session.claim(&mut queue, 10);
    assert_eq!(claimed, [ids[3], ids[0], ids[2], ids[1], ids[4]]);
    // What is not available yet hides nothing.
    let available_at = queue.micros + 1_000_000;
    queue.add(Dispatch {
        priority: 9,
        available_at,
        action_type: "x",
        lock_group: None,
    });
    let low = queue.add_now(-1);
    assert_eq!(session.claim(&mut queue, 1), [low]);
}

/// Everything at once: priorities, filters, busy lock groups, dead entries, claims of several sizes.
#[test]
fn claims_return_what_a_scan_of_everything_would() {
    for seed in 1..40 {
        let mut numbers = Numbers(seed * 0x9e37_79b9);
        let mut queue = Queue::new();
        let mut sessions = [Session::new(all()), Session::new(only("x"))];
        let mut running = Vec::new();
        let mut used_cursor = false;
        queue.add_dead(0, 700);
        for _ in 0..150 {
            for _ in 0..numbers.below(4) {
                let priority = [0, 0, 0, 0, 1, -1][numbers.below(6) as usize];
                // Some become available later.
                let available_at = queue.micros + [0, 0, 0, 2_000][numbers.below(4) as usize];
                let action_type = ["x", "y"][numbers.below(2) as usize];
                // A group that is busy stays so here.
                let lock_group = (numbers.below(8) == 0).then(|| numbers.below(3) as u32);
                queue.add(Dispatch {
                    priority,
                    available_at,
                    action_type,
                    lock_group,
                });
            }
            let session = &mut sessions[numbers.below(2) as usize];
            let limit = 1 + numbers.below(3) as u32;
            let expected = queue.expected(session.action_type(), limit);
            let claimed = session.claim(&mut queue, limit);
            assert_eq!(claimed, expected, "seed {seed}");
            used_cursor |= session.used_cursor();
            running.extend(claimed);
            if numbers.below(2) == 0 {
                for id in running.drain(..) {
                    queue.finish_ungrouped(id);
                }
            }
            queue.micros += numbers.below(500) as i64;
        }
        assert!(used_cursor, "seed {seed}");
    }
}

/// What was skipped because its lock group was busy is behind the cursor when the group becomes free.
#[test]
fn lock_groups_that_become_free_are_seen_when_the_trust_ends() {
    let mut queue = Queue::new();
    let grouped = Dispatch {
        priority: 0,
        available_at: queue.micros,
        action_type: "x",
        lock_group: Some(1),
    };
    let (first, second) = (queue.add(grouped), queue.add(grouped));
    let mut session = Session::new(all());
    assert_eq!(session.claim(&mut queue, 1), [first]);
    queue.add_dead(0, 10_000);
    for _ in 0..2 {
        let other = queue.add_now(0);
        assert_eq!(session.claim(&mut queue, 1), [other]);
    }
    assert!(session.moved_cursor());
    queue.set(first, State::Dead);
    let freed_at = queue.micros;
    let mut claimed = Vec::new();
    while claimed != [second] {
        queue.add_now(0);
        claimed = session.claim(&mut queue, 1);
        queue.micros += 1_000;
        assert!(queue.micros - freed_at < 20 * 30_000);
    }
}
