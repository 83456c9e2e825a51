//! Checks the shared PostgreSQL database of the knowledge base.

use std::sync::Arc;

use super::{Check, Findings, SetupContext};
use crate::knowledge::store::postgres::{Address, DatabaseDiagnostics, PostingListSize, VERSION, diagnose};

/// Replication lag in seconds above which a replica returns stale results.
const MAX_LAG_SECONDS: u64 = 30;
/// Postings are reported if they occupy at least this many bytes and at most one part in `LITTLE_FILLED` of them is
/// used.
const BLOAT_MIN_BYTES: u64 = 1 << 30;
const BLOAT_FACTOR: u64 = 4;
/// More small batches than this mean that no instance merges them.
const MAX_SMALL_BATCHES: u64 = 1000;

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let knowledge = &subject.config.as_ref()?.knowledge;
    let store = knowledge.store.as_ref().filter(|_| knowledge.enabled)?;
    let mut findings = Findings::default();
    // The settings check reports an invalid address.
    let address = Address::parse(store.expose()).ok()?;
    match diagnose(&address).await {
        Ok(examined) => check_primary(&address, &examined, &mut findings),
        Err(error) => findings.problem(
            format!("{address}: {error}"),
            "start the database, or correct `knowledge.store`; until then documents can be neither found nor added",
        ),
    }
    for replica in &knowledge.store_replicas {
        let Ok(address) = Address::parse(replica.expose()) else { continue };
        match diagnose(&address).await {
            Ok(examined) => check_replica(&address, &examined, &mut findings),
            Err(error) => findings.problem(
                format!("{address}: {error}"),
                "start the replica, or take it out of `knowledge.store_replicas`; searches go to the others meanwhile",
            ),
        }
    }
    findings.check("database")
}

fn check_primary(address: &Address, examined: &DatabaseDiagnostics, findings: &mut Findings) {
    let DatabaseDiagnostics {
        server_version: server,
        pgvector_version: extension,
        available_pgvector: available,
        unsupported_reason: unsuited,
        ..
    } = examined;
    match (unsuited, extension, available) {
        (Some(why), ..) => {
            findings.problem(format!("{address}: {why}"), "until then documents can be neither found nor added");
        }
        (_, Some(version), Some(newest)) if version != newest => findings.note(
            format!("{address} is PostgreSQL {server} with pgvector {version}, and {newest} is installed there"),
            "run `ALTER EXTENSION vector UPDATE` in the database",
        ),
        (_, Some(version), None | Some(_)) => {
            findings.ok(format!("{address} is PostgreSQL {server} with pgvector {version}"))
        }
        (_, None, Some(_)) => findings.note(
            format!("{address} is PostgreSQL {server}, and pgvector is not yet made known in this database"),
            "let somebody who may do so run `CREATE EXTENSION vector` in it, or let the first start do it",
        ),
        (_, None, None) => findings.problem(
            format!("{address} is PostgreSQL {server} without pgvector"),
            "install pgvector 0.8 or newer on the database's server",
        ),
    }
    match examined.schema_version {
        None => findings.ok("its tables are made by the first start"),
        Some(version) if version < VERSION => {
            findings.ok(format!("its tables are of version {version}, and become {VERSION} with the next start"));
        }
        Some(_) => findings.ok(format!("{} instances use it", examined.instances)),
    }
    check_indexes(examined, findings);
    if !examined.bloated_tables.is_empty() {
        let tables =
            examined.bloated_tables.iter().map(|(table, share)| format!("{table} ({share} % of its rows are gone)"));
        findings.note(
            format!("tables that want cleaning: {}", tables.collect::<Vec<_>>().join(", ")),
            "look why autovacuum does not come to them, or run `VACUUM` for each",
        );
    }
    let PostingListSize { allocated_bytes: taken, used_bytes: filled } = examined.posting_lists;
    if taken >= BLOAT_MIN_BYTES && taken / BLOAT_FACTOR > filled {
        findings.note(
            format!("lists of words take {} MB, of which about {} are filled", taken >> 20, filled >> 20),
            "what is added next fills the rest; to have it back, run `VACUUM FULL corbie.postings` while nobody searches",
        );
    }
    if examined.unmerged_batches > MAX_SMALL_BATCHES {
        findings.note(
            format!("{} lists of words wait to be joined, and searches take longer", examined.unmerged_batches),
            "they are joined while an instance runs; look into its log if they do not get fewer",
        );
    }
    if examined.replication_lag.is_some() {
        findings.problem(
            format!("{address} follows another database and takes no writes"),
            "name the primary in `knowledge.store`, and this one in `knowledge.store_replicas`",
        );
    }
}

fn check_indexes(examined: &DatabaseDiagnostics, findings: &mut Findings) {
    let DatabaseDiagnostics { is_indexing, invalid_indexes: invalid, unindexed_models: unindexed, .. } = examined;
    if *is_indexing {
        findings.note(
            "an index over vectors is being made, and searches take longer until it is there",
            "wait; it may take minutes, or hours with millions of vectors",
        );
        return;
    }
    if !invalid.is_empty() {
        findings.problem(
            format!("indexes that were not made to their end, and are of no use: {}", invalid.join(", ")),
            "start an instance, which makes those over vectors; run `REINDEX INDEX CONCURRENTLY` for others",
        );
    } else if !unindexed.is_empty() {
        findings.note(
            format!("vectors without an index, which are compared one by one: those of {}", unindexed.join(", ")),
            "an instance with that model makes it; look into its log if it does not",
        );
    }
}

fn check_replica(address: &Address, examined: &DatabaseDiagnostics, findings: &mut Findings) {
    match examined.replication_lag {
        None => findings.note(
            format!("{address} follows no other database"),
            "take it out of `knowledge.store_replicas` unless it holds the same",
        ),
        Some(lag) if lag > MAX_LAG_SECONDS => findings.note(
            format!("{address} is {lag} s behind, or nothing was written for so long"),
            "look at its replication if documents are written",
        ),
        Some(_) => findings.ok(format!("{address} follows")),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::doctor::State;

    /// A database without problems.
    fn well() -> DatabaseDiagnostics {
        DatabaseDiagnostics {
            server_version: "18.4".into(),
            pgvector_version: Some("0.8.5".into()),
            available_pgvector: Some("0.8.5".into()),
            schema_version: Some(VERSION),
            instances: 3,
            posting_lists: PostingListSize { allocated_bytes: 2 * BLOAT_MIN_BYTES, used_bytes: BLOAT_MIN_BYTES },
            ..DatabaseDiagnostics::default()
        }
    }

    fn told(examined: &DatabaseDiagnostics) -> Check {
        let mut findings = Findings::default();
        check_primary(&Address::parse("postgres://a@db.example/nest").unwrap(), examined, &mut findings);
        findings.check("database").unwrap()
    }

    #[test]
    fn a_database_that_is_well_is_fine() {
        let check = told(&well());
        assert_eq!((check.state, check.advice.as_deref()), (State::Ok, None));
        assert!(check.message.contains("PostgreSQL 18.4 with pgvector 0.8.5"), "{}", check.message);
        assert!(check.message.contains("3 instances use it"), "{}", check.message);
    }

    #[test]
    fn what_is_wrong_is_told_with_what_to_do() {
        let old = Some("pgvector 0.7.4 is too old; update it".to_owned());
        let invalid = vec!["vectors_2_model_1".to_owned()];
        let cases = [
            (DatabaseDiagnostics { unsupported_reason: old, ..well() }, State::Problem, "too old", "until then"),
            (
                DatabaseDiagnostics { pgvector_version: None, available_pgvector: None, ..well() },
                State::Problem,
                "without pgvector",
                "install pgvector",
            ),
            (
                DatabaseDiagnostics { pgvector_version: None, ..well() },
                State::Warning,
                "not yet made known",
                "CREATE EXTENSION",
            ),
            (
                DatabaseDiagnostics { pgvector_version: Some("0.8.0".into()), ..well() },
                State::Warning,
                "0.8.5 is installed",
                "ALTER EXTENSION",
            ),
            (
                DatabaseDiagnostics { invalid_indexes: invalid.clone(), ..well() },
                State::Problem,
                "vectors_2_model_1",
                "REINDEX",
            ),
            (
                DatabaseDiagnostics { invalid_indexes: invalid, is_indexing: true, ..well() },
                State::Warning,
                "is being made",
                "wait",
            ),
            (
                DatabaseDiagnostics { unindexed_models: vec!["minilm".into()], ..well() },
                State::Warning,
                "those of minilm",
                "makes it",
            ),
            (
                DatabaseDiagnostics { bloated_tables: vec![("chunks_1".into(), 40)], ..well() },
                State::Warning,
                "chunks_1 (40 %",
                "VACUUM",
            ),
            (
                DatabaseDiagnostics {
                    posting_lists: PostingListSize {
                        allocated_bytes: 5 * BLOAT_MIN_BYTES,
                        used_bytes: BLOAT_MIN_BYTES,
                    },
                    ..well()
                },
                State::Warning,
                "take 5120 MB, of which about 1024 are filled",
                "VACUUM FULL",
            ),
            (
                DatabaseDiagnostics { unmerged_batches: 1001, ..well() },
                State::Warning,
                "1001 lists of words wait",
                "joined while",
            ),
            (
                DatabaseDiagnostics { replication_lag: Some(0), ..well() },
                State::Problem,
                "takes no writes",
                "store_replicas",
            ),
        ];
        for (examined, state, found, advice) in cases {
            let check = told(&examined);
            assert_eq!(check.state, state, "{check:?}");
            assert!(check.message.contains(found), "{check:?}");
            assert!(check.advice.as_deref().unwrap_or_default().contains(advice), "{check:?}");
        }
    }
}
