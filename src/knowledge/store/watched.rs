//! What is remembered of the files of watched folders, over the end of the process.
//!
//! Several processes may follow the same folder, and users remove and clear meanwhile. So a row is changed only by who
//! knows how it is now: see [`Turn`].

use super::{Error, Store};
use crate::knowledge::document::{BaseName, DocumentId};
use crate::knowledge::task::TaskId;

/// A file of a watched folder, as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Links followed, as documents have it.
    pub path: String,
    pub look: Look,
    /// The device that its folder was on.
    pub device: u64,
    /// Its inode when it was taken up; 0 where files have none.
    pub inode: u64,
    /// When anything about it had last changed then, in nanoseconds since 1970. Nobody can set that, so a copy differs.
    pub changed: Option<i64>,
    pub standing: Standing,
}

/// How a file looked: any other time or size means that it has changed, an older time too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Nanoseconds since 1970.
    pub modified: Option<i64>,
    pub size: u64,
}

/// How far a file has come as it looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// To be added.
    Waiting,
    /// Being added.
    Going(TaskId),
    /// Nothing is done before it changes. Its document, unless it has none: it cannot be read, or the user removed it.
    Settled(Option<DocumentId>),
}

/// A change of a row, made if the row is still as it was `before`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub before: Option<Watched>,
    pub after: Watched,
}

/// Which folder it is, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub device: u64,
    pub inode: u64,
}

impl Store {
    /// The files of watched folders that are remembered for a base.
    pub async fn watched(&self, base: &BaseName) -> Result<Vec<Watched>, Error> {
        each!(self, store => store.watched(base).await)
    }

    /// Documents of watched folders whose files nobody remembers, as after a repair or from an older version: as files that
    /// are settled. How those looked is not known, nor the device, which is 0.
    pub async fn unremembered(&self, base: &BaseName) -> Result<Vec<Watched>, Error> {
        each!(self, store => store.unremembered(base).await)
    }

    /// Changes rows. Tells which: the others were changed by somebody else, and are left so.
    pub async fn turn_watched(&self, base: &BaseName, turns: Vec<Turn>) -> Result<Vec<bool>, Error> {
        each!(self, store => store.turn_watched(base, turns).await)
    }

    /// Forgets files that are gone.
    pub async fn forget_watched(&self, base: &BaseName, paths: Vec<String>) -> Result<(), Error> {
        each!(self, store => store.forget_watched(base, paths).await)
    }

    /// Has tasks that failed listed no more among the documents: their files are tried again, by other tasks.
    pub async fn forget_attempts(&self, tasks: Vec<TaskId>) -> Result<(), Error> {
        each!(self, store => store.forget_attempts(tasks).await)
    }

    /// Which folder a path was, when it last had files in it.
    pub async fn watched_folder(&self, path: &str) -> Result<Option<Place>, Error> {
        each!(self, store => store.watched_folder(path).await)
    }

    pub async fn note_watched_folder(&self, path: &str, place: Place) -> Result<(), Error> {
        each!(self, store => store.note_watched_folder(path, place).await)
    }
}
