//! Messages to the contacts of actions. A message is an event: a program that delivers messages listens for the id, and
//! reads the event. Everything here runs as the engine.

use crate::access::Actor;
use crate::history::events::{self, Change};
use crate::pg::jsonb::Jsonb;
use crate::pg::query::{Row, fragment, pg_uuids, queries};
use crate::pg::time;
use crate::runtime::{clock, settings};
use chrono::{DateTime, TimeDelta, Utc};
use recur_core::action::Json;
use recur_core::alarm::Alarm;
use recur_core::event::EventKind;
use recur_core::notice::{Notice, Report, Streak, Terms};
use serde_json::json;
use uuid::Uuid;

queries! {
    RECIPIENTS = "alerts/queries/recipients.sql" {recipient: RECIPIENT_COLUMNS} (UUIDARRAYOID);
    NOTE_NOTIFIED = "alerts/queries/note_notified.sql" (UUIDARRAYOID, TIMESTAMPTZOID);
}

/// The columns that [`Recipient::read`] reads.
pub const RECIPIENT_COLUMNS: &str = fragment!("alerts/queries/recipient_columns.sql");
/// How many there are.
pub const RECIPIENT_WIDTH: usize = 11;

/// Whom problems of an action concern.
pub struct Recipient {
    pub action: Uuid,
    pub name: String,
    namespace: String,
    pub provider: String,
    pub owner_id: i32,
    contact: Option<String>,
    owner: Option<String>,
    is_muted: bool,
    mute_interval: Option<TimeDelta>,
    threshold: Option<i32>,
    last_notified: Option<DateTime<Utc>>,
}

impl Recipient {
    /// Reads the first columns of a row, which are [`RECIPIENT_COLUMNS`].
    pub fn read(row: &Row) -> Recipient {
        Recipient {
            action: row.uuid(1),
            name: row.required(2),
            namespace: row.required(3),
            provider: row.required(4),
            owner_id: row.required(5),
            contact: row.get(6),
            owner: row.get(7),
            is_muted: row.required(8),
            mute_interval: row.get::<i64>(9).map(TimeDelta::microseconds),
            threshold: row.get(10),
            last_notified: row.instant(11),
        }
    }

    /// Is the contact notified of this streak of failures now?
    pub fn is_notified(&self, streak: Streak, now: DateTime<Utc>) -> bool {
        let terms = Terms {
            threshold: self.threshold(),
            is_muted: self.is_muted,
            mute_interval: self.mute_interval,
        };
        terms.is_notified(streak, self.last_notified, now)
    }

    /// The failures in a row at which the contact is notified.
    pub fn threshold(&self) -> i32 {
        self.threshold
            .unwrap_or_else(|| settings::error_threshold(&self.namespace))
    }

    /// The action's contact, or that of its namespace, or its owner.
    pub fn contact(&self) -> Option<String> {
        let contact = self.contact.clone();
        let contact = contact.or_else(|| settings::default_contact(&self.namespace));
        contact.or_else(|| self.owner.clone())
    }

    /// What a message about the action is made of.
    pub fn report(&self, since: Option<DateTime<Utc>>) -> Report<'_> {
        Report {
            name: &self.name,
            action: self.action,
            provider: &self.provider,
            since,
            link_template: settings::link_template(&self.namespace),
        }
    }

    pub fn is_muted(&self) -> bool {
        self.is_muted
    }
}

pub fn recipients(actions: impl IntoIterator<Item = Uuid>) -> Vec<Recipient> {
    let arguments = [pg_uuids(actions).into()];
    RECIPIENTS.with(|query| query.rows(&arguments, Recipient::read))
}

/// A message to a contact.
pub struct Message<'a> {
    pub recipient: &'a Recipient,
    pub kind: EventKind,
    pub notice: Notice,
    /// The dispatch that it is about, if it is one.
    pub dispatch: Option<Uuid>,
    /// The alarm that was raised or is over, if it is one.
    pub alarm: Option<Alarm>,
}

impl Message<'_> {
    /// The detail of its event.
    pub fn detail(&self) -> serde_json::Value {
        let (recipient, notice) = (self.recipient, &self.notice);
        let mut detail = json!({
            "contact": recipient.contact(),
            "name": recipient.name,
            "problem": notice.problem,
            "error": notice.error,
            "since": notice.since.map(time::rfc3339),
            "guidance": notice.guidance,
            "link": notice.link,
            "message": notice.message,
        });
        if let (Some(alarm), Some(members)) = (self.alarm, detail.as_object_mut()) {
            members.insert("alarm".to_owned(), alarm.as_str().into());
        }
        detail
    }
}

/// Notifies contacts, and notes when.
pub fn tell(messages: &[Message], now: DateTime<Utc>) {
    if messages.is_empty() {
        return;
    }
    let change = |message: &Message| Change {
        kind: message.kind,
        action: Some(message.recipient.action),
        dispatch: message.dispatch,
        owner_id: message.recipient.owner_id,
        detail: Jsonb::from_text(&message.detail().to_string()),
    };
    let changes: Vec<Change> = messages.iter().map(change).collect();
    events::record_changes(&changes, &Actor::worker());
    let notified = messages
        .iter()
        .filter(|one| one.kind == EventKind::Notified);
    let arguments = [
        pg_uuids(notified.map(|one| one.recipient.action)).into(),
        time::timestamptz(now).into(),
    ];
    NOTE_NOTIFIED.with(|query| query.execute(&arguments));
}

/// Actions that could not be dispatched, and can again or were changed: (action, errors in a row). Notifies the
/// contacts that were notified of the errors.
pub fn mended(actions: &[(Uuid, i32)]) {
    if actions.is_empty() {
        return;
    }
    let recipients = recipients(actions.iter().map(|(action, _)| *action));
    let notified = recipients.iter().filter_map(|recipient| {
        let (_, errors) = actions.iter().find(|(id, _)| *id == recipient.action)?;
        let was_notified = *errors >= recipient.threshold() && !recipient.is_muted;
        was_notified.then(|| Message {
            recipient,
            kind: EventKind::Resolved,
            notice: recipient.report(None).resolved(*errors, ""),
            dispatch: None,
            alarm: None,
        })
    });
    tell(&notified.collect::<Vec<_>>(), clock::now());
}
