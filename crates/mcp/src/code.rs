//! JSON-RPC error codes and their HTTP statuses, in one table.
//!
//! A [`Code`] is a condition. Its number and HTTP status depend on the era and style of the request; only this module
//! maps them (X-21, T-17, T-26).

use http::StatusCode;

use crate::version::Era;

/// An error condition, in protocol terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
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
const fn row(code: Code) -> (i64, u16) {
    match code {
        Code::Parse => (-32700, 400),
        Code::InvalidRequest => (-32600, 400),
        Code::MethodNotFound => (-32601, 404),
        Code::InvalidParams => (-32602, 400),
        Code::Internal => (-32603, 500),
        Code::Application => (-32000, 500),
        Code::Authentication => (-32001, 401),
        Code::RateLimited => (-32002, 429),
        Code::ModelNotFound => (-32003, 404),
        Code::ProviderUnavailable => (-32004, 503),
        Code::Configuration => (-32005, 503),
        Code::Network => (-32006, 502),
        Code::Timeout => (-32007, 504),
        Code::TrustDenied => (-32010, 403),
        Code::Cancelled => (-32011, 499),
        Code::ShuttingDown => (-32012, 503),
        Code::Serialization => (-32013, 500),
        Code::HeaderMismatch => (-32020, 400),
        Code::MissingClientCapability => (-32021, 400),
        Code::UnsupportedVersion => (-32022, 400),
    }
}

impl Code {
    pub const ALL: [Code; 20] = [
        Code::Parse,
        Code::InvalidRequest,
        Code::MethodNotFound,
        Code::InvalidParams,
        Code::Internal,
        Code::Application,
        Code::Authentication,
        Code::RateLimited,
        Code::ModelNotFound,
        Code::ProviderUnavailable,
        Code::Configuration,
        Code::Network,
        Code::Timeout,
        Code::TrustDenied,
        Code::Cancelled,
        Code::ShuttingDown,
        Code::Serialization,
        Code::HeaderMismatch,
        Code::MissingClientCapability,
        Code::UnsupportedVersion,
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
    pub fn from_number(number: i64) -> Option<Code> {
        Code::ALL.into_iter().find(|code| code.legacy_number() == number || code.number(Era::Modern) == number)
    }

    /// Status on `POST /mcp/<method>`, where the status reports the failure.
    pub fn rest_status(self) -> StatusCode {
        StatusCode::from_u16(row(self).1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Status on `POST /mcp`. Legacy: 200 with the error in the body, except for failures before a message is parsed.
    pub fn json_rpc_status(self, era: Era) -> StatusCode {
        match (self, era) {
            (Code::Parse, _) => StatusCode::BAD_REQUEST,
            (Code::Authentication, _) => StatusCode::UNAUTHORIZED,
            (Code::RateLimited, _) => StatusCode::TOO_MANY_REQUESTS,
            (Code::MethodNotFound, Era::Modern) => StatusCode::NOT_FOUND,
            (Code::InvalidRequest, Era::Modern) => StatusCode::BAD_REQUEST,
            (Code::HeaderMismatch | Code::MissingClientCapability | Code::UnsupportedVersion, _) => {
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
        for code in Code::ALL {
            let number = code.number(Era::Modern);
            assert!(!(-32019..=-32000).contains(&number), "{code:?} is {number}");
            assert_eq!(Code::from_number(number), Some(code));
            assert_eq!(Code::from_number(code.legacy_number()), Some(code));
        }
        assert_eq!(Code::TrustDenied.number(Era::Modern), -31010);
        assert_eq!(Code::Serialization.number(Era::Modern), -31013);
    }

    #[test]
    fn e01_to_e14_legacy_numbers_are_the_documented_ones() {
        let table = [
            (Code::Parse, -32700),
            (Code::InvalidRequest, -32600),
            (Code::MethodNotFound, -32601),
            (Code::InvalidParams, -32602),
            (Code::Internal, -32603),
            (Code::Application, -32000),
            (Code::Authentication, -32001),
            (Code::RateLimited, -32002),
            (Code::ModelNotFound, -32003),
            (Code::ProviderUnavailable, -32004),
            (Code::Configuration, -32005),
            (Code::Network, -32006),
            (Code::Timeout, -32007),
            (Code::TrustDenied, -32010),
            (Code::Cancelled, -32011),
            (Code::ShuttingDown, -32012),
            (Code::Serialization, -32013),
        ];
        for (code, number) in table {
            assert_eq!(code.number(Era::Legacy), number);
        }
    }
}
