//! What follows from a change of the state: pauses, resumptions, ends, and dispatches that were created ahead.

use super::fixtures::{
    Text, all_shown, at, change, changes, environment, json, now, paused, refuses, running,
    tomorrow, update, withdrawing,
};
use super::{Action, Code, Column, Interval, Timer, Value, Withdrawn, pause, resume};

#[test]
fn a_pause() {
    let before = running([]);
    let asked = pause(&before, Some("holidays")).unwrap();
    let change = change(&before, &asked).unwrap();
    let paused = change
        .effect(Withdrawn::default(), now(), &environment())
        .unwrap();
    assert_eq!(
        paused.action.timer,
        Timer {
            paused_reason: Some("holidays".into()),
            missed_from: Some(tomorrow()),
            ..Timer::default()
        }
    );
    assert_eq!(all_shown(&paused.events), ["action.paused reason=holidays"]);
    assert!(paused.changes_timer);
}

#[test]
fn a_resumption_tells_what_was_missed() {
    let mut before = paused([]);
    before.timer.error_count = 2;
    let change = change(&before, &resume(&before).unwrap()).unwrap();
    let resumed = change
        .effect(Withdrawn::default(), now(), &environment())
        .unwrap();
    assert_eq!(
        resumed.action.timer,
        Timer {
            enabled: true,
            next_run_at: Some(tomorrow()),
            due_at: Some(tomorrow()),
            ..Timer::default()
        }
    );
    assert_eq!(
        all_shown(&resumed.events),
        [
            "occurrence.skipped reason=paused, from=2027-03-30 09:00:00+00, until=2027-04-01 09:00:00+00, count=3",
            "action.resumed next_run_at=2027-04-02 09:00:00+00"
        ]
    );
    // Nothing was missed.
    before.timer.missed_from = Some(tomorrow());
    let resumed = update(&before, [(Column::Enabled, true.into())]).unwrap();
    assert_eq!(
        all_shown(&resumed.events),
        ["action.resumed next_run_at=2027-04-02 09:00:00+00"]
    );
    assert_eq!(resumed.action.timer.missed_from, None);
    // By the schedule that it has now, nothing was.
    let mut yearly = paused([]);
    yearly.definition.set(Column::Schedule, "@yearly".into());
    let resumed = update(&yearly, [(Column::Enabled, true.into())]).unwrap();
    assert_eq!(
        all_shown(&resumed.events),
        ["action.resumed next_run_at=2028-01-01 00:00:00+00"]
    );
}

#[test]
fn other_changes_in_a_pause_or_resumption_have_their_own_event() {
    let resumed = update(
        &paused([]),
        [
            (Column::Priority, 1.into()),
            (Column::Enabled, true.into()),
            (Column::Horizon, Interval::seconds(60).into()),
        ],
    )
    .unwrap();
    assert_eq!(
        all_shown(&resumed.events)[1..],
        [
            "action.resumed next_run_at=2027-04-02 09:00:00+00",
            "action.updated old={priority=0, horizon=NULL}, new={priority=1, horizon=00:01:00}"
        ]
    );
    assert_eq!(resumed.action.timer.due_at, Some(now()));
}

#[test]
fn what_has_no_run_left_is_not_resumed() {
    let mut exhausted = paused([(Column::MaxRuns, 5.into())]);
    exhausted.timer.run_count = 5;
    let invalid = update(&exhausted, [(Column::Enabled, true.into())]).unwrap_err();
    assert_eq!(invalid.code, Code::NotInPrerequisiteState);
    assert_eq!(invalid.message, "action \"n\" has had all of its 5 runs");
    assert_eq!(invalid.hint.unwrap(), "Raise max_runs first.");

    let expired = paused([(Column::EndsAt, at("2027-03-31T00:00:00Z").into())]);
    let invalid = update(&expired, [(Column::Enabled, true.into())]).unwrap_err();
    assert_eq!(invalid.code, Code::NotInPrerequisiteState);
    assert_eq!(invalid.message, "action \"n\" has no occurrence left");
    assert_eq!(
        invalid.detail.unwrap(),
        "Its schedule is \"0 9 * * *\" and its ends_at is 2027-03-31 00:00:00+00."
    );
    assert_eq!(
        invalid.hint.unwrap(),
        "Change the schedule or ends_at first."
    );

    let mut once = paused([]);
    once.definition
        .set(Column::Schedule, "at 2027-03-31T00:00:00".into());
    let invalid = update(&once, [(Column::Enabled, true.into())]).unwrap_err();
    assert_eq!(
        invalid.detail.unwrap(),
        "Its schedule is \"at 2027-03-31T00:00:00\" and its ends_at is not set."
    );

    // With its end moved, it is.
    exhausted.timer.ended_reason = Some("exhausted".into());
    let resumed = update(
        &exhausted,
        [(Column::MaxRuns, 6.into()), (Column::Enabled, true.into())],
    )
    .unwrap();
    assert_eq!(resumed.action.timer.ended_reason, None);
    assert!(resumed.action.timer.enabled);
    // Its end alone starts it again.
    let moved = update(&exhausted, [(Column::MaxRuns, 6.into())]).unwrap();
    let timer = moved.action.timer;
    assert_eq!((timer.enabled, timer.ended_reason), (true, None));
    assert_eq!((timer.paused_reason, timer.missed_from), (None, None));
    assert_eq!(
        (timer.next_run_at, timer.due_at),
        (Some(tomorrow()), Some(tomorrow()))
    );
}

#[test]
fn what_is_counted_says_whether_it_ends_and_goes_on() {
    let mut ended = paused([(Column::MaxRuns, 3.into())]);
    ended.timer.run_count = 3;
    ended.timer.ended_reason = Some("exhausted".into());
    ended.completed_count = 2;
    // One of its runs has failed, which counted.
    let revived = update(&ended, [(Column::CountRuns, "completed".into())]).unwrap();
    assert!(revived.action.timer.enabled);
    assert_eq!(revived.action.definition.max_completed(), Some(3));
    ended.completed_count = 3;
    let kept = update(&ended, [(Column::CountRuns, "completed".into())]).unwrap();
    assert_eq!(kept.action.timer, ended.timer);

    let mut counting = running([
        (Column::MaxRuns, 9.into()),
        (Column::CountRuns, "completed".into()),
    ]);
    counting.timer.run_count = 8;
    counting.completed_count = 4;
    assert_eq!(counting.runs(), 4);
    assert!(update(&counting, [(Column::MaxRuns, 5.into())]).is_ok());
    let invalid = update(&counting, [(Column::MaxRuns, 4.into())]).unwrap_err();
    assert_eq!(
        invalid.message,
        "invalid max_runs \"4\": the action has had 4 runs already"
    );
}

#[test]
fn only_a_paused_action_has_a_reason() {
    let not_paused = "invalid paused_reason \"why\": the action is not paused";
    let hint = "recur.pause takes a reason.";
    let why = || (Column::PausedReason, "why".into());
    refuses(&running([]), [why()], not_paused, hint);
    refuses(
        &paused([]),
        [(Column::Enabled, true.into()), why()],
        not_paused,
        hint,
    );
    let update = update(&paused([]), [why()]).unwrap();
    assert_eq!(update.action.timer.paused_reason.as_deref(), Some("why"));
    assert_eq!(
        all_shown(&update.events),
        ["action.updated old={paused_reason=holidays}, new={paused_reason=why}"]
    );
}

#[test]
fn what_was_created_ahead_is_created_again() {
    let mut before = running([(Column::Horizon, Interval::seconds(6 * 3600).into())]);
    before.timer.run_count = 6;
    before.timer.next_run_at = Some(at("2027-04-05T09:00:00Z"));
    before.timer.last_run_at = Some(at("2027-04-04T09:00:00Z"));
    before.timer.due_at = before.timer.next_run_at;
    let update = withdrawing(&before, [(Column::Payload, json("{\"n\": 2}"))]);
    assert_eq!(
        update.action.timer,
        Timer {
            enabled: true,
            run_count: 3,
            last_run_at: Some(at("2027-04-01T09:00:00Z")),
            next_run_at: Some(tomorrow()),
            due_at: Some(now()),
            ..Timer::default()
        }
    );
    // A pause misses the first of those that were withdrawn.
    let paused = withdrawing(&before, [(Column::Enabled, false.into())]);
    assert_eq!(paused.action.timer.missed_from, Some(tomorrow()));
    assert_eq!(
        (paused.action.timer.next_run_at, paused.action.timer.due_at),
        (None, None)
    );
    // What is overdue stays so.
    before.timer.next_run_at = Some(at("2027-04-01T09:00:00Z"));
    let update = withdrawing(&before, [(Column::Priority, 1.into())]);
    assert_eq!(
        update.action.timer.next_run_at,
        Some(at("2027-04-01T09:00:00Z"))
    );
}

/// An action of three runs, all ahead of their time, that ran yesterday.
fn with_all_ahead() -> Action<Text> {
    let mut action = running([(Column::MaxRuns, 4.into())]);
    action.timer = Timer {
        enabled: true,
        run_count: 4,
        last_run_at: Some(at("2027-04-04T09:00:00Z")),
        next_ahead: Some(tomorrow()),
        ran_at: Some(at("2027-03-31T09:00:00Z")),
        due_at: Some(tomorrow()),
        ..Timer::default()
    };
    action
}

#[test]
fn what_is_ahead_is_the_next_run_and_not_the_last() {
    let timer = with_all_ahead().timer;
    assert_eq!(timer.next_due(), Some(tomorrow()));
    assert_eq!(timer.last_due(), Some(at("2027-03-31T09:00:00Z")));
    let timer = Timer {
        next_ahead: None,
        next_run_at: Some(tomorrow()),
        ..timer
    };
    assert_eq!(timer.next_due(), Some(tomorrow()));
    assert_eq!(timer.last_due(), Some(at("2027-04-04T09:00:00Z")));
    let disabled = Timer {
        enabled: false,
        next_ahead: Some(tomorrow()),
        ..timer
    };
    assert_eq!(disabled.next_due(), None);
}

#[test]
fn an_action_whose_runs_are_all_ahead_can_be_paused_and_edited() {
    let before = with_all_ahead();
    let paused = withdrawing(&before, [(Column::Enabled, false.into())]);
    assert_eq!(
        paused.action.timer,
        Timer {
            run_count: 1,
            last_run_at: Some(at("2027-04-01T09:00:00Z")),
            missed_from: Some(tomorrow()),
            ..Timer::default()
        }
    );
    assert_eq!(all_shown(&paused.events), ["action.paused withdrawn=3"]);
    let edited = withdrawing(&before, [(Column::Priority, 1.into())]);
    let timer = edited.action.timer;
    assert_eq!(
        (timer.next_run_at, timer.next_ahead, timer.run_count),
        (Some(tomorrow()), None, 1)
    );
    assert_eq!(
        all_shown(&edited.events),
        ["action.updated old={priority=0}, new={priority=1}, withdrawn=3"]
    );
}

/// Its occurrence would otherwise be dispatched again.
#[test]
fn what_was_cancelled_ahead_is_remembered() {
    let before = with_all_ahead();
    let cancelled = Some(at("2027-04-03T09:00:00Z"));
    let withdrawn = Withdrawn {
        count: 2,
        last_run_at: cancelled,
    };
    let change = change(&before, &changes([(Column::Priority, 1.into())])).unwrap();
    let timer = change.effect(withdrawn, now(), &environment());
    let timer = timer.unwrap().action.timer;
    assert_eq!(
        (timer.last_run_at, timer.next_ahead),
        (cancelled, cancelled)
    );
    assert_eq!(timer.last_due(), Some(at("2027-03-31T09:00:00Z")));
    assert_eq!(timer.next_due(), Some(tomorrow()));
}

#[test]
fn what_ended_ahead_is_revived() {
    let mut ended = paused([(Column::MaxRuns, 3.into())]);
    ended.timer.paused_reason = None;
    ended.timer.missed_from = None;
    ended.timer.run_count = 3;
    ended.timer.ended_reason = Some("exhausted".into());
    let revived = withdrawing(&ended, [(Column::Priority, 1.into())]);
    let timer = &revived.action.timer;
    assert_eq!(
        (
            timer.enabled,
            timer.ended_reason.as_deref(),
            timer.run_count
        ),
        (true, None, 0)
    );
    assert_eq!(timer.next_run_at, Some(tomorrow()));
    assert_eq!(
        all_shown(&revived.events),
        [
            "action.updated old={priority=0, enabled=false, ended_reason=exhausted, next_run_at=NULL}, \
          new={priority=1, enabled=true, ended_reason=NULL, next_run_at=2027-04-02 09:00:00+00}, withdrawn=3"
        ]
    );
    // Unless it is to be disabled: then it is paused.
    let kept = withdrawing(
        &ended,
        [
            (Column::Priority, 1.into()),
            (Column::Enabled, false.into()),
        ],
    );
    let timer = &kept.action.timer;
    assert_eq!(
        (timer.enabled, timer.ended_reason.as_deref()),
        (false, None)
    );
    assert_eq!(
        (timer.next_run_at, timer.missed_from),
        (None, Some(tomorrow()))
    );
    assert_eq!(
        all_shown(&kept.events),
        [
            "action.paused withdrawn=3",
            "action.updated old={priority=0}, new={priority=1}"
        ]
    );
    // Nothing was withdrawn, nothing is revived.
    for (column, value) in [
        (Column::Priority, 1.into()),
        (Column::HorizonCount, 2.into()),
        // It has had all of its runs, and may be edited nevertheless.
        (Column::Timezone, "Asia/Tokyo".into()),
    ] {
        let update = update(&ended, [(column, value)]).unwrap();
        assert_eq!(update.action.timer, ended.timer, "{}", column.name());
    }
}

#[test]
fn another_horizon_is_looked_at_now() {
    for (column, value) in [
        (Column::Horizon, Value::<Text>::from(Interval::seconds(60))),
        (Column::HorizonCount, 2.into()),
    ] {
        let update = update(&running([]), [(column, value)]).unwrap();
        let timer = update.action.timer;
        assert_eq!(
            (timer.next_run_at, timer.due_at),
            (Some(tomorrow()), Some(now()))
        );
    }
    let mut before = running([(Column::HorizonCount, 2.into())]);
    before.timer.due_at = Some(now());
    let timer = update(&before, [(Column::HorizonCount, Value::Null)])
        .unwrap()
        .action
        .timer;
    assert_eq!(timer.due_at, Some(tomorrow()));
    let timer = update(&paused([]), [(Column::HorizonCount, 2.into())])
        .unwrap()
        .action
        .timer;
    assert_eq!(timer, paused([]).timer);
}
