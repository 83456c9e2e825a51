//! JSON-RPC error codes and their HTTP statuses, in one table.
//!
//! A [`ErrorCode`] is a condition. Its number and HTTP status depend on the era and style of the request; only this module
//! maps them (X-21, T-17, T-26).

use http::StatusCode;

use crate::version::Era;

/// An error condition, in protocol terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    Parse,
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Internal,
    Application,
    Authentication,
    RateLimited,
    ModelNotFound,
    ProviderUnavailable,
    Configuration,
    Network,
    Timeout,
    TrustDenied,
    Cancelled,
    ShuttingDown,
    Serialization,
    HeaderMismatch,
    MissingClientCapability,
    UnsupportedVersion,
}

/// One row: the number for legacy peers and REST callers, then the HTTP status for REST callers.
const fn row(code: ErrorCode) -> (i64, u16) {
    match code {
        ErrorCode::Parse => (-32700, 400),
        ErrorCode::InvalidRequest => (-32600, 400),
        ErrorCode::MethodNotFound => (-32601, 404),
        ErrorCode::InvalidParams => (-32602, 400),
        ErrorCode::Internal => (-32603, 500),
        ErrorCode::Application => (-32000, 500),
        ErrorCode::Authentication => (-32001, 401),
        ErrorCode::RateLimited => (-32002, 429),
        ErrorCode::ModelNotFound => (-32003, 404),
        ErrorCode::ProviderUnavailable => (-32004, 503),
        ErrorCode::Configuration => (-32005, 503),
        ErrorCode::Network => (-32006, 502),
        ErrorCode::Timeout => (-32007, 504),
        ErrorCode::TrustDenied => (-32010, 403),
        ErrorCode::Cancelled => (-32011, 499),
        ErrorCode::ShuttingDown => (-32012, 503),
        ErrorCode::Serialization => (-32013, 500),
        ErrorCode::HeaderMismatch => (-32020, 400),
        ErrorCode::MissingClientCapability => (-32021, 400),
        ErrorCode::UnsupportedVersion => (-32022, 400),
    }
}

impl ErrorCode {
    pub const ALL: [ErrorCode; 20] = [
        ErrorCode::Parse,
        ErrorCode::InvalidRequest,
        ErrorCode::MethodNotFound,
        ErrorCode::InvalidParams,
        ErrorCode::Internal,
        ErrorCode::Application,
        ErrorCode::Authentication,
        ErrorCode::RateLimited,
        ErrorCode::ModelNotFound,
        ErrorCode::ProviderUnavailable,
        ErrorCode::Configuration,
        ErrorCode::Network,
        ErrorCode::Timeout,
        ErrorCode::TrustDenied,
        ErrorCode::Cancelled,
        ErrorCode::ShuttingDown,
        ErrorCode::Serialization,
        ErrorCode::HeaderMismatch,
        ErrorCode::MissingClientCapability,
        ErrorCode::UnsupportedVersion,
    ];

    /// The number used by legacy MCP and the REST style.
    pub const fn legacy_number(self) -> i64 {
        row(self).0
    }

    /// The number for a peer of this era.
    ///
    /// The modern revision reserves -32000…-32019, so our own conditions move to -31000…-31019 with the same last two
    /// digits; `data.legacyCode` carries the old number.
    pub const fn number(self, era: Era) -> i64 {
        let legacy = self.legacy_number();
        match era {
            Era::Modern if legacy <= -32000 && legacy >= -32019 => legacy + 1000,
            _ => legacy,
        }
    }

    /// Finds the condition for a number of either era.
    pub fn from_number(number: i64) -> Option<ErrorCode> {
        ErrorCode::ALL.into_iter().find(|code| code.legacy_number() == number || code.number(Era::Modern) == number)
    }

    /// Status on `POST /mcp/<method>`, where the status reports the failure.
    pub fn rest_status(self) -> StatusCode {
        StatusCode::from_u16(row(self).1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Status on `POST /mcp`. Legacy: 200 with the error in the body, except for failures before a message is parsed.
    pub fn json_rpc_status(self, era: Era) -> StatusCode {
        match (self, era) {
            (ErrorCode::Parse, _) => StatusCode::BAD_REQUEST,
            (ErrorCode::Authentication, _) => StatusCode::UNAUTHORIZED,
            (ErrorCode::RateLimited, _) => StatusCode::TOO_MANY_REQUESTS,
            (ErrorCode::MethodNotFound, Era::Modern) => StatusCode::NOT_FOUND,
            (ErrorCode::InvalidRequest, Era::Modern) => StatusCode::BAD_REQUEST,
            (ErrorCode::HeaderMismatch | ErrorCode::MissingClientCapability | ErrorCode::UnsupportedVersion, _) => {
                StatusCode::BAD_REQUEST
            }
            _ => StatusCode::OK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x21_modern_peers_never_see_a_number_of_the_closed_range() {
        for code in ErrorCode::ALL {
            let number = code.number(Era::Modern);
            assert!(!(-32019..=-32000).contains(&number), "{code:?} is {number}");
            assert_eq!(ErrorCode::from_number(number), Some(code));
            assert_eq!(ErrorCode::from_number(code.legacy_number()), Some(code));
        }
        assert_eq!(ErrorCode::TrustDenied.number(Era::Modern), -31010);
        assert_eq!(ErrorCode::Serialization.number(Era::Modern), -31013);
    }

    #[test]
    fn e01_to_e14_legacy_numbers_are_the_documented_ones() {
        let table = [
            (ErrorCode::Parse, -32700),
            (ErrorCode::InvalidRequest, -32600),
            (ErrorCode::MethodNotFound, -32601),
            (ErrorCode::InvalidParams, -32602),
            (ErrorCode::Internal, -32603),
            (ErrorCode::Application, -32000),
            (ErrorCode::Authentication, -32001),
            (ErrorCode::RateLimited, -32002),
            (ErrorCode::ModelNotFound, -32003),
            (ErrorCode::ProviderUnavailable, -32004),
            (ErrorCode::Configuration, -32005),
            (ErrorCode::Network, -32006),
            (ErrorCode::Timeout, -32007),
            (ErrorCode::TrustDenied, -32010),
            (ErrorCode::Cancelled, -32011),
            (ErrorCode::ShuttingDown, -32012),
            (ErrorCode::Serialization, -32013),
        ];
        for (code, number) in table {
            assert_eq!(code.number(Era::Legacy), number);
        }
    }
}
