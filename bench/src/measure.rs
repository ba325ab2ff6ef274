//! Medians, spreads and quantiles; CPU time of a process.

/// Of several rounds.
#[derive(Clone, Debug, Default)]
pub struct Samples(pub Vec<f64>);

impl Samples {
    pub fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The value that this part of the samples does not exceed; between two samples, in proportion.
    pub fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let Some(last) = sorted.len().checked_sub(1) else {
            return f64::NAN;
        };
        let place = last as f64 * part;
        let (below, above) = (place.floor() as usize, place.ceil() as usize);
        sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
    }

    pub fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    /// Round by round, this side over the other.
    pub fn over(&self, other: &Samples) -> Samples {
        Samples(self.0.iter().zip(&other.0).map(|(a, b)| a / b).collect())
    }

    /// As "0.93 (0.90–0.97)".
    pub fn ratio(&self) -> String {
        format!(
            "{} ({}–{})",
            short(self.median()),
            short(self.quantile(0.0)),
            short(self.quantile(1.0))
        )
    }

    /// As "23,400 (21,000–24,100)".
    pub fn rate(&self) -> String {
        format!(
            "{} ({}–{})",
            grouped(self.median()),
            grouped(self.quantile(0.0)),
            grouped(self.quantile(1.0))
        )
    }
}

/// Two significant places behind the point, fewer for large numbers.
pub fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Seconds that a process has spent on a CPU. Noise that other programs make falls on the clock, not on this.
pub fn cpu_seconds(pid: i32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
    let nanos = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    nanos.unwrap_or(f64::NAN) / 1e9
}

/// The CPU and how many of its cores there are.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split(':').nth(1))
        .map_or("unknown CPU", str::trim);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    format!("{model}, {cores} cores")
}
