//! The results: each section writes its own part of `bench/RESULTS.md` and its plots beside it.

use crate::measure::machine;
use crate::plot::Plot;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A line on the terminal, with the time since the start.
pub fn progress(text: &str) {
    use std::sync::OnceLock;
    static START: OnceLock<Instant> = OnceLock::new();
    let start = START.get_or_init(Instant::now);
    eprintln!("{:>6.1} s  {text}", start.elapsed().as_secs_f64());
}

pub struct Report {
    name: &'static str,
    title: &'static str,
    full: bool,
    body: String,
}

impl Report {
    pub fn new(name: &'static str, title: &'static str, full: bool) -> Report {
        Report {
            name,
            title,
            full,
            body: String::new(),
        }
    }

    pub fn text(&mut self, text: &str) {
        self.body.push_str(text.trim());
        self.body.push_str("\n\n");
    }

    /// The first column is text, the others are numbers.
    pub fn table(&mut self, headings: &[&str], rows: &[Vec<String>]) {
        let mut lines = vec![format!("| {} |", headings.join(" | "))];
        let marks: Vec<_> = (0..headings.len())
            .map(|column| if column == 0 { "---" } else { "---:" })
            .collect();
        lines.push(format!("| {} |", marks.join(" | ")));
        for row in rows {
            lines.push(format!("| {} |", row.join(" | ")));
        }
        for line in &lines {
            eprintln!("          {line}");
        }
        self.body.push_str(&lines.join("\n"));
        self.body.push_str("\n\n");
    }

    pub fn plot(&mut self, name: &str, plot: &Plot) {
        let folder = folder().join("plots");
        fs::create_dir_all(&folder).expect("a folder for the plots");
        fs::write(folder.join(format!("{name}.svg")), plot.svg()).expect("a plot");
        self.text(&format!("![{}](plots/{name}.svg)", plot.title));
    }

    /// Replaces the section's part, or adds it at the end.
    pub fn write(self, took: Duration) {
        let path = folder().join("RESULTS.md");
        let old = fs::read_to_string(&path).unwrap_or_else(|_| "# Results\n\n".to_owned());
        let (begin, end) = (
            format!("<!-- {} -->", self.name),
            format!("<!-- /{} -->", self.name),
        );
        let part = format!(
            "{begin}\n## {}\n\n{}Measured on {}, {}, in {:.0} s.\n{end}",
            self.title,
            self.body,
            machine(),
            if self.full {
                "`make bench-full`"
            } else {
                "`make bench`"
            },
            took.as_secs_f64()
        );
        let new = match (old.find(&begin), old.find(&end)) {
            (Some(from), Some(until)) => {
                format!("{}{part}{}", &old[..from], &old[until + end.len()..])
            }
            _ => format!("{}\n\n{part}\n", old.trim_end()),
        };
        fs::write(&path, new).expect("the results");
    }
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
