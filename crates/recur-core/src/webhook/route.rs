//! Which endpoints get a dispatch.

use super::Operator;
use crate::pattern::Pattern;
use std::collections::HashMap;

/// An owner's endpoint that may get dispatches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The owner.
    pub owner_id: i32,
    /// The name.
    pub name: String,
    /// Which action types it gets.
    pub patterns: Vec<Pattern>,
}

/// The endpoints of some owners, and those of the operator. What an action type leads to is found once for each owner.
pub struct Routes<'a> {
    own: HashMap<i32, Vec<&'a Candidate>>,
    operators: &'a [Operator],
    known: HashMap<(i32, String), Vec<&'a str>>,
}

impl<'a> Routes<'a> {
    /// Routes to these endpoints.
    pub fn new(own: &'a [Candidate], operators: &'a [Operator]) -> Routes<'a> {
        let mut by_owner: HashMap<i32, Vec<&Candidate>> = HashMap::new();
        for candidate in own {
            by_owner
                .entry(candidate.owner_id)
                .or_default()
                .push(candidate);
        }
        Routes {
            own: by_owner,
            operators,
            known: HashMap::new(),
        }
    }

    /// The names of the endpoints that get an owner's dispatches of an action type. `name_of` tells the owner's name.
    pub fn of(
        &mut self,
        owner_id: i32,
        action_type: &str,
        name_of: impl FnOnce(i32) -> String,
    ) -> &[&'a str] {
        let (own, operators) = (&self.own, self.operators);
        self.known
            .entry((owner_id, action_type.to_owned()))
            .or_insert_with(|| {
                let own = own.get(&owner_id).into_iter().flatten();
                let own = own.filter(|one| {
                    one.patterns
                        .iter()
                        .any(|pattern| pattern.matches(action_type))
                });
                let name = name_of(owner_id);
                let operators = operators.iter().filter(|one| one.takes(&name, action_type));
                own.map(|one| one.name.as_str())
                    .chain(operators.map(|one| one.key.as_str()))
                    .collect()
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(owner_id: i32, name: &str, patterns: &[&str]) -> Candidate {
        let patterns = patterns.iter().map(|text| text.parse().unwrap()).collect();
        Candidate {
            owner_id,
            name: name.to_owned(),
            patterns,
        }
    }

    #[test]
    fn a_dispatch_goes_to_its_owners_endpoints_and_to_the_operators() {
        let own = [
            candidate(1, "all", &["*"]),
            candidate(1, "tasks", &["task:*", "task:created"]),
            candidate(2, "others", &["*"]),
            candidate(1, "none", &[]),
        ];
        let operators =
            Operator::parse(r#"[{"name": "erp", "patterns": ["task:*"], "owners": ["one"]}]"#)
                .unwrap();
        let mut routes = Routes::new(&own, &operators);
        let name = |id| if id == 1 { "one" } else { "two" }.to_owned();
        assert_eq!(
            routes.of(1, "task:created", name),
            ["all", "tasks", "operator:erp"]
        );
        assert_eq!(routes.of(1, "mail", name), ["all"]);
        assert_eq!(routes.of(2, "task:created", name), ["others"]);
        assert!(routes.of(3, "mail", name).is_empty());
        // Found once.
        assert_eq!(routes.of(1, "mail", |_| panic!("known")), ["all"]);
    }
}
