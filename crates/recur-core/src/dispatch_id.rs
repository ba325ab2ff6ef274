//! The id of a dispatch: a pure function of the action and the occurrence, in UUIDv7 layout.
//!
//! The primary key itself refuses a second dispatch of one occurrence, after any crash or restore. Ids sort by
//! time, and a consumer can use an id as an idempotency key. The bytes must never change between versions.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::{Builder, Uuid, Variant};

/// The id of the dispatch of an occurrence.
///
/// UUIDv7 layout: the occurrence's millisecond in front, then 73 bits of a SHA-1 (UUIDv5) over the action's id and the
/// occurrence's microsecond, and a last bit that is 0.
///
/// ```
/// use chrono::{DateTime, Utc};
/// use recur_core::dispatch_id;
/// use uuid::Uuid;
///
/// let action: Uuid = "01234567-89ab-4def-8123-456789abcdef".parse().unwrap();
/// let at = DateTime::<Utc>::from_timestamp_micros(1_800_000_000_123_456).unwrap();
/// let id = dispatch_id::of_occurrence(action, at);
/// assert_eq!(id.to_string(), "01a3185c-507b-756e-9b28-9a452a13fa9c");
/// ```
pub fn of_occurrence(action: Uuid, scheduled_at: DateTime<Utc>) -> Uuid {
    let micros = scheduled_at.timestamp_micros();
    let hash = Uuid::new_v5(&action, &micros.to_be_bytes());
    let mut tail = [0; 10];
    tail.copy_from_slice(&hash.as_bytes()[6..]);
    let millis = micros.div_euclid(1000).max(0) as u64;
    tail[9] &= !1;
    Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
}

/// A random id in the same layout, for an action, or a dispatch of no occurrence: triggered by hand, or enqueued.
///
/// It sorts by the microsecond, which follows the version in 12 bits (RFC 9562, 6.2, method 3). Its last bit is 1, so
/// that it is never the id of an occurrence.
pub fn random(at: DateTime<Utc>) -> Uuid {
    let micros = at.timestamp_micros().max(0) as u64;
    let millis = micros / 1000;
    let fraction = (micros % 1000 * 4096 / 1000) as u16;
    let mut tail = [0; 10];
    tail.copy_from_slice(&Uuid::new_v4().as_bytes()[6..]);
    tail[..2].copy_from_slice(&fraction.to_be_bytes());
    tail[9] |= 1;
    Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
}

/// May a dispatch of this action and instant have the id? A random id may, and that of the occurrence.
pub fn belongs_to(id: Uuid, action: Option<Uuid>, scheduled_at: DateTime<Utc>) -> bool {
    let is_random =
        id.get_version_num() == 7 && id.get_variant() == Variant::RFC4122 && id.as_u128() & 1 == 1;
    is_random || action.is_some_and(|action| of_occurrence(action, scheduled_at) == id)
}

/// The delay of a dispatch within a span of jitter: from zero up to, but not including, the span.
///
/// It depends on the id alone and is spread evenly over all ids, so that one occurrence always has the same delay.
///
/// ```
/// use chrono::TimeDelta;
/// use recur_core::dispatch_id;
///
/// let id = "01a3185c-507b-756e-9b28-9a452a13fa9c".parse().unwrap();
/// assert_eq!(dispatch_id::jitter(id, TimeDelta::minutes(1)), TimeDelta::microseconds(34_931_020));
/// ```
pub fn jitter(id: Uuid, span: TimeDelta) -> TimeDelta {
    // The last bit only tells random ids from those of occurrences.
    let hash = (id.as_u128() >> 1) & u128::from(u32::MAX);
    let span = span.num_microseconds().unwrap_or(i64::MAX).max(0);
    TimeDelta::microseconds(((i128::from(span) * hash as i128) >> 32) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_micros(micros).unwrap()
    }

    // Computed with another program, from the description above.
    #[test]
    fn is_stable_forever() {
        let action = Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);
        let id = |micros| of_occurrence(action, at(micros)).to_string();
        let (even, odd) = (1_800_000_000_123_456, 1_800_000_000_123_457);
        assert_eq!(id(even), "01a3185c-507b-756e-9b28-9a452a13fa9c");
        // The hash ends in a 7.
        assert_eq!(id(odd), "01a3185c-507b-736a-b623-d22d8d4f62b6");
    }

    #[test]
    fn random_ones_are_of_no_occurrence() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        for micros in 0..100 {
            let id = random(at(micros));
            assert_eq!(id.as_u128() & 1, 1);
            assert!(belongs_to(id, None, at(5)) && belongs_to(id, Some(a), at(5)));
            let id = of_occurrence(a, at(micros));
            assert_eq!(id.as_u128() & 1, 0);
            assert!(belongs_to(id, Some(a), at(micros)));
            assert!(!belongs_to(id, None, at(micros)));
            assert!(!belongs_to(id, Some(b), at(micros)));
            assert!(!belongs_to(id, Some(a), at(micros + 1)));
            // Of another layout.
            assert!(!belongs_to(Uuid::from_u128(1), Some(a), at(micros)));
            assert!(!belongs_to(Uuid::new_v4(), Some(a), at(micros)));
        }
    }

    #[test]
    fn random_ones_sort_by_microsecond() {
        let start = 1_800_000_000_123_456;
        for micros in start..start + 2_000 {
            let (earlier, later) = (random(at(micros)), random(at(micros + 1)));
            assert!(earlier < later, "{earlier} {later}");
            assert_eq!(later.get_version_num(), 7);
        }
        assert_ne!(random(at(start)), random(at(start)));
    }

    #[test]
    fn differs_by_action_and_by_microsecond() {
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_ne!(of_occurrence(a, at(1_000)), of_occurrence(b, at(1_000)));
        assert_ne!(of_occurrence(a, at(1_000)), of_occurrence(a, at(1_001)));
        assert_eq!(of_occurrence(a, at(1_000)), of_occurrence(a, at(1_000)));
        assert!(of_occurrence(b, at(1_000)) < of_occurrence(a, at(2_000)));
        assert_eq!(of_occurrence(a, at(1_000)).get_version_num(), 7);
    }

    #[test]
    fn instants_before_1970_have_ids() {
        let a = Uuid::from_u128(1);
        let (early, earlier) = (of_occurrence(a, at(-1)), of_occurrence(a, at(-2)));
        assert_ne!(early, earlier);
        assert_eq!(early.as_bytes()[..6], [0; 6]);
        assert!(belongs_to(early, Some(a), at(-1)));
    }

    #[test]
    fn jitter_is_a_fixed_part_of_its_span() {
        let day = TimeDelta::days(1);
        let micros = 86_400_000_000;
        let parts: Vec<i64> = (0..1_000)
            .map(|n| {
                let id = of_occurrence(Uuid::from_u128(n), at(1_893_499_200_000_000));
                assert_eq!(jitter(id, day), jitter(id, day));
                jitter(id, day).num_microseconds().unwrap()
            })
            .collect();
        assert!(parts.iter().all(|part| (0..micros).contains(part)));
        let mean = parts.iter().sum::<i64>() / 1_000;
        assert!(
            (mean - micros / 2).abs() < micros / 20,
            "evenly spread: {mean}"
        );
    }

    // Computed with another program: bits 1 to 32 of the id, as a part of 2^32.
    #[test]
    fn jitter_is_stable_forever() {
        let id = Uuid::from_u128(0x01a3185c_507b_756e_9b28_9a452a13fa9c);
        let minute = TimeDelta::minutes(1);
        assert_eq!(jitter(id, minute), TimeDelta::microseconds(34_931_020));
    }

    #[test]
    fn no_span_gives_a_delay_outside_of_it() {
        let id = Uuid::from_u128(u128::MAX);
        let zero = TimeDelta::zero();
        assert_eq!(jitter(id, zero), zero);
        assert_eq!(jitter(id, -TimeDelta::days(1)), zero);
        assert!(jitter(id, TimeDelta::MAX) > zero);
        assert!(jitter(id, TimeDelta::microseconds(1)) == zero);
    }
}
