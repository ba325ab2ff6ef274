//! Counts of spans of time, in buckets that grow with them.

/// Four buckets for each doubling of the microseconds: a quantile is right to a fifth. The last one begins at 71
/// minutes.
const BUCKETS: usize = 4 * 32 + 1;

/// Plain numbers, so that it can stand in shared memory.
#[derive(Clone, Copy)]
pub struct Histogram {
    buckets: [u64; BUCKETS],
    /// In microseconds.
    sum: u64,
    pub max: i64,
}

impl Histogram {
    pub const EMPTY: Histogram = Histogram {
        buckets: [0; BUCKETS],
        sum: 0,
        max: 0,
    };

    /// Counts this many spans of the same length.
    pub fn add(&mut self, micros: i64, count: u64) {
        self.buckets[bucket_of(micros)] += count;
        let length = micros.max(0).unsigned_abs();
        self.sum = self.sum.saturating_add(length.saturating_mul(count));
        self.max = self.max.max(micros);
    }

    pub fn add_all(&mut self, other: &Histogram) {
        for (count, more) in self.buckets.iter_mut().zip(other.buckets) {
            *count += more;
        }
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub fn sum_micros(&self) -> u64 {
        self.sum
    }

    /// How many were shorter than this power of two of microseconds.
    pub fn count_below(&self, doublings: usize) -> u64 {
        self.buckets.iter().take(doublings * 4).sum()
    }

    /// The length, in microseconds, that this part of the spans did not exceed.
    pub fn quantile(&self, part: f64) -> Option<i64> {
        let rank = (self.count() as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(upper_end(bucket).min(self.max));
            }
        }
        None
    }
}

fn bucket_of(micros: i64) -> usize {
    let micros = micros.max(1) as u64;
    let doublings = micros.ilog2();
    // The two bits below the leading one.
    let quarter = match doublings {
        0 => 0,
        1 => (micros & 1) << 1,
        _ => (micros >> (doublings - 2)) & 3,
    };
    (doublings as usize * 4 + quarter as usize).min(BUCKETS - 1)
}

fn upper_end(bucket: usize) -> i64 {
    let (doublings, quarter) = (bucket / 4, bucket % 4);
    ((1i64 << doublings) * (5 + quarter as i64)) / 4
}
