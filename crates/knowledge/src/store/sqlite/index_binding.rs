//! Binds a folder of index files to its database.
//!
//! The index is derived from the database, so an index of one store beside the database of another means that the database
//! was replaced. Without this check, the documents of the index would disappear without an error: corbie would build the
//! index again from the other database. The folder has a file with the ID of the store.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::files::StoreFiles;
use super::{Store, connection, schema};
use crate::store::Error;
use corbie_util::fs::private_dir::create_private_dir;

/// The file with the ID of the store.
const FILE: &str = "store-id";
/// The row of `meta` of a restored or rebuilt file, which may replace the database of another store.
const REPLACES_ANY: &str = "replaces_any";
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum bytes to read of the file.
const MAX_BYTES: u64 = 1024;

impl Store {
    /// Records in a folder of index files that they belong to this store. Call it before files are written there.
    pub async fn bind_index(&self, index: &Path) -> Result<(), Error> {
        let (index, id) = (index.to_owned(), self.0.id.clone());
        let bind = move || match read(&index).is_some_and(|bound| bound == id) {
            true => Ok(()),
            false => write(&index, &id).map_err(Error::io(&index)),
        };
        tokio::task::spawn_blocking(bind).await.map_err(|error| Error::Internal(error.to_string()))??;
        if self.0.replaces_any {
            self.write(|transaction, _| schema::remove(transaction, REPLACES_ANY)).await?;
        }
        Ok(())
    }
}

impl Store {
    /// Fails if the index belongs to another store than the database of a folder. A database that cannot be read passes.
    pub fn check_index(folder: &Path, index: &Path) -> Result<(), Error> {
        let database = StoreFiles::of(folder).database;
        let found = connection::reader(&database, TIMEOUT).and_then(|connection| check(&connection, index));
        found.or_else(|error| match error {
            Error::OtherStore { .. } => Err(error),
            _ => Ok(()),
        })
    }
}

/// Fails if the index belongs to another store.
pub(super) fn check(connection: &Connection, index: &Path) -> Result<(), Error> {
    let Some(bound) = read(index) else { return Ok(()) };
    match bound == schema::store_id(connection)? || is_permitted(connection)? {
        true => Ok(()),
        false => Err(Error::OtherStore { index: index.to_owned() }),
    }
}

/// Permits a database to stand beside the index of another store, until it is bound to an index.
pub(super) fn permit_any(connection: &Connection) -> Result<(), Error> {
    schema::set(connection, REPLACES_ANY, "1")
}

/// Whether the database may stand beside the index of another store.
pub(super) fn is_permitted(connection: &Connection) -> Result<bool, Error> {
    Ok(schema::get(connection, REPLACES_ANY)?.is_some())
}

fn read(index: &Path) -> Option<String> {
    use io::Read;
    let mut text = String::new();
    fs::File::open(index.join(FILE)).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty())
}

fn write(index: &Path, id: &str) -> io::Result<()> {
    create_private_dir(index)?;
    let mut file = tempfile::NamedTempFile::new_in(index)?;
    writeln!(file, "{id}")?;
    file.as_file().sync_all()?;
    file.persist(index.join(FILE)).map_err(|error| error.error)?;
    Ok(())
}
