//! Where a knowledge base is kept: documents, pages, chunks, vectors and tasks.
//!
//! [`Store`] is what everything above asks; how it is kept is below it. What it promises holds for every kind: a document
//! is there with all that belongs to it or not at all, a write that is answered stays, and one that fails has changed
//! nothing. Several processes may have the same store open.
//!
//! What only files can do, such as being copied and mended, is asked of [`sqlite::Store`] itself.

/// Asks whichever store it is. What waits for a database is boxed: it is made of many futures, and everything that asks a
/// store would have all of them in itself.
macro_rules! each {
    ($self:expr, $store:ident => $ask:expr) => {
        match $self {
            Store::Embedded($store) => $ask,
            Store::Shared($store) => futures_util::FutureExt::boxed(async move { $ask }).await,
        }
    };
}

/// The same for what is known without waiting.
macro_rules! each_now {
    ($self:expr, $store:ident => $ask:expr) => {
        match $self {
            Store::Embedded($store) => $ask,
            Store::Shared($store) => $ask,
        }
    };
}

mod care;
mod documents;
mod error;
mod listing;
pub mod moved;
mod options;
mod passages;
pub mod postgres;
pub mod sqlite;
mod tasks;
mod watched;

pub use care::{Health, Report, Trouble};
pub use documents::Cleared;
pub use error::Error;
pub use listing::{Listed, ListedDocument, Listing, Only, Order, ProcessingStatus, Sort};
pub use options::Options;
pub use passages::Wanted;
pub use tasks::{KeptUpload, TaskList, Uploads, Whose};
pub use watched::{Look, Place, Standing, Turn, Watched};

/// A knowledge base's store. Cheap to clone; all clones are the same.
#[derive(Debug, Clone)]
pub enum Store {
    /// In a file of this machine.
    Embedded(sqlite::Store),
    /// In a database that several instances share.
    Shared(postgres::Store),
}

impl From<sqlite::Store> for Store {
    fn from(store: sqlite::Store) -> Store {
        Store::Embedded(store)
    }
}

impl From<postgres::Store> for Store {
    fn from(store: postgres::Store) -> Store {
        Store::Shared(store)
    }
}

impl Store {
    /// Opens the store of a PostgreSQL database, and makes its tables where there are none.
    pub async fn connect(url: &str, options: Options) -> Result<Store, Error> {
        let address = postgres::Address::parse(url).map_err(Error::Internal)?;
        Ok(postgres::Store::connect(&address, &[], options).await?.into())
    }
}
