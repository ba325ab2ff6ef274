use super::*;
use std::collections::BTreeMap;

fn at(seconds: f64) -> Instant {
    DateTime::UNIX_EPOCH + TimeDelta::microseconds((seconds * 1e6) as i64)
}

const NOW: f64 = 1000.0;

/// A database without a process, to be visited then.
fn waiting(id: u32, visit_at: f64) -> Database {
    Database {
        id,
        is_known: true,
        first: None,
        others: Vec::new(),
        not_before: DateTime::UNIX_EPOCH,
        visit_at: at(visit_at),
        needs_maintenance_since: None,
    }
}

/// A database with a process, in which something is due then.
fn served(id: u32, roams: bool, next_at: f64) -> Database {
    let first = Process {
        roams,
        is_leaving: false,
        next_at: Some(at(next_at)),
    };
    Database {
        first: Some(first),
        ..waiting(id, 0.0)
    }
}

fn server(capacity: usize, databases: &[Database]) -> Server {
    let running = databases
        .iter()
        .map(|one| usize::from(one.first.is_some()) + one.others.len())
        .sum();
    Server {
        capacity,
        running,
        maintenance_runs: false,
        dispatchers: 1,
        next_visit: DateTime::UNIX_EPOCH,
    }
}

fn steps(server: Server, databases: &[Database]) -> Vec<Step> {
    plan(server, databases, at(NOW)).steps
}

const STAYS: Role = Role::First { roams: false };
const ROAMS: Role = Role::First { roams: true };

#[test]
fn with_slots_for_all_each_database_has_its_own_process() {
    let databases = [waiting(1, 5.0), waiting(2, 4.0), served(3, false, 2000.0)];
    let expected = [Step::Start(2, STAYS), Step::Start(1, STAYS)];
    assert_eq!(steps(server(3, &databases), &databases), expected);
}

#[test]
fn a_pause_after_a_failure_is_kept() {
    let databases = [Database {
        not_before: at(NOW + 3.0),
        ..waiting(1, 0.0)
    }];
    let plan = plan(server(3, &databases), &databases, at(NOW));
    assert_eq!(plan.steps, []);
    assert_eq!(plan.look_at, Some(at(NOW + 3.0)));
}

#[test]
fn other_dispatchers_take_slots_that_are_free_otherwise() {
    let known = [served(1, false, 2000.0), served(2, false, 2000.0)];
    let server = Server {
        dispatchers: 3,
        ..server(5, &known)
    };
    let expected = [
        Step::Start(1, Role::Other(1)),
        Step::Start(2, Role::Other(1)),
        Step::Start(1, Role::Other(2)),
    ];
    assert_eq!(steps(server, &known), expected);
    let unknown = known.clone().map(|one| Database {
        is_known: false,
        ..one
    });
    assert_eq!(steps(server, &unknown), []);
}

#[test]
fn other_dispatchers_leave_when_a_database_lacks_its_first() {
    let mut first = served(1, false, 2000.0);
    first.others = vec![(1, false), (2, false)];
    let databases = [first, waiting(2, 0.0)];
    let server = Server {
        dispatchers: 3,
        ..server(3, &databases)
    };
    assert_eq!(steps(server, &databases), [Step::Leave(1, Role::Other(2))]);
    // One that is leaving already is enough.
    let mut leaving = databases.clone();
    leaving[0].others[1].1 = true;
    assert_eq!(steps(server, &leaving), []);
}

#[test]
fn a_new_database_beyond_the_slots_lets_the_idlest_dispatcher_roam() {
    let databases = [
        served(1, false, NOW + 1.0),
        served(2, false, NOW + 900.0),
        served(3, false, NOW + 60.0),
        waiting(4, NOW),
    ];
    assert_eq!(
        steps(server(3, &databases), &databases),
        [Step::Roam(2, true)]
    );
    let databases = [
        served(1, false, NOW + 1.0),
        served(2, true, NOW + 900.0),
        served(3, false, NOW + 60.0),
        waiting(4, NOW),
    ];
    assert_eq!(
        steps(server(3, &databases), &databases),
        [Step::Leave(2, ROAMS)]
    );
}

#[test]
fn the_roaming_dispatcher_stays_while_no_other_database_is_in_need() {
    let databases = [
        served(1, false, NOW + 1.0),
        served(2, true, NOW + 1.0),
        waiting(3, NOW + 0.5),
    ];
    let plan = plan(server(2, &databases), &databases, at(NOW));
    assert_eq!(plan.steps, []);
    assert_eq!(plan.look_at, Some(at(NOW + 0.5)));
}

#[test]
fn visits_are_spaced() {
    let databases = [
        served(1, false, NOW + 1.0),
        served(2, true, NOW + 1.0),
        waiting(3, NOW - 5.0),
    ];
    let server = Server {
        next_visit: at(NOW + 0.1),
        ..server(2, &databases)
    };
    let plan = plan(server, &databases, at(NOW));
    assert_eq!(plan.steps, []);
    assert_eq!(plan.look_at, Some(at(NOW + 0.1)));
}

#[test]
fn the_free_slot_goes_to_the_database_that_has_waited_longest() {
    let databases = [
        served(1, false, NOW + 1.0),
        waiting(2, NOW - 1.0),
        waiting(3, NOW - 2.0),
        waiting(4, NOW + 9.0),
    ];
    assert_eq!(
        steps(server(2, &databases), &databases),
        [Step::Start(3, ROAMS)]
    );
    // Of three slots one is free for a process that stays, and one for the visit.
    let expected = [Step::Start(3, STAYS), Step::Start(2, ROAMS)];
    assert_eq!(steps(server(3, &databases), &databases), expected);
}

#[test]
fn a_database_in_demand_takes_the_place_of_an_idle_one() {
    let databases = [
        served(1, false, NOW + 3600.0),
        served(2, true, NOW + 1.0),
        waiting(3, NOW),
    ];
    let expected = [
        Step::Roam(2, false),
        Step::Roam(1, true),
        Step::Leave(1, ROAMS),
    ];
    assert_eq!(steps(server(2, &databases), &databases), expected);
    // While it works, it is not known when it will be idle.
    let mut working = databases.clone();
    if let Some(first) = &mut working[1].first {
        first.next_at = None;
    }
    assert_eq!(
        steps(server(2, &working), &working),
        [Step::Leave(2, ROAMS)]
    );
}

#[test]
fn with_slots_back_all_stay() {
    let databases = [
        served(1, false, NOW + 1.0),
        served(2, true, NOW + 1.0),
        waiting(3, NOW + 5.0),
    ];
    let expected = [Step::Start(3, STAYS), Step::Roam(2, false)];
    assert_eq!(steps(server(3, &databases), &databases), expected);
}

#[test]
fn with_one_slot_all_are_visited() {
    let databases = [waiting(1, NOW), waiting(2, NOW - 1.0)];
    assert_eq!(
        steps(server(1, &databases), &databases),
        [Step::Start(2, ROAMS)]
    );
    assert_eq!(steps(server(0, &databases), &databases), []);
}

#[test]
fn fewer_slots_send_the_idlest_away() {
    let databases = [
        served(1, false, NOW + 1.0),
        served(2, false, NOW + 3600.0),
        served(3, false, NOW + 60.0),
    ];
    let expected = [Step::Leave(2, STAYS), Step::Roam(3, true)];
    let steps = steps(server(2, &databases), &databases);
    assert_eq!(steps[0], expected[0]);
}

#[test]
fn maintenance_takes_a_free_slot_or_a_turn_of_the_roaming_one() {
    let mut databases = vec![served(1, false, NOW + 1.0), served(2, false, NOW + 1.0)];
    databases[0].needs_maintenance_since = Some(at(NOW - 1.0));
    let start = [Step::Start(1, Role::Maintenance)];
    assert_eq!(steps(server(3, &databases), &databases), start);
    // All slots are taken: one of the dispatchers roams until it is done.
    let roam = [Step::Roam(2, true)];
    assert_eq!(steps(server(2, &databases), &databases), roam);
    databases[1] = served(2, true, NOW + 1.0);
    let leave = [Step::Leave(2, ROAMS)];
    assert_eq!(steps(server(2, &databases), &databases), leave);
    databases[1] = waiting(2, NOW);
    assert_eq!(steps(server(2, &databases), &databases), start);
    // It waits its turn behind a database that has waited longer.
    databases[1] = waiting(2, NOW - 2.0);
    assert_eq!(
        steps(server(2, &databases), &databases),
        [Step::Start(2, ROAMS)]
    );
    // And meanwhile no other one begins.
    let running = Server {
        maintenance_runs: true,
        running: 2,
        ..server(2, &databases)
    };
    assert_eq!(steps(running, &databases), []);
}

/// What the launcher does with plans, with visits that take no time: when each database was last visited.
fn simulate(capacity: usize, count: u32, busy: &[u32], seconds: u32) -> BTreeMap<u32, Vec<f64>> {
    let round = f64::from(count) * 0.5;
    let mut databases: Vec<Database> = (1..=count).map(|id| waiting(id, 0.0)).collect();
    let mut visits: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    let mut next_visit = 0.0;
    for step in 0..seconds * 100 {
        let now = f64::from(step) / 100.0;
        for database in &mut databases {
            let next = if busy.contains(&database.id) {
                now + 1.0
            } else {
                now + 1e6
            };
            if let Some(first) = &mut database.first {
                first.next_at = Some(at(next));
            }
        }
        let server = Server {
            next_visit: at(next_visit),
            ..server(capacity, &databases)
        };
        for step in plan(server, &databases, at(now)).steps {
            let (Step::Start(id, _) | Step::Leave(id, _) | Step::Roam(id, _)) = step;
            let one = &mut databases[id as usize - 1];
            match step {
                Step::Start(_, Role::First { roams }) => {
                    one.first = served(id, roams, 0.0).first;
                    visits.entry(id).or_default().push(now);
                    if roams {
                        next_visit = now + 0.1;
                    }
                }
                Step::Leave(..) => {
                    one.first = None;
                    one.visit_at = at(if busy.contains(&id) {
                        now + 1.0
                    } else {
                        now + round
                    });
                }
                Step::Roam(_, roams) => {
                    if let Some(first) = &mut one.first {
                        first.roams = roams;
                    }
                }
                Step::Start(..) => {}
            }
        }
        let running = databases.iter().filter(|one| one.first.is_some()).count();
        assert!(running <= capacity, "{running} processes");
    }
    visits
}

#[test]
fn no_database_starves_beside_busy_ones() {
    let busy: Vec<u32> = (1..=15).collect();
    for capacity in [1, 2, 4] {
        let visits = simulate(capacity, 20, &busy, 120);
        for id in 16..=20 {
            let visits = visits.get(&id).expect("it is visited");
            let gaps = visits.windows(2).map(|pair| pair[1] - pair[0]);
            let longest = gaps.fold(visits[0], f64::max);
            assert!(
                longest < 30.0,
                "{id} waits {longest} s with {capacity} slots"
            );
        }
    }
}

#[test]
fn busy_databases_end_up_with_processes_of_their_own() {
    let visits = simulate(4, 20, &[18, 19, 20], 120);
    for id in 18..=20 {
        let last = visits[&id].last().copied().unwrap_or_default();
        assert!(last < 60.0, "{id} is still visited after {last} s");
    }
}
