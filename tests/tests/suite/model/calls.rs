//! Calls that concern actions, and what they do in the model.

use super::driver::Driver;
use super::world::{ADMIN, Action, Dispatch, Instant, ROLES, Status, Ticked, days};
use chrono::TimeDelta;
use postgres::Row;
use serde_json::json;
use uuid::Uuid;

const UNKNOWN: &str = "P0002";
const NOT_IN_STATE: &str = "55000";
const INVALID: &str = "22023";
const BACKOFF: &str = r#"{"base": "10 days", "factor": 1, "cap": "10 days"}"#;

impl Driver {
    /// One call, by chance.
    pub fn call(&mut self) {
        let role = self.pick(&ROLES);
        match self.dice.roll(40) {
            0..=3 => self.create(role),
            4..=5 => self.update(role),
            6 => self.pause(role),
            7 => self.resume(role),
            8 => self.delete(role),
            9..=10 => self.trigger(role),
            11 => self.backfill(role),
            12..=14 => self.enqueue(role),
            15..=18 => self.tick(role),
            19..=21 => {
                let days = self.pick(&[1, 1, 2, 4]);
                self.pass_days(days);
            }
            22..=27 => self.claim(role),
            28..=30 => self.complete(role),
            31..=33 => self.fail(role),
            34 => self.extend(role),
            35 => self.release(role),
            36 => self.cancel(role),
            37..=38 => self.retry(role),
            _ => self.recover(role),
        }
    }

    fn some_action(&mut self) -> Uuid {
        let ids = self.world.actions.keys().copied().collect();
        self.pick_id(ids)
    }

    /// Whether a role sees an action.
    fn sees_action(&self, role: &str, id: Uuid) -> bool {
        let action = self.world.actions.get(&id);
        action.is_some_and(|action| self.world.sees(role, action.owner))
    }

    fn create(&mut self, role: &'static str) {
        let hour = self.pick(&[0, 6]);
        let action = Action {
            owner: role,
            name: self.pick(&["a", "b", "c", "d"]),
            hour,
            payload: self.dice.roll(100) as i64,
            misfire: self.pick(&["once", "all"]),
            overlap: self.pick(&["allow", "skip", "queue_one", "cancel_previous"]),
            max_runs: self.pick(&[None, None, Some(1), Some(3)]),
            max_attempts: self.pick(&[1, 2, 3]),
            priority: self.pick(&[0, 0, 5]),
            enabled: true,
            next_run_at: Some(self.world.next_at(hour)),
            run_count: 0,
            paused_reason: None,
            ended_reason: None,
            completed: 0,
            failed: 0,
        };
        let same = |one: &Action| one.owner == role && one.name == action.name;
        let existing = self
            .world
            .actions
            .iter()
            .find(|(_, one)| same(one))
            .map(|(id, _)| *id);
        let on_existing = self.pick(&["fail", "upsert"]);
        let changed = existing.map(|id| self.changed(id, &action));
        let expected = match (&changed, on_existing) {
            (None, _) => Ok(()),
            (Some(_), "fail") => Err("23505"),
            (Some(changed), _) => changed.as_ref().map(|_| ()).map_err(|code| *code),
        };
        let max_runs = action.max_runs.map(|most| most as i32);
        let rows = self.run(
            role,
            "SELECT recur.create($1, $2, 'p', 'a', $3, misfire => $4, overlap => $5, max_runs => $6, max_attempts => $7,
                                 priority => $8, retry_backoff => $9::text::jsonb, lease => '84 hours',
                                 on_existing => $10)",
            &[
                &action.name,
                &format!("0 {hour} * * *"),
                &json!({"n": action.payload}),
                &action.misfire,
                &action.overlap,
                &max_runs,
                &action.max_attempts,
                &action.priority,
                &BACKOFF,
                &on_existing,
            ],
            expected,
        );
        if expected.is_ok() {
            let id: Uuid = rows[0].get(0);
            assert!(existing.is_none_or(|existing| existing == id));
            let action = changed.and_then(Result::ok).unwrap_or(action);
            self.world.actions.insert(id, action);
        }
    }

    /// The action with the definition of another one: its state stays, and another schedule or limit moves the next
    /// run.
    fn changed(&self, id: Uuid, wanted: &Action) -> Result<Action, &'static str> {
        let before = &self.world.actions[&id];
        let mut after = Action {
            hour: wanted.hour,
            payload: wanted.payload,
            misfire: wanted.misfire,
            overlap: wanted.overlap,
            max_runs: wanted.max_runs,
            max_attempts: wanted.max_attempts,
            priority: wanted.priority,
            ..before.clone()
        };
        let changes_limit = before.max_runs != after.max_runs;
        if changes_limit && after.max_runs.is_some_and(|most| most <= before.run_count) {
            return Err(INVALID);
        }
        let is_moved = changes_limit || before.hour != after.hour;
        let is_exhausted = after.max_runs.is_some_and(|most| after.run_count >= most);
        if is_moved && after.ended_reason.is_some() && !is_exhausted {
            after.enabled = true;
            after.ended_reason = None;
        }
        if is_moved && after.enabled {
            after.next_run_at = Some(self.world.next_at(after.hour));
        }
        Ok(after)
    }

    fn update(&mut self, role: &'static str) {
        let id = self.some_action();
        let mut wanted = self.world.actions.get(&id).cloned();
        let mut changes = serde_json::Map::new();
        let (hour, number, most) = (
            self.pick(&[0, 6]),
            self.dice.roll(100) as i64,
            self.pick(&[None, Some(2), Some(5)]),
        );
        let overlap = self.pick(&["allow", "skip", "cancel_previous"]);
        let which = self.dice.roll(16);
        if let Some(wanted) = &mut wanted {
            if which & 1 != 0 {
                wanted.hour = hour;
                changes.insert("schedule".to_owned(), json!(format!("0 {hour} * * *")));
            }
            if which & 2 != 0 {
                wanted.payload = number;
                changes.insert("payload".to_owned(), json!({"n": number}));
            }
            if which & 4 != 0 {
                wanted.max_runs = most;
                changes.insert("max_runs".to_owned(), json!(most));
            }
            if which & 8 != 0 {
                wanted.overlap = overlap;
                changes.insert("overlap".to_owned(), json!(overlap));
            }
        }
        let changed = match wanted.filter(|_| self.sees_action(role, id)) {
            Some(wanted) => self.changed(id, &wanted),
            None => Err(UNKNOWN),
        };
        let expected = changed.as_ref().map(|_| ()).map_err(|code| *code);
        let changes = serde_json::Value::Object(changes);
        self.run(
            role,
            "SELECT * FROM recur.update($1::uuid, $2)",
            &[&id, &changes],
            expected,
        );
        if let Ok(action) = changed {
            self.world.actions.insert(id, action);
        }
    }

    fn pause(&mut self, role: &'static str) {
        let id = self.some_action();
        let reason = self.pick(&[None, Some("tired")]);
        let expected = match self.world.actions.get(&id) {
            Some(action) if self.world.sees(role, action.owner) => match action.enabled {
                true => Ok(()),
                false => Err(NOT_IN_STATE),
            },
            _ => Err(UNKNOWN),
        };
        self.run(
            role,
            "SELECT * FROM recur.pause($1::uuid, $2)",
            &[&id, &reason],
            expected,
        );
        if let Some(action) = self.world.actions.get_mut(&id).filter(|_| expected.is_ok()) {
            action.enabled = false;
            action.next_run_at = None;
            action.paused_reason = reason;
        }
    }

    fn resume(&mut self, role: &'static str) {
        let id = self.some_action();
        let next = |hour| self.world.next_at(hour);
        let expected = match self.world.actions.get(&id) {
            Some(action) if self.world.sees(role, action.owner) => {
                let is_exhausted = action.max_runs.is_some_and(|most| action.run_count >= most);
                match action.enabled || is_exhausted {
                    true => Err(NOT_IN_STATE),
                    false => Ok(Some(next(action.hour))),
                }
            }
            _ => Err(UNKNOWN),
        };
        self.run(
            role,
            "SELECT * FROM recur.resume($1::uuid)",
            &[&id],
            expected.map(|_| ()),
        );
        if let (Ok(next), Some(action)) = (expected, self.world.actions.get_mut(&id)) {
            action.enabled = true;
            action.next_run_at = next;
            action.paused_reason = None;
            action.ended_reason = None;
        }
    }

    fn delete(&mut self, role: &'static str) {
        let id = self.some_action();
        let expected = self.sees_action(role, id).then_some(()).ok_or(UNKNOWN);
        self.run(
            role,
            "SELECT * FROM recur.delete($1::uuid)",
            &[&id],
            expected,
        );
        if expected.is_ok() {
            self.world.cancel_pending(id);
            self.world.actions.remove(&id);
        }
    }

    fn trigger(&mut self, role: &'static str) {
        let id = self.some_action();
        let payload = self.pick(&[None, Some(7)]);
        let expected = self.sees_action(role, id).then_some(()).ok_or(UNKNOWN);
        let given = payload.map(|number| json!({"n": number}));
        let rows = self.run(
            role,
            "SELECT recur.trigger($1::uuid, $2, overlap => 'allow')",
            &[&id, &given],
            expected,
        );
        if expected.is_ok() {
            let dispatch: Uuid = rows[0].get(0);
            let at = self.created_now(dispatch);
            self.world.add(dispatch, id, "manual", at);
            if let (Some(payload), Some(one)) = (payload, self.world.dispatches.get_mut(&dispatch))
            {
                one.payload = payload;
            }
        }
    }

    /// When a dispatch was created that is available at once: about now.
    fn created_now(&mut self, dispatch: Uuid) -> Instant {
        let sql = "SELECT scheduled_at FROM recur.dispatches WHERE id = $1";
        let rows = self.run(ADMIN, sql, &[&dispatch], Ok(()));
        let at: Instant = rows[0].get(0);
        assert!((at - self.world.now).abs() < TimeDelta::minutes(10), "{at}");
        at
    }

    /// What is backfilled is available from now on, and not from its occurrence.
    fn read_availability(&mut self, is_new: impl Fn(&Dispatch) -> bool) {
        let sql = "SELECT id, available_at FROM recur.dispatches WHERE status = 'pending'";
        let rows = self.run(ADMIN, sql, &[], Ok(()));
        for row in rows {
            let at: Instant = row.get(1);
            let one = self.world.dispatches.get_mut(&row.get(0));
            if let Some(one) = one.filter(|one| is_new(one)) {
                assert!((at - self.world.now).abs() < TimeDelta::minutes(10), "{at}");
                one.available_at = at;
            }
        }
    }

    fn backfill(&mut self, role: &'static str) {
        let id = self.some_action();
        let from = self.world.now - days(self.pick(&[2, 3, 6]));
        // An hour ago at the latest: a backfill does not reach into the future.
        let until = self.world.now - days(self.pick(&[0, 1])) - TimeDelta::hours(1);
        let limit = self.pick(&[1, 2, 1000]);
        let expected = self.sees_action(role, id).then_some(()).ok_or(UNKNOWN);
        let sql = "SELECT dispatch_id, scheduled_at FROM recur.backfill($1::uuid, $2, $3, $4)";
        let rows = self.run(role, sql, &[&id, &from, &until, &limit], expected);
        if expected.is_err() {
            return;
        }
        let action = self.world.actions[&id].clone();
        let all = self.world.occurrences(action.hour, from, until);
        let left = action.max_runs.map_or(limit as usize, |most| {
            (most - action.run_count).max(0) as usize
        });
        let missing: Vec<Instant> = all
            .into_iter()
            .filter(|at| action.next_run_at.is_none_or(|next| *at < next))
            .filter(|at| !self.world.has_dispatch(id, *at))
            .take(left.min(limit as usize))
            .collect();
        let made: Vec<Instant> = rows.iter().map(|row| row.get(1)).collect();
        assert_eq!(made, missing, "{}", self.last_calls());
        for row in &rows {
            self.world.add(row.get(0), id, "backfill", row.get(1));
        }
        if let Some(action) = self.world.actions.get_mut(&id) {
            action.run_count += made.len() as i64;
            if action.enabled && action.max_runs.is_some_and(|most| action.run_count >= most) {
                action.enabled = false;
                action.next_run_at = None;
                action.ended_reason = Some("exhausted");
            }
        }
        self.read_availability(|one| {
            one.trigger == "backfill" && one.available_at == one.scheduled_at
        });
    }

    fn enqueue(&mut self, role: &'static str) {
        let key = self.pick(&[None, None, Some("k"), Some("l")]);
        let number = self.dice.roll(100) as i64;
        let window = self
            .pick(&[None, Some("60 hours")])
            .filter(|_| key.is_some());
        let (max_attempts, priority) = (self.pick(&[1, 2]), self.pick(&[0, 5]));
        let sql = "SELECT recur.enqueue('p', 'a', $1, dedup_key => $2, dedup_window => $3::text::interval,
                                        max_attempts => $4,
                                        priority => $5, retry_backoff => $6::text::jsonb, lease => '84 hours')";
        let payload = json!({"n": number});
        let parameters: &[&(dyn postgres::types::ToSql + Sync)] =
            &[&payload, &key, &window, &max_attempts, &priority, &BACKOFF];
        let rows: Vec<Row> = self.run(role, sql, parameters, Ok(()));
        let id: Uuid = rows[0].get(0);
        let oldest = window.map(|_| self.world.now - TimeDelta::hours(60));
        let is_same = |one: &Dispatch| {
            one.owner == role
                && one.trigger == "enqueue"
                && one.status == Status::Pending
                && one.dedup_key == key
                && oldest.is_none_or(|oldest| one.created_at > oldest)
        };
        let same = self
            .world
            .dispatches
            .iter()
            .filter(|(_, one)| key.is_some() && is_same(one));
        let latest = same
            .max_by_key(|(_, one)| one.created_at)
            .map(|(id, _)| *id);
        if let Some(latest) = latest {
            assert_eq!(id, latest, "a duplicate\n{}", self.last_calls());
            if let Some(one) = self.world.dispatches.get_mut(&latest) {
                one.payload = number;
                one.priority = priority;
            }
            return;
        }
        assert!(
            !self.world.dispatches.contains_key(&id),
            "no duplicate\n{}",
            self.last_calls()
        );
        let at = self.created_now(id);
        let made = Dispatch {
            action: None,
            owner: role,
            trigger: "enqueue",
            scheduled_at: at,
            payload: number,
            status: Status::Pending,
            attempt: 0,
            releases: 0,
            max_attempts,
            priority,
            available_at: at,
            created_at: at,
            started_at: None,
            lease_expires_at: None,
            cancel_requested: false,
            dedup_key: key,
        };
        self.world.dispatches.insert(id, made);
    }

    fn tick(&mut self, role: &'static str) {
        let expected = if role == ADMIN { Ok(()) } else { Err("42501") };
        let rows = self.run(role, "SELECT * FROM recur.tick()", &[], expected);
        let Some(row) = rows.first() else { return };
        let ids = self.run(
            ADMIN,
            "SELECT action_id, scheduled_at, id FROM recur.dispatches WHERE trigger = 'schedule'",
            &[],
            Ok(()),
        );
        let id_of = |action: Uuid, at: Instant| {
            let is_it = |row: &&Row| {
                row.get::<_, Option<Uuid>>(0) == Some(action) && row.get::<_, Instant>(1) == at
            };
            ids.iter().find(is_it).map_or(Uuid::nil(), |row| row.get(2))
        };
        let ticked = self.world.tick(id_of);
        let found = Ticked {
            dispatched: row.get(0),
            skipped: row.get(1),
            ended: row.get(2),
        };
        assert_eq!(found, ticked, "{}", self.last_calls());
        assert_eq!(row.get::<_, i64>(3), 0, "no action fails");
    }
}
