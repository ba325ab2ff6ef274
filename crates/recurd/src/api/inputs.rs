//! Reads what an operation takes from path, query, body and headers: texts for the database, which checks their values.

use super::etag;
use super::fields::Fields;
use super::operations::{DEFAULT_LIMIT, Input, Kind, LARGEST_LIMIT, Operation, Place, sql_name};
use super::problem::Problem;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use recur_core::action::columns::{Column, MAINTAINED};

/// What a request says.
pub struct Values {
    /// One for each bound input, in order.
    pub bound: Vec<Option<String>>,
    /// How many items a page has.
    pub limit: Option<u32>,
    /// The fields to show; all where there are none.
    pub fields: Vec<String>,
}

pub fn read(
    operation: &Operation,
    uri: &Uri,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<Values, Problem> {
    let query = query(operation, uri)?;
    let body = fields(operation, headers, body)?;
    let mut values = Values {
        bound: Vec::new(),
        limit: None,
        fields: Vec::new(),
    };
    for input in operation.inputs {
        let value = match input.place {
            Place::Path => Some(path_value(operation, uri, input)?),
            Place::Query => from_query(input, &query)?,
            Place::Body => from_body(input, &body)?,
            Place::Definition | Place::Changes => Some(body.text()),
            Place::Version => etag::expected(headers)?,
        };
        if input.required && value.is_none() {
            return Err(Problem::invalid(format!(
                "the field {:?} is missing: {}",
                input.name, input.about
            )));
        }
        match input.kind {
            Kind::Fields => {
                values.fields = field_names(value.as_deref().unwrap_or(""))?;
            }
            Kind::Limit => {
                let limit = limit(value)?;
                values.limit = Some(limit);
                // One more says whether there is another page.
                values.bound.push(Some((limit + 1).to_string()));
            }
            _ => values.bound.push(value),
        }
    }
    Ok(values)
}

/// The fields of an action to show, as the caller calls them. Each stands once in the answer.
fn field_names(text: &str) -> Result<Vec<String>, Problem> {
    let mut names: Vec<String> = Vec::new();
    for name in text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        let field = sql_name(name);
        if Column::named(field).is_none() && !MAINTAINED.contains(&field) {
            let shown: String = name.chars().take(100).collect();
            let problem = format!("fields: {shown:?}: expected names of fields of an action");
            return Err(Problem::invalid(problem));
        }
        if names.iter().any(|other| sql_name(other) == field) {
            return Err(Problem::invalid(format!("fields: {name:?} is given twice")));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn limit(value: Option<String>) -> Result<u32, Problem> {
    let Some(text) = value else {
        return Ok(DEFAULT_LIMIT);
    };
    match text.parse() {
        Ok(limit) if (1..=LARGEST_LIMIT).contains(&limit) => Ok(limit),
        _ => Err(Problem::invalid(format!(
            "limit = {text:?}: expected a whole number from 1 to {LARGEST_LIMIT}"
        ))),
    }
}

/// The segment of the path that stands where the operation's path has the parameter.
fn path_value(operation: &Operation, uri: &Uri, input: &Input) -> Result<String, Problem> {
    let parameter = format!("{{{}}}", input.name);
    let mut pairs = operation.path.split('/').zip(uri.path().split('/'));
    let segment = pairs
        .find(|(template, _)| *template == parameter)
        .map_or("", |(_, segment)| segment);
    uuid(input.name, segment)
}

fn uuid(name: &str, text: &str) -> Result<String, Problem> {
    match uuid::Uuid::try_parse(text) {
        Ok(id) => Ok(id.to_string()),
        Err(_) => Err(Problem::invalid(format!(
            "{name} = {text:?}: expected a UUID"
        ))),
    }
}

fn query(operation: &Operation, uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    let axum::extract::Query(pairs) =
        axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri)
            .map_err(|error| Problem::bad_request(error.body_text()))?;
    let mut known = Vec::new();
    for (name, value) in pairs {
        let name = sql_name(&name).to_owned();
        let is_known = operation
            .inputs
            .iter()
            .any(|input| input.place == Place::Query && input.name == name);
        if !is_known {
            return Err(unknown(operation, Place::Query, &name));
        }
        if known.iter().any(|(other, _)| *other == name) {
            return Err(Problem::invalid(format!(
                "the parameter {name:?} is given twice"
            )));
        }
        known.push((name, value));
    }
    Ok(known)
}

fn unknown(operation: &Operation, place: Place, name: &str) -> Problem {
    let mut known: Vec<&str> = Vec::new();
    for input in operation.inputs {
        match input.place {
            Place::Definition if place == Place::Body => {
                known.extend(Column::ALL.iter().map(|column| column.name()));
                known.push("on_existing");
            }
            other if other == place => known.push(input.name),
            _ => {}
        }
    }
    let what = match place {
        Place::Query => "parameter",
        _ => "field",
    };
    let expected = match known.is_empty() {
        true => "none".to_owned(),
        false => format!("one of {}", known.join(", ")),
    };
    Problem::invalid(format!("there is no {what} {name:?}: expected {expected}"))
}

fn from_query(input: &Input, query: &[(String, String)]) -> Result<Option<String>, Problem> {
    let Some((_, text)) = query.iter().find(|(name, _)| name == input.name) else {
        return Ok(None);
    };
    let expected =
        |what: &str| Problem::invalid(format!("{} = {text:?}: expected {what}", input.name));
    match input.kind {
        Kind::Uuid => return uuid(input.name, text).map(Some),
        Kind::Integer if text.parse::<i64>().is_err() => return Err(expected("a whole number")),
        Kind::Boolean if !matches!(text.as_str(), "true" | "false") => {
            return Err(expected("true or false"));
        }
        Kind::Choice(values) if !values.contains(&text.as_str()) => {
            return Err(expected(&format!("one of {}", values.join(", "))));
        }
        Kind::Object if Fields::parse(text).is_err() => return Err(expected("a JSON object")),
        _ => {}
    }
    Ok(Some(text.clone()))
}

/// The fields of the body; none where the operation takes no body.
fn fields(operation: &Operation, headers: &HeaderMap, body: &[u8]) -> Result<Fields, Problem> {
    if body.is_empty() && !operation.needs_body() {
        return Ok(Fields::default());
    }
    if !operation.takes_body() {
        return Err(Problem::bad_request("this operation takes no body"));
    }
    let media_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let essence = media_type.split(';').next().unwrap_or("").trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            format!("Content-Type = {media_type:?}: expected application/json"),
        ));
    }
    let text = std::str::from_utf8(body)
        .map_err(|error| Problem::bad_request(format!("the body is not UTF-8: {error}")))?;
    let fields = Fields::parse(text)
        .map_err(|error| Problem::bad_request(format!("the body is not a JSON object: {error}")))?;
    for name in fields.names() {
        // What a change may name, the database knows; the rest of a definition is the function's arguments.
        let is_known = operation.inputs.iter().any(|input| match input.place {
            Place::Body => input.name == name,
            Place::Definition => name == "on_existing" || Column::named(name).is_some(),
            Place::Changes => true,
            _ => false,
        });
        if !is_known {
            return Err(unknown(operation, Place::Body, name));
        }
    }
    Ok(fields)
}

fn from_body(input: &Input, body: &Fields) -> Result<Option<String>, Problem> {
    let Some(json) = body.get(input.name).filter(|json| *json != "null") else {
        return Ok(None);
    };
    let expected = |what: &str| {
        let shown: String = json.chars().take(100).collect();
        Problem::invalid(format!("{} = {shown}: expected {what}", input.name))
    };
    let text = || serde_json::from_str::<String>(json).map_err(|_| expected("a text"));
    match input.kind {
        Kind::Any => Ok(Some(json.to_owned())),
        Kind::Object if json.starts_with('{') => Ok(Some(json.to_owned())),
        Kind::Changes if json.starts_with('{') => match Fields::parse(json) {
            Ok(changes) => Ok(Some(changes.text())),
            Err(error) => Err(Problem::invalid(format!("{}: {error}", input.name))),
        },
        Kind::Object | Kind::Changes => Err(expected("an object")),
        Kind::Texts => match serde_json::from_str::<Vec<String>>(json) {
            Ok(_) => Ok(Some(json.to_owned())),
            Err(_) => Err(expected("an array of texts")),
        },
        Kind::Boolean if matches!(json, "true" | "false") => Ok(Some(json.to_owned())),
        Kind::Boolean => Err(expected("true or false")),
        Kind::Integer | Kind::Limit => whole(json)
            .map(Some)
            .ok_or_else(|| expected("a whole number")),
        Kind::UpTo(most) => match whole(json) {
            Some(number)
                if number
                    .parse()
                    .is_ok_and(|number: i64| number <= most.into()) =>
            {
                Ok(Some(number))
            }
            _ => Err(expected(&format!("a whole number, at most {most}"))),
        },
        Kind::Uuid => uuid(input.name, &text()?).map(Some),
        Kind::Choice(values) => {
            let text = text()?;
            if values.contains(&text.as_str()) {
                return Ok(Some(text));
            }
            Err(expected(&format!("one of {}", values.join(", "))))
        }
        Kind::Text | Kind::Instant | Kind::Interval | Kind::Fields => text().map(Some),
    }
}

/// A whole number, also where it is written as 1.0 or 1e3.
fn whole(json: &str) -> Option<String> {
    if let Ok(number) = json.parse::<i64>() {
        return Some(number.to_string());
    }
    let number: f64 = json.parse().ok()?;
    let is_exact = number.fract() == 0.0 && number.abs() < 9e15;
    is_exact.then(|| format!("{number:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::operations;

    fn read(id: &str, query: &str, body: &str) -> Result<Values, String> {
        let operation = operations::all()
            .find(|operation| operation.id == id)
            .unwrap();
        let path = operation
            .path
            .replace("{id}", &uuid::Uuid::nil().to_string());
        let uri = format!("{path}?{query}").parse().unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        super::read(operation, &uri, &headers, body.as_bytes())
            .map_err(|problem| format!("{} {}", problem.status.as_u16(), problem.reason()))
    }

    #[test]
    fn fields_are_known_and_named_once() {
        let values = read("recurring.get", "fields=id,+cron_expr,,run_count", "").unwrap();
        assert_eq!(values.fields, ["id", "cron_expr", "run_count"]);
        for (fields, problem) in [
            ("id,id", "422 fields: \"id\" is given twice"),
            (
                "schedule,cron_expr",
                "422 fields: \"cron_expr\" is given twice",
            ),
            (
                "id,colour",
                "422 fields: \"colour\": expected names of fields of an action",
            ),
        ] {
            let read = read("recurring.list", &format!("fields={fields}"), "");
            assert_eq!(read.err().as_deref(), Some(problem));
        }
    }

    #[test]
    fn a_claim_has_a_largest_size() {
        for limit in ["500", "5e2", "null"] {
            assert!(read("dispatch.claim", "", &format!("{{\"limit\": {limit}}}")).is_ok());
        }
        for limit in ["501", "1e300", "true"] {
            let read = read("dispatch.claim", "", &format!("{{\"limit\": {limit}}}"));
            let problem = format!("422 limit = {limit}: expected a whole number, at most 500");
            assert_eq!(read.err(), Some(problem));
        }
    }

    #[test]
    fn changes_that_are_compared_may_have_names_of_other_schedulers() {
        let body = r#"{"changes": {"cron_expr": "@daily"}}"#;
        let values = read("recurring.compare", "", body).unwrap();
        assert_eq!(values.bound[1].as_deref(), Some(r#"{"schedule":"@daily"}"#));
        let body = r#"{"changes": {"cron_expr": "@daily", "schedule": "1h"}}"#;
        assert!(read("recurring.compare", "", body).is_err());
    }
}
