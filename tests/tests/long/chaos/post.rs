//! The consumers of `examples/`, and the mails that they say they have sent.

use nix::sys::signal::Signal;
use pg_recur_tests::consumers::{Example, LANGUAGES, Language};
use std::path::{Path, PathBuf};

pub const LEASE_SECONDS: u64 = 2;

/// One consumer of each language.
pub struct Post {
    host: PathBuf,
    consumers: Vec<(Language, Example)>,
    /// What those have printed that were killed.
    earlier: String,
}

/// A line of a consumer: the effect of one attempt. `to` and `due` identify the dispatch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mail {
    pub to: String,
    pub due: String,
    pub attempt: i32,
}

impl Post {
    pub fn open(host: &Path) -> Post {
        let consumers = LANGUAGES.map(|language| (language, start(language, host)));
        Post {
            host: host.to_path_buf(),
            consumers: consumers.into(),
            earlier: String::new(),
        }
    }

    pub fn number(&self) -> usize {
        self.consumers.len()
    }

    pub fn signal(&self, consumer: usize, signal: Signal) {
        self.consumers[consumer].1.signal(signal);
    }

    /// Another takes the place of one that was killed.
    pub fn replace(&mut self, consumer: usize) {
        let (language, example) = &mut self.consumers[consumer];
        example.wait();
        self.earlier += &example.output();
        self.earlier += "\n";
        *example = start(*language, &self.host);
    }

    pub fn mails(&self) -> Vec<Mail> {
        let outputs = self.consumers.iter().map(|(_, example)| example.output());
        std::iter::once(self.earlier.clone())
            .chain(outputs)
            .flat_map(|output| complete_lines(&output).filter_map(mail).collect::<Vec<_>>())
            .collect()
    }

    /// All leave when they are asked to.
    pub fn close(mut self) {
        for (_, example) in &self.consumers {
            example.signal(Signal::SIGTERM);
        }
        for (language, example) in &mut self.consumers {
            let status = example.wait();
            assert!(status.success(), "{language:?}: {status}");
        }
    }
}

fn start(language: Language, host: &Path) -> Example {
    let lease = LEASE_SECONDS.to_string();
    let name = format!("{language:?}");
    let settings = [
        ("CONSUMER", name.as_str()),
        ("LEASE", &lease),
        ("POLL", "1"),
        ("CONCURRENCY", "8"),
    ];
    Example::connect(
        language,
        &host.display().to_string(),
        5432,
        "app",
        &settings,
    )
}

/// A consumer that is writing, or was killed meanwhile, leaves a part of a line.
fn complete_lines(output: &str) -> impl Iterator<Item = &str> {
    let end = output.rfind('\n').unwrap_or(0);
    output[..end].lines()
}

/// Reads `mail to X (due 2026-01-31 12:00:00…, tenant …, attempt N)`.
fn mail(line: &str) -> Option<Mail> {
    let (_, rest) = line.split_once("mail to ")?;
    let (to, rest) = rest.split_once(" (due ")?;
    let (_, attempt) = rest.rsplit_once("attempt ")?;
    Some(Mail {
        to: to.to_owned(),
        due: rest.get(..19)?.replace('T', " "),
        attempt: attempt.strip_suffix(')')?.parse().ok()?,
    })
}
