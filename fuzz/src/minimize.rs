//! A smaller input that still fails.

use crate::input::Input;
use crate::mutate::boundary;

/// How often a failing input is tried in a smaller form.
const MOST_TRIALS: usize = 5_000;

/// The smallest input found that still fails, by leaving parts out and by setting bytes to zero.
pub fn minimize(input: &Input, fails: impl Fn(&Input) -> bool) -> Input {
    let mut best = input.clone();
    let mut trials = MOST_TRIALS;
    loop {
        let before = best.clone();
        for candidates in [without_text, without_choices, with_zeros] {
            let mut length = best.text.len().max(best.choices.len()).max(1);
            while length > 0 {
                let mut at = 0;
                while trials > 0
                    && let Some(candidate) = candidates(&best, at, length)
                {
                    trials -= 1;
                    match candidate != best && fails(&candidate) {
                        true => best = candidate,
                        false => at += length,
                    }
                }
                length /= 2;
            }
        }
        if best == before || trials == 0 {
            return best;
        }
    }
}

fn without_text(input: &Input, at: usize, length: usize) -> Option<Input> {
    let text = &input.text;
    (at < text.len()).then(|| {
        let (start, end) = (
            boundary(text, at),
            boundary(text, (at + length).min(text.len())),
        );
        let text = format!("{}{}", &text[..start], &text[end..]);
        Input::new(text, input.choices.clone())
    })
}

fn without_choices(input: &Input, at: usize, length: usize) -> Option<Input> {
    let choices = &input.choices;
    (at < choices.len()).then(|| {
        let end = (at + length).min(choices.len());
        let kept = [&choices[..at], &choices[end..]].concat();
        Input::new(input.text.clone(), kept)
    })
}

fn with_zeros(input: &Input, at: usize, length: usize) -> Option<Input> {
    (at < input.choices.len()).then(|| {
        let mut zeroed = input.clone();
        let end = (at + length).min(zeroed.choices.len());
        let is_zero = zeroed.choices[at..end].iter().all(|byte| *byte == 0);
        if !is_zero {
            zeroed.choices[at..end].fill(0);
        }
        zeroed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_it_fail_is_left() {
        let input = Input::new("0 9 * * MON-FRI,61", vec![7, 8, 9, 10]);
        let small = minimize(&input, |input| {
            input.text.contains("61") && input.choices.contains(&9)
        });
        assert_eq!(small, Input::new("61", vec![9]));
    }
}
