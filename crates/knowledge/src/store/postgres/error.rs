//! Maps PostgreSQL errors to store errors.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use crate::store::Error;

/// Message for a write to a replica.
pub(super) const STANDBY_MESSAGE: &str = "it is a read-only standby";

/// Message for a failed login. Callers do not learn who may log in.
const LOGIN_FAILED_MESSAGE: &str = "authentication failed; see the log";

/// Maps an error of a statement or connection. The result contains the server's message, which contains no values.
pub(super) fn map_error(error: tokio_postgres::Error) -> Error {
    let Some(database) = error.as_db_error() else {
        return match error.is_closed() || error.to_string().starts_with("error c") || is_io_error(&error) {
            true => Error::Unavailable(reason(&error)),
            false => Error::Internal(reason(&error)),
        };
    };
    let code = database.code();
    let class = code.code().get(..2).unwrap_or_default();
    let told = || format!("{} ({})", database.message(), code.code());
    match code {
        &SqlState::DISK_FULL => Error::Full,
        // The second code is what a standby returns when a write transaction begins.
        &SqlState::READ_ONLY_SQL_TRANSACTION => Error::Unavailable(STANDBY_MESSAGE.to_owned()),
        &SqlState::FEATURE_NOT_SUPPORTED if database.message().contains("during recovery") => {
            Error::Unavailable(STANDBY_MESSAGE.to_owned())
        }
        &SqlState::T_R_SERIALIZATION_FAILURE
        | &SqlState::T_R_DEADLOCK_DETECTED
        | &SqlState::LOCK_NOT_AVAILABLE
        | &SqlState::QUERY_CANCELED => Error::Busy,
        // The server closed the connection because the transaction was idle for too long, and rolled it back.
        &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Error::Unavailable(told()),
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => Error::Corrupt(told()),
        _ if class == "28" => {
            tracing::warn!(error = told(), "database authentication failed");
            Error::Unavailable(LOGIN_FAILED_MESSAGE.to_owned())
        }
        _ if matches!(class, "08" | "3D" | "53" | "57" | "58") => Error::Unavailable(told()),
        _ => Error::Internal(told()),
    }
}

/// Maps an error of the connection pool.
pub(super) fn map_pool_error(error: PoolError) -> Error {
    match error {
        PoolError::Backend(error) | PoolError::PostCreateHook(deadpool_postgres::HookError::Backend(error)) => {
            match map_error(error) {
                Error::Internal(why) | Error::Unavailable(why) => Error::Unavailable(why),
                other => other,
            }
        }
        PoolError::Timeout(deadpool_postgres::TimeoutType::Wait) => Error::Busy,
        PoolError::Timeout(_) | PoolError::PostCreateHook(_) => Error::Unavailable("connection timed out".to_owned()),
        PoolError::Closed => Error::Closed,
        other => Error::Internal(other.to_string()),
    }
}

fn is_io_error(error: &tokio_postgres::Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

/// The message of an error with its cause.
fn reason(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    if let Some(source) = std::error::Error::source(error) {
        let cause = source.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
