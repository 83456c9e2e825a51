//! Whether the database of the knowledge base can be used, where it is one that instances share.

use std::sync::Arc;

use super::{Check, Findings, Subject};
use crate::knowledge::store::postgres::{Address, Examined, VERSION, examine};

/// A replica that lags further behind answers with what is long gone.
const LONG_LAG: u64 = 30;
/// More small batches than this mean that nobody joins them.
const MANY_BATCHES: u64 = 1000;

pub(super) async fn check(subject: Arc<Subject>) -> Option<Check> {
    let knowledge = &subject.config.as_ref()?.knowledge;
    let store = knowledge.store.as_ref().filter(|_| knowledge.enabled)?;
    let mut findings = Findings::default();
    // What is no address has been told with the settings.
    let address = Address::parse(store.expose()).ok()?;
    match examine(&address).await {
        Ok(examined) => primary(&address, &examined, &mut findings),
        Err(error) => findings.problem(
            format!("{address}: {error}"),
            "start the database, or correct `knowledge.store`; until then documents can be neither found nor added",
        ),
    }
    for replica in &knowledge.store_replicas {
        let Ok(address) = Address::parse(replica.expose()) else { continue };
        match examine(&address).await {
            Ok(examined) => follower(&address, &examined, &mut findings),
            Err(error) => findings.problem(
                format!("{address}: {error}"),
                "start the replica, or take it out of `knowledge.store_replicas`; searches go to the others meanwhile",
            ),
        }
    }
    findings.check("database")
}

fn primary(address: &Address, examined: &Examined, findings: &mut Findings) {
    let Examined { server, extension, available, .. } = examined;
    match (extension, available) {
        (Some(version), Some(newest)) if version != newest => findings.note(
            format!("{address} is PostgreSQL {server} with pgvector {version}, and {newest} is installed there"),
            "run `ALTER EXTENSION vector UPDATE` in the database",
        ),
        (Some(version), _) => findings.ok(format!("{address} is PostgreSQL {server} with pgvector {version}")),
        (None, Some(_)) => findings.note(
            format!("{address} is PostgreSQL {server}, and pgvector is not yet made known in this database"),
            "let somebody who may do so run `CREATE EXTENSION vector` in it, or let the first start do it",
        ),
        (None, None) => findings.problem(
            format!("{address} is PostgreSQL {server} without pgvector"),
            "install pgvector 0.8 or newer on the database's server",
        ),
    }
    match examined.version {
        None => findings.ok("its tables are made by the first start"),
        Some(version) if version < VERSION => {
            findings.ok(format!("its tables are of version {version}, and become {VERSION} with the next start"));
        }
        Some(_) => findings.ok(format!("{} instances use it", examined.instances)),
    }
    if !examined.invalid.is_empty() {
        findings.problem(
            format!("indexes that are not used: {}", examined.invalid.join(", ")),
            "run `REINDEX INDEX CONCURRENTLY` for each of them",
        );
    }
    if !examined.bloated.is_empty() {
        let tables = examined.bloated.iter().map(|(table, share)| format!("{table} ({share} % of its rows are gone)"));
        findings.note(
            format!("tables that want cleaning: {}", tables.collect::<Vec<_>>().join(", ")),
            "look why autovacuum does not come to them, or run `VACUUM` for each",
        );
    }
    if examined.batches > MANY_BATCHES {
        findings.note(
            format!("{} lists of words wait to be joined, and searches take longer", examined.batches),
            "they are joined while an instance runs; look into its log if they do not get fewer",
        );
    }
    if examined.lag.is_some() {
        findings.problem(
            format!("{address} follows another database and takes no writes"),
            "name the primary in `knowledge.store`, and this one in `knowledge.store_replicas`",
        );
    }
}

fn follower(address: &Address, examined: &Examined, findings: &mut Findings) {
    match examined.lag {
        None => findings.note(
            format!("{address} follows no other database"),
            "take it out of `knowledge.store_replicas` unless it holds the same",
        ),
        Some(lag) if lag > LONG_LAG => findings.note(
            format!("{address} is {lag} s behind, or nothing was written for so long"),
            "look at its replication if documents are written",
        ),
        Some(_) => findings.ok(format!("{address} follows")),
    }
}
