//! Gives the room of lists back that were joined.
//!
//! Every join leaves the rows of the lists it has read. PostgreSQL's own cleaner comes once a minute at most, and while many
//! documents are moved in, that is too seldom: the table and its indexes would grow to several times what they hold, and
//! never shrink. So whoever joins cleans up after itself, when it has left much.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use super::address::Address;
use super::{Shared, Store, failure, rows};
use crate::knowledge::store::Error;

/// Rows that were left behind since the last time, and whether somebody is at it.
#[derive(Debug, Default)]
pub(super) struct Left {
    rows: AtomicU64,
    is_cleaning: AtomicBool,
}

/// Fewer are left to PostgreSQL.
const MUCH: u64 = 200_000;
/// Cleaning goes through all indexes; so what was left has to be worth it, as one part of so many of what is there.
const SHARE: u64 = 5;

impl Left {
    pub(super) fn add(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }
}

impl Store {
    /// Cleans up aside, if much was left.
    pub(super) async fn clean_postings(&self) -> Result<(), Error> {
        let left = &self.0.left;
        let rows = left.rows.load(Ordering::Relaxed);
        if rows < MUCH || left.is_cleaning.load(Ordering::Relaxed) {
            return Ok(());
        }
        let there = rows::about_how_many(&self.plain().await?, "postings").await?;
        if rows * SHARE >= there && !left.is_cleaning.swap(true, Ordering::Relaxed) {
            tokio::spawn(clean(Arc::downgrade(&self.0), self.0.address.clone(), rows));
        }
        Ok(())
    }
}

async fn clean(store: Weak<Shared>, address: Address, rows: u64) {
    let cleaned = vacuum(&address).await;
    let Some(shared) = store.upgrade() else { return };
    match cleaned {
        Ok(()) => drop(shared.left.rows.fetch_sub(rows, Ordering::Relaxed)),
        Err(error) => tracing::debug!(%error, "lists that were joined are cleaned up later"),
    }
    shared.left.is_cleaning.store(false, Ordering::Relaxed);
}

/// Others read and write meanwhile. It takes as long as it takes, and is no part of a transaction, so that it has a
/// connection of its own. A table that ends earlier would be locked for a moment, which is not worth it: it is filled again.
async fn vacuum(address: &Address) -> Result<(), Error> {
    let (client, _said) = address.alone().await?;
    client.batch_execute("SET statement_timeout = 0").await.map_err(failure::of)?;
    client.batch_execute("VACUUM (SKIP_LOCKED, TRUNCATE FALSE) postings").await.map_err(failure::of)
}
