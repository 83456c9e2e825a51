//! Health, consistency checks and background maintenance of a store.

use super::{Error, Store};

/// Health of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The connection works and leads to the same database as at startup.
    pub connected: Result<(), HealthDiagnostic>,
    /// Files can be created in the storage folder; on failure, a sentence with the reason.
    pub accessible: Result<(), String>,
}

/// A problem with a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthDiagnostic {
    /// The problem, such as "does not answer".
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

/// Result of a consistency check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    pub documents: u64,
    pub pages: u64,
    pub chunks: u64,
    pub vectors: u64,
    pub tasks: u64,
    /// One sentence per problem; at most the first hundred.
    pub problems: Vec<String>,
}

impl CheckReport {
    pub fn is_consistent(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Store {
    /// Name of this process among all processes that share the store. It is valid as long as the store is open here.
    pub fn instance(&self) -> &str {
        each_now!(self, store => store.instance())
    }

    /// Measures the health now.
    pub async fn health(&self) -> Result<Health, Error> {
        each!(self, store => store.health().await)
    }

    /// Returns the health without waiting. Where a measurement takes long, this is the latest cached value.
    pub fn cached_health(&self) -> Health {
        each_now!(self, store => store.cached_health())
    }

    /// Returns the size in bytes without waiting.
    pub fn cached_size(&self) -> u64 {
        each_now!(self, store => store.cached_size())
    }

    /// Reads the whole store and reports problems. Other processes may use the store concurrently.
    pub async fn check(&self) -> Result<CheckReport, Error> {
        each!(self, store => store.check().await)
    }

    /// Periodic maintenance. Call it about once a second while the store is open.
    pub async fn maintain(&self) -> Result<(), Error> {
        each!(self, store => store.maintain().await)
    }

    /// Checkpoints the write-ahead log of a file at the end of the program. No-op for a database server.
    pub async fn checkpoint(&self) -> Result<(), Error> {
        match self {
            Store::Embedded(store) => store.checkpoint().await,
            Store::Shared(_) => Ok(()),
        }
    }
}
