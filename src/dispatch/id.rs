//! A dispatch's id: a pure function of the action and the occurrence.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::{Builder, Uuid};

/// UUIDv7 layout: the occurrence's millisecond in front, then 74 bits of a SHA-1 (UUIDv5) over the action's id
/// and the occurrence's microsecond.
///
/// So the primary key itself refuses a second dispatch of one occurrence, after any crash or restore; ids sort
/// by time; and a consumer can use the id as an idempotency key. The bytes must never change between versions.
pub fn of_occurrence(action: Uuid, scheduled_at: DateTime<Utc>) -> Uuid {
    let micros = scheduled_at.timestamp_micros();
    let hash = Uuid::new_v5(&action, &micros.to_be_bytes());
    let mut tail = [0; 10];
    tail.copy_from_slice(&hash.as_bytes()[6..]);
    let millis = micros.div_euclid(1000).max(0) as u64;
    Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
}

/// An id in the same layout for a dispatch of no occurrence: triggered by hand, or enqueued.
pub fn random(at: DateTime<Utc>) -> Uuid {
    let millis = at.timestamp_millis().max(0) as u64;
    let mut tail = [0; 10];
    tail.copy_from_slice(&Uuid::new_v4().as_bytes()[6..]);
    Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
}

/// A part of `most` microseconds that depends on the id alone, evenly spread over all ids: always the same for one
/// occurrence.
pub fn fraction(id: Uuid, most: i64) -> TimeDelta {
    let hash = id.as_u128() & u128::from(u32::MAX);
    TimeDelta::microseconds(((i128::from(most) * hash as i128) >> 32) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Computed with another program, from the description above.
    #[test]
    fn is_stable_forever() {
        let action = Uuid::from_u128(0x0123_4567_89ab_4def_8123_4567_89ab_cdef);
        let at = DateTime::from_timestamp_micros(1_800_000_000_123_456).unwrap();
        assert_eq!(
            of_occurrence(action, at).to_string(),
            "01a3185c-507b-756e-9b28-9a452a13fa9c"
        );
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
