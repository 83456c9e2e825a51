//! Maps SQLite errors to store errors.

use rusqlite::{ErrorCode, ffi};

use crate::store::Error;

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Error {
        use rusqlite::Error as Sqlite;
        match &error {
            Sqlite::SqliteFailure(failure, _) => match (failure.code, failure.extended_code) {
                (ErrorCode::DiskFull, _) | (_, ffi::SQLITE_IOERR_SHMSIZE) => Error::Full,
                (ErrorCode::ReadOnly, _) => Error::ReadOnly,
                (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => Error::Corrupt(error.to_string()),
                (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => Error::Busy,
                _ => Error::Internal(error.to_string()),
            },
            Sqlite::FromSqlConversionFailure(..)
            | Sqlite::InvalidColumnType(..)
            | Sqlite::IntegralValueOutOfRange(..)
            | Sqlite::Utf8Error(..) => Error::Corrupt(error.to_string()),
            _ => Error::Internal(error.to_string()),
        }
    }
}
