//! How a store is doing, and what it does for itself.

use super::{Error, Store};

/// How the store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The database answers, and is still the one it was.
    pub connected: Result<(), Trouble>,
    /// Files can be made in the folder of the storage; a sentence that says why not.
    pub accessible: Result<(), String>,
}

/// What is wrong with a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// What it does or does not, such as "does not answer".
    pub what: String,
    /// What to do about it.
    pub next: String,
}

/// What a check has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub documents: u64,
    pub pages: u64,
    pub chunks: u64,
    pub vectors: u64,
    pub tasks: u64,
    /// A sentence for each problem; the first hundred.
    pub problems: Vec<String>,
}

impl Report {
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }
}

impl Store {
    /// The name of this process among those that share the store. It lives as long as the store is open here.
    pub fn instance(&self) -> &str {
        each_now!(self, store => store.instance())
    }

    /// How it is, measured now.
    pub async fn health(&self) -> Result<Health, Error> {
        each!(self, store => store.health().await)
    }

    /// How it is, as far as can be told without waiting: where measuring takes long, as it was a moment ago.
    pub fn known_health(&self) -> Health {
        each_now!(self, store => store.known_health())
    }

    /// How many bytes it takes, as far as can be told without waiting.
    pub fn known_size(&self) -> u64 {
        each_now!(self, store => store.known_size())
    }

    /// Reads everything and says what is wrong with it. Others may go on meanwhile.
    pub async fn check(&self) -> Result<Report, Error> {
        each!(self, store => store.check().await)
    }

    /// What a store has to do now and then for as long as it is open. Called every second or so.
    pub async fn look_after(&self) -> Result<(), Error> {
        each!(self, store => store.look_after().await)
    }
}
