//! Calls that concern dispatches, and what they do in the model.

use super::driver::Driver;
use super::world::{ADMIN, Dispatch, Instant, Status, days};
use chrono::TimeDelta;
use postgres::Row;
use uuid::Uuid;

const UNKNOWN: &str = "P0002";
const NOT_IN_STATE: &str = "55000";
/// A report that is fenced off.
const REFUSED: &str = "RC001";

impl Driver {
    pub fn claim(&mut self, role: &'static str) {
        let limit = self.pick(&[1, 1, 2, 5]);
        let now = self.world.now;
        let near = |at: Instant| (at - now).abs() < TimeDelta::minutes(10);
        // What comes back at about this moment may be claimable or not.
        let is_retry = |one: &Dispatch| {
            one.attempt > 0 && one.status == Status::Pending && one.available_at > now
        };
        if self
            .world
            .dispatches
            .values()
            .any(|one| is_retry(one) && near(one.available_at))
        {
            return;
        }
        let sql = r#"SELECT id, attempt, started_at, lease_expires_at FROM recur.claim($1, consumer => 'c')"#;
        let rows = self.run(role, sql, &[&limit], Ok(()));
        let is_claimable = |one: &Dispatch| {
            one.status == Status::Pending
                && self.world.sees(role, one.owner)
                && (one.available_at <= now || near(one.available_at))
        };
        let claimable: Vec<Uuid> = self
            .world
            .dispatches
            .iter()
            .filter(|(_, one)| is_claimable(one))
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(
            rows.len(),
            claimable.len().min(limit as usize),
            "how many\n{}",
            self.last_calls()
        );
        let claimed: Vec<Uuid> = rows.iter().map(|row| row.get(0)).collect();
        let place = |id: &Uuid| {
            let one = &self.world.dispatches[id];
            (-one.priority, one.available_at)
        };
        let last = claimed.iter().map(place).max();
        for id in &claimable {
            let waits = !claimed.contains(id);
            assert!(
                !waits || Some(place(id)) >= last,
                "{id} comes first\n{}",
                self.last_calls()
            );
        }
        for row in &rows {
            let id: Uuid = row.get(0);
            assert!(
                claimable.contains(&id),
                "{id} can't be claimed\n{}",
                self.last_calls()
            );
            if let Some(one) = self.world.dispatches.get_mut(&id) {
                one.status = Status::Running;
                one.attempt += 1;
                one.cancel_requested = false;
                one.started_at = row.get(2);
                one.lease_expires_at = row.get(3);
                assert_eq!(one.attempt, row.get::<_, i32>(1));
            }
        }
    }

    fn some_dispatch(&mut self) -> Uuid {
        // Mostly one that runs.
        let running = self.dice.roll(5) > 0;
        let is_wanted = |one: &Dispatch| !running || one.status == Status::Running;
        let ids = self
            .world
            .dispatches
            .iter()
            .filter(|(_, one)| is_wanted(one))
            .map(|(id, _)| *id)
            .collect();
        self.pick_id(ids)
    }

    /// A dispatch with the number of an attempt, and whether a report of that attempt is taken.
    fn some_report(&mut self, role: &'static str) -> (Uuid, i32, Result<(), &'static str>) {
        let id = self.some_dispatch();
        let wrong = self.dice.roll(6) == 0;
        let Some(one) = self
            .world
            .dispatches
            .get(&id)
            .filter(|one| self.world.sees(role, one.owner))
        else {
            return (id, 1, Err(UNKNOWN));
        };
        let attempt = one.attempt + i32::from(wrong);
        let is_leased = one
            .lease_expires_at
            .is_some_and(|until| until > self.world.now + TimeDelta::minutes(10));
        let is_taken = one.status == Status::Running && !wrong && is_leased;
        (id, attempt, is_taken.then_some(()).ok_or(REFUSED))
    }

    pub fn complete(&mut self, role: &'static str) {
        let (id, attempt, expected) = self.some_report(role);
        self.run(
            role,
            "SELECT * FROM recur.complete($1, $2)",
            &[&id, &attempt],
            expected,
        );
        if expected.is_ok() {
            self.world.end(id, Status::Completed);
        }
    }

    pub fn fail(&mut self, role: &'static str) {
        let (id, attempt, expected) = self.some_report(role);
        let retry = self.pick(&[true, true, false]);
        let sql = "SELECT available_at, status FROM recur.fail($1, $2, 'no', $3)";
        let rows = self.run(role, sql, &[&id, &attempt, &retry], expected);
        let Some(one) = self.world.dispatches.get(&id).filter(|_| expected.is_ok()) else {
            return;
        };
        if one.cancel_requested {
            self.world.end(id, Status::Cancelled);
        } else if !retry || one.attempt - one.releases >= one.max_attempts {
            self.world.end(id, Status::Failed);
        } else {
            let at: Instant = rows[0].get(0);
            let pause = at - self.world.now;
            assert!(
                pause > days(9) - days(1) && pause < days(11) + days(1),
                "{pause}"
            );
            self.pend(id, at);
        }
    }

    fn pend(&mut self, id: Uuid, available_at: Instant) {
        if let Some(one) = self.world.dispatches.get_mut(&id) {
            one.status = Status::Pending;
            one.available_at = available_at;
            one.lease_expires_at = None;
            one.cancel_requested = false;
        }
    }

    pub fn extend(&mut self, role: &'static str) {
        let (id, attempt, expected) = self.some_report(role);
        let sql = "SELECT cancel_requested FROM recur.extend($1, $2, '132 hours')";
        let rows = self.run(role, sql, &[&id, &attempt], expected);
        let now = self.world.now;
        if let Some(one) = self
            .world
            .dispatches
            .get_mut(&id)
            .filter(|_| expected.is_ok())
        {
            assert_eq!(rows[0].get::<_, bool>(0), one.cancel_requested);
            one.lease_expires_at = Some(now + TimeDelta::hours(132));
        }
    }

    pub fn release(&mut self, role: &'static str) {
        let (id, attempt, expected) = self.some_report(role);
        let rows = self.run(
            role,
            "SELECT available_at FROM recur.release($1, $2)",
            &[&id, &attempt],
            expected,
        );
        let Some(one) = self
            .world
            .dispatches
            .get_mut(&id)
            .filter(|_| expected.is_ok())
        else {
            return;
        };
        if one.cancel_requested {
            self.world.end(id, Status::Cancelled);
        } else {
            one.releases += 1;
            self.pend(id, rows[0].get(0));
        }
    }

    pub fn cancel(&mut self, role: &'static str) {
        let id = self.some_dispatch();
        let expected = match self.world.dispatches.get(&id) {
            Some(one) if self.world.sees(role, one.owner) => match one.status.is_live() {
                true => Ok(one.status),
                false => Err(NOT_IN_STATE),
            },
            _ => Err(UNKNOWN),
        };
        self.run(
            role,
            "SELECT * FROM recur.cancel($1)",
            &[&id],
            expected.map(|_| ()),
        );
        match (expected, self.world.dispatches.get_mut(&id)) {
            (Ok(Status::Pending), _) => self.world.end(id, Status::Cancelled),
            (Ok(_), Some(one)) => one.cancel_requested = true,
            _ => {}
        }
    }

    pub fn retry(&mut self, role: &'static str) {
        let is_dead = |one: &Dispatch| matches!(one.status, Status::Failed | Status::Cancelled);
        let anything = self.dice.roll(4) == 0;
        let ids = self
            .world
            .dispatches
            .iter()
            .filter(|(_, one)| anything || is_dead(one))
            .map(|(id, _)| *id)
            .collect();
        let id = self.pick_id(ids);
        let expected = match self.world.dispatches.get(&id) {
            Some(one) if self.world.sees(role, one.owner) => {
                is_dead(one).then_some(()).ok_or(NOT_IN_STATE)
            }
            _ => Err(UNKNOWN),
        };
        let rows: Vec<Row> = self.run(
            role,
            "SELECT available_at FROM recur.retry($1)",
            &[&id],
            expected,
        );
        if let Some(one) = self
            .world
            .dispatches
            .get_mut(&id)
            .filter(|_| expected.is_ok())
        {
            one.max_attempts = one.max_attempts.max(one.attempt - one.releases + 1);
            self.pend(id, rows[0].get(0));
        }
    }

    /// Gives up what has run for longer than two days and a half.
    pub fn recover(&mut self, role: &'static str) {
        let expected = if role == ADMIN { Ok(()) } else { Err("42501") };
        let rows = self.run(role, "SELECT recur.recover('60 hours')", &[], expected);
        let Some(row) = rows.first() else { return };
        let oldest = self.world.now - TimeDelta::hours(60);
        let is_old = |one: &Dispatch| {
            one.status == Status::Running && one.started_at.is_some_and(|at| at < oldest)
        };
        let old: Vec<Uuid> = self
            .world
            .dispatches
            .iter()
            .filter(|(_, one)| is_old(one))
            .map(|(id, _)| *id)
            .collect();
        assert_eq!(
            row.get::<_, i64>(0),
            old.len() as i64,
            "{}",
            self.last_calls()
        );
        for id in old {
            self.world.end(id, Status::Failed);
        }
    }
}
