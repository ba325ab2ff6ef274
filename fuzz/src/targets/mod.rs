//! All targets.

mod actions;
mod client;
mod decisions;
mod journeys;
mod messages;
mod notations;
mod occurrences;
mod queue;
mod schedules;
mod texts;
mod values;

use crate::input::Input;
use crate::random::Random;
use crate::target::{Signature, Target};

/// All targets, in the order in which they are shown. Cheap targets have large shares.
pub const ALL: &[Target] = &[
    target("cron", 60, texts::cron, notations::cron),
    target("nickname", 80, texts::nickname, notations::nickname),
    target("interval", 100, texts::interval, notations::interval),
    target("iso8601", 100, texts::iso8601, notations::interval),
    target("rule", 30, texts::rule, notations::rule),
    target("rrule", 30, texts::rrule, notations::rrule),
    target("at", 60, texts::at, notations::at),
    target("zone", 2, texts::zone, notations::zone),
    target("schedule", 6, texts::schedule, schedules::schedule),
    target("describe", 30, texts::pair, schedules::describe),
    target("lint", 3, texts::schedule, schedules::lint),
    target("admit", 4, texts::cron, schedules::admit),
    target("bounds", 6, texts::schedule, occurrences::bounds),
    target("spacing", 10, texts::schedule, occurrences::spacing),
    target("cron_walk", 12, texts::cron, occurrences::cron),
    target("cron_zone", 1, texts::cron, occurrences::cron_in_zone),
    target("rule_walk", 10, texts::rule, occurrences::rule),
    target("rrule_walk", 10, texts::rrule, occurrences::rrule),
    target("changes", 12, texts::choices_only, actions::changes),
    target("column", 20, texts::value, actions::column),
    target("backoff", 40, texts::backoff, values::backoff),
    target("span", 80, texts::span, values::span),
    target("wait", 60, texts::choices_only, values::wait),
    target("pattern", 100, texts::pattern, values::pattern),
    target("journey", 30, texts::journey, journeys::journey),
    target("notify", 20, texts::names, messages::notify),
    target(
        "dispatch_id",
        60,
        texts::choices_only,
        messages::dispatch_id,
    ),
    target("report", 80, texts::choices_only, decisions::report),
    target("decide", 60, texts::choices_only, decisions::decide),
    target("cursor", 40, texts::operations, queue::cursor),
    target("client", 60, texts::connection, client::options),
];

const fn target(
    name: &'static str,
    share: u32,
    generate: fn(&mut Random) -> Input,
    check: fn(&Input) -> Signature,
) -> Target {
    Target {
        name,
        share,
        generate,
        check,
    }
}

/// The target of that name.
pub fn named(name: &str) -> Option<&'static Target> {
    ALL.iter().find(|target| target.name == name)
}
