//! Steps of elapsed time, which no clock change affects.

/// Unix seconds `anchor`, `anchor + step`, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ElapsedSteps {
    pub anchor: i64,
    /// Above 0.
    pub step: i64,
}

impl ElapsedSteps {
    pub fn next_after(&self, instant: i64) -> Option<i64> {
        if instant < self.anchor {
            return Some(self.anchor);
        }
        let steps = (instant - self.anchor) / self.step + 1;
        self.anchor.checked_add(steps.checked_mul(self.step)?)
    }

    pub fn last_at_or_before(&self, instant: i64) -> Option<i64> {
        (instant >= self.anchor).then(|| instant - (instant - self.anchor) % self.step)
    }

    pub fn count_between(&self, after: i64, until: i64) -> u64 {
        let up_to = |instant: i64| match instant < self.anchor {
            true => 0,
            false => ((instant - self.anchor) / self.step + 1) as u64,
        };
        up_to(until).saturating_sub(up_to(after))
    }
}
