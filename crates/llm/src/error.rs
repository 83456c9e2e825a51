//! Errors of provider calls, classified by situation rather than by status code.
//!
//! No variant carries the provider's error text: response bodies may repeat keys, prompts and internal names (S-01).

use std::time::Duration;

use super::UnsupportedRequest;

/// Why a call produced no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// 401, 403.
    #[error("authentication failed; check that `api_key` is valid and has access to this model")]
    Authentication,
    /// 429. With `quota`, waiting does not help: the account's quota is exhausted.
    #[error("{}", rate_limited(*.quota))]
    RateLimited { retry_after: Option<Duration>, quota: bool },
    /// 404, or an equivalent error in the body.
    #[error(
        "model not found, or not available with this API key; list available models with `models/list` or `corbie \
         providers --models`, and check `base_url`"
    )]
    ModelNotFound,
    /// 5xx, 529 and every other temporary failure.
    #[error("provider is unavailable (status {status}); try again later or use another model")]
    Unavailable { status: u16, retry_after: Option<Duration> },
    /// The circuit breaker is open after repeated failures.
    #[error("circuit open after repeated failures; retry in 30 s or use another model")]
    CircuitOpen,
    /// 400, 413, 422. `kind` is the provider's error code, if it is a short word.
    #[error("provider rejected the request ({kind}); check its parameters and length")]
    BadRequest { kind: String },
    /// The provider's protocol cannot express the request; nothing was sent.
    #[error("{0}")]
    Unsupported(#[from] UnsupportedRequest),
    /// The provider could not be reached, or the connection broke.
    #[error("cannot connect to the provider: {0}")]
    Network(NetworkError),
    /// 408, 504, or our own deadline.
    #[error("request timed out; try again later, increase the provider's `timeout` or use another model")]
    Timeout,
    /// The response could not be parsed.
    #[error("invalid response from the provider: {0}; check `base_url`, or use another model")]
    InvalidResponse(&'static str),
    /// The stream ended before the response was complete.
    #[error("response was truncated: the connection closed early; try again or use another model")]
    Truncated,
    /// The stream exceeded its total time limit.
    #[error(
        "stream exceeded `router.stream_timeout`; request a shorter response, increase the timeout or use another model"
    )]
    StreamTimeout,
}

/// Kind of network failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    #[error("DNS lookup failed; check `base_url`")]
    DnsFailure,
    #[error(
        "address blocked by the egress policy (link-local or cloud metadata); check `base_url`, or allow it in \
         `network.allowed_addresses`"
    )]
    EgressDenied,
    #[error("connection refused; check `base_url` and that the server is running")]
    Refused,
    #[error("TLS handshake failed; check `base_url`, and that the certificate is issued by a public CA")]
    Tls,
    #[error("proxy refused the connection; check `proxy` and its credentials")]
    Proxy,
    #[error("connection timed out; check `base_url` and the network")]
    Unreachable,
    #[error("connection closed; try again later, or check `base_url`")]
    Closed,
}

/// Prefix before the name of an invalid parameter.
const INVALID_PREFIX: &str = "invalid_";

impl Error {
    /// Whether the same request may succeed on the same provider shortly (P-14).
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::RateLimited { quota, .. } => !quota,
            Error::Network(NetworkError::Proxy | NetworkError::EgressDenied) => false,
            Error::Network(_) | Error::Timeout => true,
            _ => false,
        }
    }

    /// Whether another provider or another key may succeed.
    pub fn allows_failover(&self) -> bool {
        !matches!(self, Error::BadRequest { .. })
    }

    /// The invalid parameter of the caller's request, if that is the error.
    pub fn parameter(&self) -> Option<&str> {
        match self {
            Error::BadRequest { kind } => kind.strip_prefix(INVALID_PREFIX),
            _ => None,
        }
    }

    /// The error for an invalid parameter of the caller's request.
    pub(super) fn invalid_parameter(parameter: &str) -> Error {
        Error::BadRequest { kind: format!("{INVALID_PREFIX}{parameter}") }
    }

    /// The wait requested by the provider.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::RateLimited { retry_after, .. } | Error::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Stable machine-readable error code.
    pub fn kind(&self) -> &'static str {
        match self {
            Error::Authentication => "authentication",
            Error::RateLimited { quota: false, .. } => "rate_limited",
            Error::RateLimited { quota: true, .. } => "quota_exhausted",
            Error::ModelNotFound => "model_not_found",
            Error::Unavailable { .. } | Error::CircuitOpen => "unavailable",
            Error::BadRequest { .. } | Error::Unsupported(_) => "bad_request",
            Error::Network(_) => "network",
            Error::Timeout => "timeout",
            Error::InvalidResponse(_) => "invalid_response",
            Error::Truncated => "truncated",
            Error::StreamTimeout => "stream_timeout",
        }
    }

    /// The error for a status code and the provider's error code.
    pub(super) fn of_status(status: u16, kind: Option<&str>, retry_after: Option<Duration>, quota: bool) -> Error {
        match status {
            401 | 403 => Error::Authentication,
            300..=399 => Error::InvalidResponse("unexpected redirect; check `base_url`"),
            404 => Error::ModelNotFound,
            408 | 504 => Error::Timeout,
            429 => Error::RateLimited { retry_after, quota },
            400 | 402 | 405..=407 | 409..=428 => {
                Error::BadRequest { kind: kind.map_or_else(|| "bad request".into(), safe_error_code) }
            }
            status => Error::Unavailable { status, retry_after },
        }
    }
}

/// The provider's error code, if it is a short lowercase word. Clients see it, so any other text is replaced.
fn safe_error_code(text: &str) -> String {
    let fits =
        !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if fits { text.to_owned() } else { "bad request".to_owned() }
}

fn rate_limited(quota: bool) -> &'static str {
    match quota {
        true => "quota exhausted; add credit to the provider account or use another provider",
        false => "rate limit exceeded; try again later or use another model",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p14_p15_only_what_passes_by_itself_is_tried_again() {
        let retried = [
            Error::RateLimited { retry_after: None, quota: false },
            Error::Network(NetworkError::Refused),
            Error::Timeout,
        ];
        assert!(retried.iter().all(Error::is_retryable));
        let not = [
            Error::Authentication,
            Error::RateLimited { retry_after: None, quota: true },
            Error::ModelNotFound,
            Error::BadRequest { kind: "invalid_request_error".into() },
            Error::Unavailable { status: 503, retry_after: None },
            Error::InvalidResponse("it is no JSON"),
        ];
        assert!(!not.iter().any(Error::is_retryable));
    }

    #[test]
    fn what_one_protocol_cannot_say_another_may() {
        assert!(Error::from(UnsupportedRequest::Audio).allows_failover());
        assert!(!Error::BadRequest { kind: "invalid_request_error".into() }.allows_failover());
    }

    #[test]
    fn s01_only_a_short_word_of_the_providers_goes_out() {
        let of = |kind| Error::of_status(400, Some(kind), None, false).to_string();
        assert!(of("invalid_request_error").contains("(invalid_request_error)"));
        for leak in ["sk-123", "the key sk-live is wrong", "", &"a".repeat(65), "A"] {
            assert!(of(leak).contains("(bad request)"), "{leak}");
        }
    }
}
