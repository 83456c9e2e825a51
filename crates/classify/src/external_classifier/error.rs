//! Errors of the external classifier. No variant contains text from the server.

use corbie_llm as providers;

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("cannot connect to the classification server: {0}")]
    Unreachable(&'static str),
    /// Requires a configuration change; retrying does not help.
    #[error(
        "address of the classification server is blocked by the egress policy (link-local or cloud metadata); check \
         its `url`, or allow it in `network.allowed_addresses`"
    )]
    EgressDenied,
    #[error("request to the classification server timed out; check the server, or increase its `timeout`")]
    Timeout,
    /// 401, 403.
    #[error("classification server rejected the request (status {status}); check its `headers`")]
    Refused { status: u16 },
    #[error("classification server is unavailable (status {status}); check its `url` and its log")]
    Status { status: u16 },
    #[error("invalid response from the classification server: {0}")]
    Unreadable(&'static str),
    /// The tool ran and failed. Another text may succeed.
    #[error("tool `{tool}` of the classification server returned an error; see the server's log")]
    Tool { tool: String },
    #[error("classification server has no tool `{tool}`; set its name in `{key}`")]
    MissingTool { tool: String, key: &'static str },
    /// An answer that violates the protocol is never used.
    #[error("protocol error of the classification server: {0}")]
    Invalid(String),
    #[error(
        "classification server has {found} categories, expected {expected}; correct `classification.num_categories`"
    )]
    CategoryCountMismatch { expected: usize, found: usize },
    #[error("cannot start the classification server: {0}; check its `command`")]
    SpawnFailed(std::io::ErrorKind),
    #[error("classification server is temporarily disabled after repeated failures (circuit open)")]
    CircuitOpen,
}

impl Error {
    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Unreachable(_) | Error::Timeout) || self.is_server_failure()
    }

    /// Whether the server answered that it failed, which may be the fault of one text. 501 and 505 are permanent.
    pub(super) fn is_server_failure(&self) -> bool {
        matches!(self, Error::Status { status } if (500..=599).contains(status) && !matches!(status, 501 | 505))
    }

    /// Whether the error counts against the server, rather than against the text or ourselves.
    pub(super) fn is_server_fault(&self) -> bool {
        !matches!(self, Error::Tool { .. } | Error::CircuitOpen)
    }

    /// The error for an HTTP status.
    pub(super) fn of_status(status: http::StatusCode) -> Error {
        match status.as_u16() {
            status @ (401 | 403) => Error::Refused { status },
            408 | 504 => Error::Timeout,
            status => Error::Status { status },
        }
    }
}

/// Maps errors of the shared HTTP client.
impl From<providers::Error> for Error {
    fn from(error: providers::Error) -> Error {
        use providers::NetworkError;
        match error {
            providers::Error::Network(NetworkError::DnsFailure) => {
                Error::Unreachable("DNS lookup failed; check its `url`")
            }
            providers::Error::Network(NetworkError::EgressDenied) => Error::EgressDenied,
            providers::Error::Network(NetworkError::Refused) => {
                Error::Unreachable("connection refused; check its `url` and that it is running")
            }
            providers::Error::Network(NetworkError::Tls) => {
                Error::Unreachable("TLS handshake failed; check its `url` and its certificate")
            }
            providers::Error::Network(NetworkError::Unreachable) => {
                Error::Unreachable("connection timed out; check its `url` and the network")
            }
            providers::Error::Timeout => Error::Timeout,
            providers::Error::InvalidResponse(why) => Error::Unreadable(why),
            _ => Error::Unreachable("connection closed"),
        }
    }
}
