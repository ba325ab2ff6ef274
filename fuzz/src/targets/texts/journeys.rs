//! Journeys: graphs of states as JSON, in each of the forms.

use super::with_choices;
use crate::input::Input;
use crate::random::Random;

/// States of a journey, most of them sound.
pub fn journey(random: &mut Random) -> Input {
    let count = random.below(7);
    let in_list = random.one_in(3);
    let states: Vec<String> = (0..count)
        .map(|number| state(random, number, count, in_list))
        .collect();
    let (open, close) = if in_list { ("[", "]") } else { ("{", "}") };
    let states = format!("{open}{}{close}", states.join(","));
    let text = match random.below(12) {
        10 => format!(r#"{{"spec":{{"states":{states}}},"metadata":{{"name":"n"}}}}"#),
        11 => format!(r#"{{"start":"s0","states":{states}}}"#),
        0 => format!(r#"{{"kind":"Journey","states":{states}}}"#),
        1 => format!(r#"{{"kind":"Journey","spec":{{"states":{states}}}}}"#),
        2 => format!(r#"{{"states":{states}}}"#),
        3 => {
            let kind = random.pick(&["Api", "journey", "Journey "]);
            format!(r#"{{"kind":"{kind}","states":{states}}}"#)
        }
        _ => states,
    };
    with_choices(random, text)
}

fn id(random: &mut Random, number: usize) -> String {
    match random.below(30) {
        0 => random
            .pick(&["kind", "states", "spec", " ", "", "ü"])
            .to_owned(),
        1 => "x".repeat(99 + random.below(3)),
        _ => format!("s{number}"),
    }
}

fn state(random: &mut Random, number: usize, count: usize, in_list: bool) -> String {
    let id = id(random, number);
    let kind = random.pick(&[
        "\"task\"",
        "\"task\"",
        "\"wait\"",
        "\"Wait\"",
        "\"form:a\"",
        "\"end\"",
    ]);
    let mut fields = vec![format!("\"type\":{kind}")];
    if random.one_in(40) {
        fields[0] = random
            .pick(&["\"type\":1", "\"type\":\" \"", "\"kind\":\"task\""])
            .to_owned();
    }
    let next = |random: &mut Random| {
        let unknown = usize::from(random.one_in(30));
        format!("\"s{}\"", random.below(count + unknown))
    };
    match random.below(6) {
        0 => {}
        1 => fields.push("\"next\":null".to_owned()),
        2 => fields.push(format!("\"next\":{}", next(random))),
        _ => {
            let several: Vec<String> = (0..random.below(4)).map(|_| next(random)).collect();
            fields.push(format!("\"next\":[{}]", several.join(",")));
        }
    }
    if random.one_in(60) {
        fields.push(
            random
                .pick(&["\"default\":\"s0\"", "\"next\":1", "\"id\":\"s0\""])
                .to_owned(),
        );
    }
    match in_list {
        true => format!("{{\"id\":\"{id}\",{}}}", fields.join(",")),
        false => format!("\"{id}\":{{{}}}", fields.join(",")),
    }
}
