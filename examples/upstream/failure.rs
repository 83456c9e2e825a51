//! API-independent errors with a status.

use std::time::{Duration, SystemTime};

use axum::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, StatusCode};

use crate::{Api, stream};

/// Offset of the date in `Retry-After`.
const AHEAD: Duration = Duration::from_secs(2);

/// Form of the retry hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Seconds(u64),
    Milliseconds(u64),
    Date,
    /// Google's `RetryInfo` in the body.
    RetryInfo,
}

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) reason: Reason,
    pub(crate) wait: Option<Wait>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Reason {
    /// No details besides the status.
    Status,
    Quota,
    /// Invalid API key.
    Key,
    /// Leaks the key itself, in the API's error type if it has one.
    Leak(String),
}

impl Failure {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into(), reason: Reason::Status, wait: None }
    }

    pub(crate) fn respond(&self, api: Api) -> Response {
        let mut response = (status_code(self.status), stream::whole(&api.failure(self))).into_response();
        response.headers_mut().extend(self.wait.and_then(Wait::header));
        response
    }
}

impl Wait {
    fn header(self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            Wait::Seconds(seconds) => Some((RETRY_AFTER, seconds.into())),
            Wait::Milliseconds(milliseconds) => Some((HeaderName::from_static("retry-after-ms"), milliseconds.into())),
            Wait::Date => {
                let date = httpdate::fmt_http_date(SystemTime::now() + AHEAD);
                Some((RETRY_AFTER, HeaderValue::try_from(date).expect("a date is plain ASCII")))
            }
            Wait::RetryInfo => None,
        }
    }
}

pub(crate) fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).expect("only statuses from 400 to 599 and 200 are used")
}
