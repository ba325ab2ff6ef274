//! Messages and ids.

use crate::input::Input;
use crate::target::Signature;
use crate::targets::values::uuid;
use chrono::{DateTime, TimeDelta, Utc};
use recur_core::dispatch_id;
use recur_core::notify::{
    Announcement, Detail, Group, Notification, encode, encode_counts, unannounced,
};
use serde_json::Value;
use std::collections::BTreeMap;
use uuid::{Uuid, Variant};

/// Messages: valid JSON, short enough, and everything in them as it was.
pub fn notify(input: &Input) -> Signature {
    let mut choices = input.choices();
    // A name has at most 255 characters.
    let cut = |name: &'_ str| {
        name.char_indices()
            .nth(255)
            .map_or(name.len(), |(end, _)| end)
    };
    let lines = input.text.split('\n').map(|name| &name[..cut(name)]);
    let names: Vec<&str> = lines.chain(std::iter::repeat("x")).take(5).collect();
    let count = choices.below(5);
    let announcements: Vec<Announcement<'_>> = (0..count)
        .map(|_| Announcement {
            id: uuid(&mut choices),
            action_id: choices.one_in(2).then(|| uuid(&mut choices)),
            scheduled_at: DateTime::from_timestamp(
                choices.number(4) as i64,
                choices.pick(&[0, 1_000, 500_000_000]),
            )
            .expect("an instant"),
            namespace: names[choices.below(5)],
            tenant: names[choices.below(5)],
            provider: names[choices.below(5)],
            action_type: names[choices.below(5)],
            channel: choices.one_in(2).then(|| names[choices.below(5)]),
        })
        .collect();
    let detail = choices.pick(Detail::ALL);
    let each_max = choices.below(5);
    let messages = encode(&announcements, "recur", each_max, detail);
    for message in &messages {
        assert!(
            message.payload.len() < 8_000,
            "{} bytes",
            message.payload.len()
        );
    }
    if count > each_max {
        check_counts(&announcements, &messages);
    } else {
        assert_eq!(messages.len(), count);
        for (one, message) in announcements.iter().zip(&messages) {
            check_one(one, message, detail);
        }
    }
    check_groups(&announcements);
    let longest = messages
        .iter()
        .map(|message| message.payload.len() / 500)
        .max()
        .unwrap_or(0);
    Signature::of_numbers(&[
        count,
        usize::from(count > each_max),
        longest,
        usize::from(detail == Detail::Full),
    ])
}

fn check_one(one: &Announcement<'_>, message: &Notification<'_>, detail: Detail) {
    assert_eq!(message.channel, one.channel.unwrap_or("recur"));
    let value: Value = serde_json::from_str(&message.payload).expect("JSON");
    let fields = value.as_object().expect("an object");
    let id = |name: &str| {
        fields[name]
            .as_str()
            .map(|id| id.parse::<Uuid>().expect("an id"))
    };
    assert_eq!(id("id"), Some(one.id));
    assert_eq!(id("action_id"), one.action_id);
    let at: DateTime<Utc> = fields["scheduled_at"]
        .as_str()
        .expect("a text")
        .parse()
        .expect("an instant");
    assert_eq!(at, one.scheduled_at);
    let names = [
        ("namespace", one.namespace, detail == Detail::Full),
        ("tenant", one.tenant, detail == Detail::Full),
        ("provider", one.provider, true),
        ("action_type", one.action_type, true),
    ];
    for (name, expected, is_always) in names {
        let given = fields
            .get(name)
            .map(|given| given.as_str().expect("a text"));
        assert!(
            given.is_none_or(|given| given == expected),
            "{name} is {given:?}, expected {expected:?}"
        );
        // Names are left out only where all of them are too long.
        let bytes =
            serde_json::to_string(&names.map(|(_, name, _)| name)).map_or(0, |text| text.len());
        let must_be_there = is_always && name == "provider" && bytes < 7_000;
        assert!(given.is_some() || !must_be_there, "{name} is left out");
    }
    let most = if detail == Detail::Full { 7 } else { 5 };
    assert!(fields.len() <= most, "{fields:?}");
}

fn check_counts(announcements: &[Announcement<'_>], messages: &[Notification<'_>]) {
    let mut expected: BTreeMap<(String, String), i64> = BTreeMap::new();
    for one in announcements {
        let channel = one.channel.unwrap_or("recur").to_owned();
        *expected
            .entry((channel, one.provider.to_owned()))
            .or_default() += 1;
    }
    assert_eq!(messages.len(), expected.len());
    for message in messages {
        let value: Value = serde_json::from_str(&message.payload).expect("JSON");
        let provider = value["provider"].as_str().expect("a provider").to_owned();
        let count = expected.remove(&(message.channel.to_owned(), provider));
        assert_eq!(value["count"].as_i64(), count);
    }
}

/// What is left when a part was announced.
fn check_groups(announcements: &[Announcement<'_>]) {
    let group = |one: &Announcement<'_>, dispatches: i64| Group {
        channel: one.channel.map(str::to_owned),
        provider: one.provider.to_owned(),
        dispatches,
        scheduled: dispatches / 2,
        since: None,
    };
    let all: Vec<Group> = announcements
        .iter()
        .enumerate()
        .map(|(n, one)| group(one, n as i64 + 1))
        .collect();
    let announced: Vec<Group> = announcements
        .iter()
        .take(1)
        .map(|one| group(one, 2))
        .collect();
    let left = unannounced(all.clone(), &announced);
    assert_eq!(left.len(), all.len(), "no group is forgotten");
    for (before, after) in all.iter().zip(&left) {
        let is_same =
            |other: &&Group| other.channel == before.channel && other.provider == before.provider;
        let expected = match announced.iter().find(is_same) {
            Some(other) => (before.dispatches - other.dispatches).max(1),
            None => before.dispatches,
        };
        assert_eq!(after.dispatches, expected);
        assert!(after.scheduled >= 0);
    }
    let total: i64 = all.iter().map(|group| group.dispatches).sum();
    let counts = all.iter().map(|group| {
        (
            group.channel.as_deref(),
            group.provider.as_str(),
            group.dispatches,
        )
    });
    let messages = encode_counts(counts, "recur");
    let told = messages
        .iter()
        .filter_map(|message| serde_json::from_str::<Value>(&message.payload).ok());
    assert_eq!(
        told.filter_map(|told| told["count"].as_i64()).sum::<i64>(),
        total
    );
}

/// Ids of dispatches, and the delays that they give.
pub fn dispatch_id(input: &Input) -> Signature {
    let mut choices = input.choices();
    let action = uuid(&mut choices);
    let mut instant = || {
        let micros = match choices.below(4) {
            0 => choices.within(-5, 5),
            1 => 1_800_000_000_000_000 + choices.within(-2_000, 2_000),
            _ => choices.number(6) as i64,
        };
        DateTime::from_timestamp_micros(micros).expect("an instant")
    };
    let (at, later) = (instant(), instant());
    let id = dispatch_id::of_occurrence(action, at);
    let millis = at.timestamp_micros().div_euclid(1_000).max(0) as u128;
    assert_eq!(
        id.as_u128() >> 80,
        millis & 0xffff_ffff_ffff,
        "the millisecond in front"
    );
    assert_eq!(
        (id.get_version_num(), id.get_variant()),
        (7, Variant::RFC4122)
    );
    assert_eq!(id.as_u128() & 1, 0);
    let hash = Uuid::new_v5(&action, &at.timestamp_micros().to_be_bytes());
    // 12 bits behind the version, and 61 between the variant and the last bit.
    assert_eq!(
        id.as_u128() >> 64 & 0xfff,
        hash.as_u128() >> 64 & 0xfff,
        "the hash"
    );
    assert_eq!(
        id.as_u128() & 0x3fff_ffff_ffff_fffe,
        hash.as_u128() & 0x3fff_ffff_ffff_fffe,
        "the hash"
    );
    assert!(
        dispatch_id::belongs_to(id, Some(action), at) && !dispatch_id::belongs_to(id, None, at)
    );
    let other = dispatch_id::of_occurrence(action, later);
    assert_eq!(id == other, at == later);
    assert_eq!(
        dispatch_id::belongs_to(id, Some(action), later),
        at == later
    );
    if at.timestamp_millis() >= 0 && later.timestamp_millis() > at.timestamp_millis() {
        assert!(other > id, "ids sort by time");
    }
    let random = dispatch_id::random(at);
    assert_eq!(
        (random.as_u128() & 1, random.as_u128() >> 80),
        (1, millis & 0xffff_ffff_ffff)
    );
    assert!(
        dispatch_id::belongs_to(random, None, later)
            && dispatch_id::belongs_to(random, Some(action), at)
    );
    check_jitter(
        id,
        TimeDelta::microseconds(choices.number(choices_of(at)) as i64),
    );
    Signature::of_numbers(&[
        usize::from(at == later),
        usize::from(millis == 0),
        usize::from(other > id),
    ])
}

fn choices_of(at: DateTime<Utc>) -> usize {
    at.timestamp_micros().unsigned_abs() as usize % 7
}

fn check_jitter(id: Uuid, span: TimeDelta) {
    let delay = dispatch_id::jitter(id, span);
    assert_eq!(delay, dispatch_id::jitter(id, span));
    let is_within = delay >= TimeDelta::zero() && (delay < span || span <= TimeDelta::zero());
    assert!(is_within, "{delay} of {span}");
    assert_eq!(dispatch_id::jitter(id, -span), TimeDelta::zero());
    // The same part of any span.
    let part = (id.as_u128() >> 1 & 0xffff_ffff) as f64 / 4_294_967_296.0;
    let expected = span.num_microseconds().unwrap_or(0) as f64 * part;
    assert!(
        (delay.num_microseconds().unwrap_or(0) as f64 - expected).abs() <= 1.0 + expected * 1e-9
    );
}
