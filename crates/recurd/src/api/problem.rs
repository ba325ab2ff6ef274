//! Errors as RFC 9457 describes them, with the database's own words where a caller can act on them.

use crate::auth::Refusal;
use crate::db::Failure;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

#[derive(Clone, Debug)]
pub struct Problem {
    pub status: StatusCode,
    detail: String,
    hint: Option<String>,
    code: Option<String>,
    retry_after: Option<u64>,
    /// For the log, and not for the caller.
    cause: Option<String>,
}

/// How long a caller waits who met a database that is starting, busy or gone.
const RETRY_AFTER_SECONDS: u64 = 1;

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem {
            status,
            detail: detail.into(),
            hint: None,
            code: None,
            retry_after: None,
            cause: None,
        }
    }

    pub fn bad_request(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// A value that is not what was expected.
    pub fn invalid(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    pub fn with_hint(self, hint: impl Into<String>) -> Problem {
        Problem {
            hint: Some(hint.into()),
            ..self
        }
    }

    pub fn retry_after(self, seconds: u64) -> Problem {
        Problem {
            retry_after: Some(seconds),
            ..self
        }
    }

    pub fn unavailable(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(RETRY_AFTER_SECONDS)
    }

    /// Without what the statement adds to the words about the one definition that a request has.
    pub fn about_one(mut self) -> Problem {
        if let Some(rest) = self.detail.strip_prefix("element 1: ") {
            self.detail = rest.to_owned();
        }
        self
    }

    /// What is wrong; of errors that are not the caller's, what the log says of them.
    pub fn reason(&self) -> &str {
        self.cause().unwrap_or(&self.detail)
    }

    /// For the log, and not for the caller.
    pub fn with_cause(self, cause: String) -> Problem {
        Problem {
            cause: Some(cause),
            ..self
        }
    }

    /// What the log says of an error that is not the caller's.
    pub fn cause(&self) -> Option<&str> {
        self.cause
            .as_deref()
            .filter(|_| self.status.is_server_error())
    }

    /// The answer; `request_id` finds it in the logs.
    pub fn respond(&self, request_id: &str) -> Response {
        let mut body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or("Error"),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "request_id": request_id,
        });
        if let Some(hint) = &self.hint {
            body["hint"] = hint.as_str().into();
        }
        if let Some(code) = &self.code {
            body["code"] = code.as_str().into();
        }
        let mut response = (self.status, body.to_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Problem {
        match refusal {
            Refusal::Missing => {
                Problem::new(StatusCode::UNAUTHORIZED, "the request has no identity")
                    .with_hint("Send a bearer token in the header Authorization.")
            }
            Refusal::Invalid => Problem::new(
                StatusCode::UNAUTHORIZED,
                "the identity of the request is not valid",
            ),
            Refusal::NotAllowed => Problem::new(
                StatusCode::FORBIDDEN,
                "the role of the request is not on the allow-list",
            ),
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Problem {
        let cause = Some(failure.to_string());
        let problem = match failure {
            Failure::Sql(error) => from_sql(&error),
            Failure::Unavailable(_) => Problem::unavailable("the database does not answer"),
            Failure::Busy => Problem::unavailable("all database connections are in use"),
            Failure::RoleRefused(role) => Problem::new(
                StatusCode::FORBIDDEN,
                format!("role {:?} does not exist, or is a superuser", role.as_str()),
            ),
            Failure::Internal(_) => internal(),
        };
        Problem { cause, ..problem }
    }
}

fn internal() -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "an internal error: the log has it under the request_id",
    )
}

/// The status of an SQLSTATE; None stands for an internal error.
fn status(code: &str) -> Option<StatusCode> {
    let status = match code {
        "P0002" => StatusCode::NOT_FOUND,
        "RC011" => StatusCode::PRECONDITION_FAILED,
        "RC012" => StatusCode::UNPROCESSABLE_ENTITY,
        // Rights of the role; a level that it lacks.
        "42501" => StatusCode::FORBIDDEN,
        // P0003: a name that several have.
        "55000" | "23505" | "P0003" => StatusCode::CONFLICT,
        // A command of the caller's that is no SQL.
        "42601" => StatusCode::UNPROCESSABLE_ENTITY,
        "53400" => StatusCode::TOO_MANY_REQUESTS,
        // Locks, conflicts that repetition did not resolve, a standby, a server that starts or stops.
        "55P03" | "40001" | "40P01" | "25006" | "57014" | "53300" => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        _ if code.starts_with("RC") => StatusCode::CONFLICT,
        _ if code.starts_with("57P") || code.starts_with("08") => StatusCode::SERVICE_UNAVAILABLE,
        _ if code.starts_with("22") || code.starts_with("23") => StatusCode::UNPROCESSABLE_ENTITY,
        _ if code.starts_with("54") => StatusCode::PAYLOAD_TOO_LARGE,
        _ => return None,
    };
    Some(status)
}

fn from_sql(error: &tokio_postgres::error::DbError) -> Problem {
    let code = error.code().code();
    let Some(status) = status(code) else {
        return internal();
    };
    let mut problem = Problem::new(status, error.message());
    problem.hint = error.hint().map(str::to_owned);
    problem.code = Some(code.to_owned());
    if matches!(
        status,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS
    ) {
        problem = problem.retry_after(RETRY_AFTER_SECONDS);
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstates_have_their_status() {
        for (code, expected) in [
            ("P0002", 404),
            ("22023", 422),
            ("22P02", 422),
            ("42501", 403),
            ("55000", 409),
            ("42601", 422),
            ("P0003", 409),
            ("RC001", 409),
            ("RC002", 409),
            ("RC011", 412),
            ("RC012", 422),
            ("23505", 409),
            ("23514", 422),
            ("54001", 413),
            ("53400", 429),
            ("40001", 503),
            ("57014", 503),
            ("57P01", 503),
            ("08006", 503),
        ] {
            assert_eq!(
                status(code).map(|status| status.as_u16()),
                Some(expected),
                "{code}"
            );
        }
        for code in ["XX000", "42883", "58030"] {
            assert_eq!(status(code), None, "{code}");
        }
    }

    #[test]
    fn an_internal_error_says_nothing_of_the_inside() {
        let problem = Problem::from(Failure::Internal("relation of the inside".to_owned()));
        assert_eq!(problem.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!problem.detail.contains("inside"));
    }
}
