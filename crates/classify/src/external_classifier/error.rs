//! Errors of the external classifier. No variant contains text from the server.

use corbie_llm as providers;

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the classification server cannot be reached: {0}")]
    Unreachable(&'static str),
    /// Requires a configuration change; retrying does not help.
    #[error(
        "the classification server is at an address of the link or of a cloud's metadata, which corbie does not connect \
to; check its `url`, or allow it with `network.allowed_addresses`"
    )]
    EgressDenied,
    #[error("the classification server did not answer in time; raise its timeout if it is only slow")]
    Timeout,
    /// 401, 403.
    #[error("the classification server refused the request (status {status}); check its `headers`")]
    Refused { status: u16 },
    #[error("the classification server cannot answer (status {status}); check its `url` and its own log")]
    Status { status: u16 },
    #[error("the classification server's answer could not be read: {0}")]
    Unreadable(&'static str),
    /// The tool ran and failed. Another text may succeed.
    #[error("the tool `{tool}` of the classification server reported an error; its own log says which")]
    Tool { tool: String },
    #[error("the classification server has no tool `{tool}`; name the one it has in `{key}`")]
    MissingTool { tool: String, key: &'static str },
    /// An answer that violates the protocol is never used.
    #[error("the classification server's answer breaks the protocol: {0}")]
    Invalid(String),
    #[error(
        "the classification server has {found} categories, not {expected}; correct `classification.num_categories`"
    )]
    CategoryCountMismatch { expected: usize, found: usize },
    #[error("the classification server could not be started: {0}; check its `command`")]
    SpawnFailed(std::io::ErrorKind),
    #[error("the classification server failed several times and is left alone for a moment")]
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
                Error::Unreachable("its name is not known; check its `url`")
            }
            providers::Error::Network(NetworkError::EgressDenied) => Error::EgressDenied,
            providers::Error::Network(NetworkError::Refused) => {
                Error::Unreachable("nothing listens there; check its `url` and that it runs")
            }
            providers::Error::Network(NetworkError::Tls) => {
                Error::Unreachable("the secure connection failed; check its `url` and its certificate")
            }
            providers::Error::Network(NetworkError::Unreachable) => {
                Error::Unreachable("no connection came about in time; check its `url` and the network")
            }
            providers::Error::Timeout => Error::Timeout,
            providers::Error::InvalidResponse(why) => Error::Unreadable(why),
            _ => Error::Unreachable("the connection was closed"),
        }
    }
}
