//! A dispatch's id: a pure function of the action and the occurrence.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::{Builder, Uuid, Variant};

/// UUIDv7 layout: the occurrence's millisecond in front, then 73 bits of a SHA-1 (UUIDv5) over the action's id
/// and the occurrence's microsecond, and a last bit that is 0.
///
/// So the primary key itself refuses a second dispatch of one occurrence, after any crash or restore; ids sort
/// by time; and a consumer can use the id as an idempotency key. The bytes must never change between versions.
pub fn of_occurrence(action: Uuid, scheduled_at: DateTime<Utc>) -> Uuid {
    let micros = scheduled_at.timestamp_micros();
    let hash = Uuid::new_v5(&action, &micros.to_be_bytes());
    let mut tail = [0; 10];
    tail.copy_from_slice(&hash.as_bytes()[6..]);
    let millis = micros.div_euclid(1000).max(0) as u64;
    tail[9] &= !1;
    Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
}

/// An id in the same layout for a dispatch of no occurrence: triggered by hand, or enqueued. Its last bit is 1, so that it
/// is never that of an occurrence, whoever makes it up.
pub fn random(at: DateTime<Utc>) -> Uuid {
    let millis = at.timestamp_millis().max(0) as u64;
    let mut tail = [0; 10];
    tail.copy_from_slice(&Uuid::new_v4().as_bytes()[6..]);
    tail[9] |= 1;
    Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
}

/// May a dispatch of this action, if any, and this instant have the id? A random one, or that of its occurrence.
pub fn belongs_to(id: Uuid, action: Option<Uuid>, scheduled_at: DateTime<Utc>) -> bool {
    let is_random =
        id.get_version_num() == 7 && id.get_variant() == Variant::RFC4122 && id.as_u128() & 1 == 1;
    is_random || action.is_some_and(|action| of_occurrence(action, scheduled_at) == id)
}

/// A part of `most` microseconds that depends on the id alone, evenly spread over all ids: always the same for one
/// occurrence.
pub fn fraction(id: Uuid, most: i64) -> TimeDelta {
    // The last bit is the same in all of them.
    let hash = (id.as_u128() >> 1) & u128::from(u32::MAX);
    TimeDelta::microseconds(((i128::from(most) * hash as i128) >> 32) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Computed with another program, from the description above.
    #[test]
    fn is_stable_forever() {
        let action = Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);
        let id = |micros| {
            let at = DateTime::from_timestamp_micros(micros).unwrap();
            of_occurrence(action, at).to_string()
        };
        let (even, odd) = (1_800_000_000_123_456, 1_800_000_000_123_457);
        assert_eq!(id(even), "01a3185c-507b-756e-9b28-9a452a13fa9c");
        // The hash ends in a 7.
        assert_eq!(id(odd), "01a3185c-507b-736a-b623-d22d8d4f62b6");
    }

    #[test]
    fn random_ones_are_of_no_occurrence() {
        let at = |micros| DateTime::from_timestamp_micros(micros).unwrap();
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
    fn differs_by_action_and_by_microsecond() {
        let at = |micros| DateTime::from_timestamp_micros(micros).unwrap();
        let (a, b) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_ne!(of_occurrence(a, at(1_000)), of_occurrence(b, at(1_000)));
        assert_ne!(of_occurrence(a, at(1_000)), of_occurrence(a, at(1_001)));
        assert_eq!(of_occurrence(a, at(1_000)), of_occurrence(a, at(1_000)));
        assert!(of_occurrence(b, at(1_000)) < of_occurrence(a, at(2_000)));
        assert_eq!(of_occurrence(a, at(1_000)).get_version_num(), 7);
    }
}
