//! Messages as JSON text, written directly: a batch of dispatches encodes one per dispatch, at about 0.4 µs each.

use super::{Announcement, Detail, Notification};
use chrono::SecondsFormat;
use std::collections::BTreeMap;
use uuid::Uuid;

/// NOTIFY refuses payloads of 8000 bytes and more.
const LONGEST_PAYLOAD: usize = 7_999;
/// Enough for a message whose four names have 40 bytes each.
const USUAL_PAYLOAD: usize = 384;

/// The messages for a batch of dispatches: one for each, or, if there are more than `each_max`, one for each
/// channel and provider.
///
/// ```
/// use recur_core::notify::{Announcement, Detail, encode};
/// use uuid::Uuid;
///
/// let one = Announcement {
///     id: Uuid::from_u128(1),
///     action_id: None,
///     scheduled_at: "2030-01-01T12:00:00.5Z".parse().unwrap(),
///     namespace: "default",
///     tenant: "acme",
///     provider: "mail",
///     action_type: "digest",
///     channel: None,
/// };
/// let messages = encode(&[one], "recur", 100, Detail::Full);
/// assert_eq!(messages[0].channel, "recur");
/// assert_eq!(
///     messages[0].payload,
///     concat!(
///         r#"{"id":"00000000-0000-0000-0000-000000000001","action_id":null,"#,
///         r#""scheduled_at":"2030-01-01T12:00:00.500Z","namespace":"default","tenant":"acme","#,
///         r#""provider":"mail","action_type":"digest"}"#
///     )
/// );
/// let messages = encode(&[one, one], "recur", 1, Detail::Full);
/// assert_eq!(messages[0].payload, r#"{"provider":"mail","count":2}"#);
/// ```
pub fn encode<'a>(
    announcements: &[Announcement<'a>],
    default_channel: &'a str,
    each_max: usize,
    detail: Detail,
) -> Vec<Notification<'a>> {
    if announcements.len() > each_max {
        let counts = announcements
            .iter()
            .map(|one| (one.channel, one.provider, 1));
        return encode_counts(counts, default_channel);
    }
    let each = announcements.iter().map(|one| Notification {
        channel: one.channel.unwrap_or(default_channel),
        payload: one.payload(detail),
    });
    each.collect()
}

/// One message for each channel and provider, from channel, provider and count of every group.
///
/// ```
/// use recur_core::notify::encode_counts;
///
/// let groups = [(None, "mail", 2), (Some("recur"), "mail", 3), (Some("other"), "mail", 1)];
/// let messages = encode_counts(groups, "recur");
/// let sent: Vec<_> = messages.iter().map(|one| (one.channel, one.payload.as_str())).collect();
/// assert_eq!(
///     sent,
///     [("other", r#"{"provider":"mail","count":1}"#), ("recur", r#"{"provider":"mail","count":5}"#)]
/// );
/// ```
pub fn encode_counts<'a>(
    groups: impl IntoIterator<Item = (Option<&'a str>, &'a str, i64)>,
    default_channel: &'a str,
) -> Vec<Notification<'a>> {
    let mut counts = BTreeMap::<(&str, &str), i64>::new();
    for (channel, provider, count) in groups {
        let channel = channel.unwrap_or(default_channel);
        let total = counts.entry((channel, provider)).or_default();
        *total = total.saturating_add(count);
    }
    let messages = counts.into_iter().map(|((channel, provider), count)| {
        let mut payload = String::with_capacity(provider.len() + 48);
        payload.push_str("{\"provider\":");
        push_text(&mut payload, provider);
        payload.push_str(&format!(",\"count\":{count}}}"));
        Notification { channel, payload }
    });
    messages.collect()
}

impl Announcement<'_> {
    fn payload(&self, detail: Detail) -> String {
        let mut payload = String::with_capacity(USUAL_PAYLOAD);
        self.push_identity(&mut payload);
        let identity = payload.len();
        let names: &[(&str, &str)] = match detail {
            Detail::Full => &[
                ("namespace", self.namespace),
                ("tenant", self.tenant),
                ("provider", self.provider),
                ("action_type", self.action_type),
            ],
            Detail::Routing => &[
                ("provider", self.provider),
                ("action_type", self.action_type),
            ],
            Detail::Ids => &[("provider", self.provider)],
        };
        for (name, value) in names {
            payload.push_str(",\"");
            payload.push_str(name);
            payload.push_str("\":");
            push_text(&mut payload, value);
        }
        if payload.len() >= LONGEST_PAYLOAD {
            // A listener that needs the names has the id to look them up.
            payload.truncate(identity);
        }
        payload.push('}');
        payload
    }

    /// The fields that every message has, without the closing brace.
    fn push_identity(&self, payload: &mut String) {
        payload.push_str("{\"id\":");
        push_uuid(payload, self.id);
        payload.push_str(",\"action_id\":");
        match self.action_id {
            Some(action) => push_uuid(payload, action),
            None => payload.push_str("null"),
        }
        payload.push_str(",\"scheduled_at\":\"");
        payload.push_str(
            &self
                .scheduled_at
                .to_rfc3339_opts(SecondsFormat::AutoSi, true),
        );
        payload.push('"');
    }
}

fn push_uuid(payload: &mut String, id: Uuid) {
    let mut buffer = Uuid::encode_buffer();
    payload.push('"');
    payload.push_str(id.hyphenated().encode_lower(&mut buffer));
    payload.push('"');
}

/// Most names need no escapes; the others are left to serde_json.
fn push_text(payload: &mut String, text: &str) {
    let needs_escapes = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    if text.bytes().any(needs_escapes) {
        payload.push_str(&serde_json::Value::from(text).to_string());
    } else {
        payload.push('"');
        payload.push_str(text);
        payload.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{DateTime, Utc};
    use serde_json::{Value, json};

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn one() -> Announcement<'static> {
        Announcement {
            id: Uuid::from_u128(0x01a3185c_507b_756e_9b28_9a452a13fa9c),
            action_id: Some(Uuid::from_u128(7)),
            scheduled_at: at("2030-01-01T12:00:00Z"),
            namespace: "n",
            tenant: "t",
            provider: "p",
            action_type: "a:b",
            channel: None,
        }
    }

    fn payload(one: Announcement<'_>, detail: Detail) -> String {
        let mut messages = encode(&[one], "recur", 1, detail);
        assert_eq!(messages.len(), 1);
        messages.remove(0).payload
    }

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_message_has_these_fields_in_this_order() {
        assert_eq!(
            payload(one(), Detail::Full),
            concat!(
                r#"{"id":"01a3185c-507b-756e-9b28-9a452a13fa9c","#,
                r#""action_id":"00000000-0000-0000-0000-000000000007","#,
                r#""scheduled_at":"2030-01-01T12:00:00Z","#,
                r#""namespace":"n","tenant":"t","provider":"p","action_type":"a:b"}"#
            )
        );
        assert_eq!(
            payload(one(), Detail::Routing),
            concat!(
                r#"{"id":"01a3185c-507b-756e-9b28-9a452a13fa9c","#,
                r#""action_id":"00000000-0000-0000-0000-000000000007","#,
                r#""scheduled_at":"2030-01-01T12:00:00Z","provider":"p","action_type":"a:b"}"#
            )
        );
        assert_eq!(
            parsed(&payload(one(), Detail::Ids)),
            json!({
                "id": "01a3185c-507b-756e-9b28-9a452a13fa9c",
                "action_id": "00000000-0000-0000-0000-000000000007",
                "scheduled_at": "2030-01-01T12:00:00Z",
                "provider": "p",
            })
        );
    }

    #[test]
    fn a_fraction_stands_only_where_there_is_one() {
        for (instant, expected) in [
            ("2030-01-01T12:00:00Z", "2030-01-01T12:00:00Z"),
            ("2030-01-01T12:00:00.5Z", "2030-01-01T12:00:00.500Z"),
            ("2030-01-01T12:00:00.120Z", "2030-01-01T12:00:00.120Z"),
            ("2030-01-01T12:00:00.000001Z", "2030-01-01T12:00:00.000001Z"),
            ("2030-01-01T12:00:00.120300Z", "2030-01-01T12:00:00.120300Z"),
            ("2030-01-01T14:00:00+02:00", "2030-01-01T12:00:00Z"),
        ] {
            let scheduled_at = at(instant);
            let text = payload(
                Announcement {
                    scheduled_at,
                    ..one()
                },
                Detail::Full,
            );
            assert_eq!(parsed(&text)["scheduled_at"], expected);
        }
    }

    #[test]
    fn names_are_escaped() {
        for name in [
            "say \"hi\"",
            "back\\slash",
            "line\nbreak",
            "\u{1}\u{1f}",
            "日本 🦀",
            "\u{7f}\u{2028}",
            "",
        ] {
            let odd = Announcement {
                namespace: name,
                tenant: name,
                provider: name,
                action_type: name,
                ..one()
            };
            let message = parsed(&payload(odd, Detail::Full));
            for field in ["namespace", "tenant", "provider", "action_type"] {
                assert_eq!(message[field], name);
            }
            let counted = encode_counts([(None, name, 3)], "recur");
            assert_eq!(
                parsed(&counted[0].payload),
                json!({ "provider": name, "count": 3 })
            );
        }
    }

    #[test]
    fn a_message_that_notify_would_refuse_has_only_the_ids() {
        let fixed = payload(
            Announcement {
                provider: "",
                ..one()
            },
            Detail::Full,
        )
        .len();
        let longest = "x".repeat(LONGEST_PAYLOAD - fixed);
        let fits = Announcement {
            provider: &longest,
            ..one()
        };
        let text = payload(fits, Detail::Full);
        assert_eq!(text.len(), 7_999);
        assert_eq!(parsed(&text)["provider"], longest);
        let too_long = format!("{longest}x");
        let refused = Announcement {
            provider: &too_long,
            ..one()
        };
        assert_eq!(
            parsed(&payload(refused, Detail::Full)),
            json!({
                "id": "01a3185c-507b-756e-9b28-9a452a13fa9c",
                "action_id": "00000000-0000-0000-0000-000000000007",
                "scheduled_at": "2030-01-01T12:00:00Z",
            })
        );
    }

    #[test]
    fn each_goes_to_its_channel() {
        let elsewhere = Announcement {
            channel: Some("elsewhere"),
            ..one()
        };
        let messages = encode(&[one(), elsewhere], "recur", 2, Detail::Full);
        let channels: Vec<&str> = messages.iter().map(|message| message.channel).collect();
        assert_eq!(channels, ["recur", "elsewhere"]);
        assert_eq!(messages[0].payload, messages[1].payload);
        assert!(encode(&[], "recur", 0, Detail::Full).is_empty());
    }

    #[test]
    fn more_than_each_max_are_counted_by_channel_and_provider() {
        let with = |channel, provider| Announcement {
            channel,
            provider,
            ..one()
        };
        let many = [
            with(None, "p"),
            with(Some("recur"), "p"),
            with(None, "q"),
            with(Some("elsewhere"), "p"),
        ];
        let messages = encode(&many, "recur", 3, Detail::Full);
        let sent: Vec<(&str, Value)> = messages
            .iter()
            .map(|message| (message.channel, parsed(&message.payload)))
            .collect();
        assert_eq!(
            sent,
            [
                ("elsewhere", json!({ "provider": "p", "count": 1 })),
                ("recur", json!({ "provider": "p", "count": 2 })),
                ("recur", json!({ "provider": "q", "count": 1 })),
            ]
        );
        assert_eq!(encode(&many, "recur", 4, Detail::Full).len(), 4);
        assert_eq!(encode(&many[..1], "recur", 0, Detail::Full).len(), 1);
    }
}
