//! API-independent errors with a status.

use std::time::{Duration, SystemTime};

use axum::response::{IntoResponse, Response};
use http::header::RETRY_AFTER;
use http::{HeaderName, HeaderValue, StatusCode};

use crate::{Api, stream};

/// Offset of the date in `Retry-After`.
const RETRY_DATE_OFFSET: Duration = Duration::from_secs(2);

/// Form of the retry hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryHint {
    Seconds(u64),
    Milliseconds(u64),
    Date,
    /// Google's `RetryInfo` in the body.
    RetryInfo,
}

#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) reason: ErrorReason,
    pub(crate) retry_hint: Option<RetryHint>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ErrorReason {
    /// No details besides the status.
    Status,
    Quota,
    /// Invalid API key.
    Key,
    /// Leaks the key itself, in the API's error type if it has one.
    Leak(String),
}

impl ApiError {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> ApiError {
        ApiError { status, message: message.into(), reason: ErrorReason::Status, retry_hint: None }
    }

    pub(crate) fn respond(&self, api: Api) -> Response {
        let mut response = (status_code(self.status), stream::json_response(&api.error_body(self))).into_response();
        response.headers_mut().extend(self.retry_hint.and_then(RetryHint::header));
        response
    }
}

impl RetryHint {
    fn header(self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            RetryHint::Seconds(seconds) => Some((RETRY_AFTER, seconds.into())),
            RetryHint::Milliseconds(milliseconds) => {
                Some((HeaderName::from_static("retry-after-ms"), milliseconds.into()))
            }
            RetryHint::Date => {
                let date = httpdate::fmt_http_date(SystemTime::now() + RETRY_DATE_OFFSET);
                Some((RETRY_AFTER, HeaderValue::try_from(date).expect("a date is plain ASCII")))
            }
            RetryHint::RetryInfo => None,
        }
    }
}

pub(crate) fn status_code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).expect("only statuses from 400 to 599 and 200 are used")
}
