//! Content digest of a store, for comparing it with a copy.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};
use sha2::{Digest, Sha256};

use super::files::StoreFiles;
use super::{Store, backup, connection, damaged_log, lock_shared, rows, schema};
use crate::store::Error;

/// Digests of all tables at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentDigest {
    tables: Vec<TableDigest>,
}

/// One table. The column names are stored because a later version may add columns that the copy does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
struct TableDigest {
    name: String,
    columns: Vec<String>,
    rows: u64,
    digest: [u8; 32],
}

/// Table that differs in a restored store: it holds the history ID.
const EXCLUDED_TABLE: &str = "meta";

impl Store {
    /// Copies the store of a folder like [`Store::backup`] and returns the digest of its contents. The store is not
    /// migrated, so its schema version does not change.
    pub fn backup_with_digest(folder: &Path, to: &Path) -> Result<ContentDigest, Error> {
        let files = StoreFiles::of(folder);
        let _in_use = lock_shared(&files)?;
        let setting_up = files.setup_lock()?;
        setting_up.lock().map_err(Error::io(&files.folder))?;
        // Before SQLite opens the file.
        damaged_log::preserve(&files)?;
        let mut connection = connection::reader(&files.database, backup::LOCK_TIMEOUT)?;
        // Both in one transaction, because other processes may write concurrently.
        let source = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
        schema::version(&source)?;
        let contents = ContentDigest::of(&source)?;
        backup::write_backup(&source, to)?;
        Ok(contents)
    }

    /// Digest of a backup, if it passes all checks.
    pub fn backup_digest(backup: &Path) -> Result<ContentDigest, Error> {
        ContentDigest::of(&backup::open_verified(backup)?)
    }

    /// The tables that differ from this store, one sentence each.
    pub async fn differences(&self, other: ContentDigest) -> Result<Vec<String>, Error> {
        self.read(move |here| other.differences(here)).await
    }

    /// Chunk keys sampled evenly from the whole store, at most this many.
    pub async fn sample_chunk_keys(&self, most: u64) -> Result<Vec<u64>, Error> {
        self.read(move |here: &Transaction<'_>| {
            let all: u64 = here.query_row("SELECT count(*) FROM chunks", [], |row| row.get(0))?;
            let mut statement = here.prepare("SELECT key FROM chunks ORDER BY key LIMIT 1 OFFSET ?1")?;
            let places = (0..most.min(all)).map(|number| number * all / most.min(all));
            places.map(|place| Ok(statement.query_row([place], |row| row.get(0))?)).collect()
        })
        .await
    }
}

impl ContentDigest {
    fn of(connection: &Connection) -> Result<ContentDigest, Error> {
        let query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name";
        let names: Vec<String> = query_strings(connection, query)?;
        let tables = names.into_iter().filter(|name| name != EXCLUDED_TABLE).map(|name| {
            let columns =
                query_strings(connection, &format!("SELECT name FROM pragma_table_info('{name}') ORDER BY cid"))?;
            TableDigest::of(connection, name, columns)
        });
        Ok(ContentDigest { tables: tables.collect::<Result<_, Error>>()? })
    }

    fn differences(&self, here: &Connection) -> Result<Vec<String>, Error> {
        let mut differences = Vec::new();
        for table in &self.tables {
            let TableDigest { rows, digest, .. } = TableDigest::of(here, table.name.clone(), table.columns.clone())?;
            if rows != table.rows {
                differences.push(format!("`{}` has {rows} rows, expected {}", table.name, table.rows));
            } else if digest != table.digest {
                differences.push(format!("content of `{}` differs from the copy", table.name));
            }
        }
        Ok(differences)
    }

    /// A single digest of everything, as hex.
    pub fn digest(&self) -> String {
        let mut all = Sha256::new();
        self.tables.iter().for_each(|table| all.update(table.digest));
        all.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl TableDigest {
    fn of(connection: &Connection, name: String, columns: Vec<String>) -> Result<TableDigest, Error> {
        let (mut digest, mut count) = (Sha256::new(), 0);
        digest.update(format!("{name} {}", columns.join(" ")));
        let query = format!("SELECT {} FROM {name} ORDER BY rowid", columns.join(", "));
        let mut statement = connection.prepare(&query)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            count += 1;
            for column in 0..columns.len() {
                rows::hash_value(row.get_ref(column)?, |bytes| digest.update(bytes));
            }
        }
        Ok(TableDigest { name, columns, rows: count, digest: digest.finalize().into() })
    }
}

fn query_strings(connection: &Connection, query: &str) -> Result<Vec<String>, Error> {
    let mut statement = connection.prepare(query)?;
    let texts = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(texts)
}
