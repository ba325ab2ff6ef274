//! How deliveries are shared out among endpoints.

/// How many each gets of `limit`, where none gets more than it takes: all alike, and what one leaves goes to the
/// others. Those in front get what can't be divided.
///
/// ```
/// use recur_core::webhook::shares;
///
/// assert_eq!(shares(10, &[100, 2, 100]), [4, 2, 4]);
/// assert_eq!(shares(2, &[5, 5, 5]), [1, 1, 0]);
/// assert_eq!(shares(10, &[1, 0]), [1, 0]);
/// ```
pub fn shares(limit: u32, takes: &[u32]) -> Vec<u32> {
    let mut given = vec![0; takes.len()];
    let mut left = limit;
    loop {
        let open = given
            .iter()
            .zip(takes)
            .filter(|(given, takes)| given < takes)
            .count() as u32;
        if open == 0 || left == 0 {
            return given;
        }
        let each = (left / open).max(1);
        for (given, takes) in given.iter_mut().zip(takes) {
            let more = each.min(takes - *given).min(left);
            *given += more;
            left -= more;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_endpoint_starves_and_nothing_is_left_over() {
        for limit in 0..30 {
            for takes in [
                &[][..],
                &[0],
                &[3],
                &[1, 2, 3],
                &[100, 1, 0, 7],
                &[9, 9, 9, 9, 9, 9, 9],
            ] {
                let given = shares(limit, takes);
                let total: u32 = takes.iter().sum();
                assert_eq!(given.iter().sum::<u32>(), limit.min(total));
                for (one, takes_one) in given.iter().zip(takes) {
                    assert!(one <= takes_one);
                    // Who could take more has at most one less than any other.
                    let least = given.iter().all(|other| one + 1 >= *other);
                    assert!(one == takes_one || least, "{limit} {takes:?} {given:?}");
                }
            }
        }
    }
}
