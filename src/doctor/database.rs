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
            "start the database, or correct `knowledge.store`; until then the knowledge base is unavailable",
        ),
    }
    for replica in &knowledge.store_replicas {
        let Ok(address) = Address::parse(replica.expose()) else { continue };
        match diagnose(&address).await {
            Ok(examined) => check_replica(&address, &examined, &mut findings),
            Err(error) => findings.problem(
                format!("{address}: {error}"),
                "start the replica, or remove it from `knowledge.store_replicas`; until then other replicas are used",
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
            findings.problem(format!("{address}: {why}"), "until then the knowledge base is unavailable");
        }
        (_, Some(version), Some(newest)) if version != newest => findings.note(
            format!("{address} is PostgreSQL {server} with pgvector {version}; version {newest} is installed"),
            "run `ALTER EXTENSION vector UPDATE` in the database",
        ),
        (_, Some(version), None | Some(_)) => {
            findings.ok(format!("{address} is PostgreSQL {server} with pgvector {version}"))
        }
        (_, None, Some(_)) => findings.note(
            format!("{address} is PostgreSQL {server}; the extension pgvector is not created in this database"),
            "run `CREATE EXTENSION vector` with sufficient privileges; corbie tries it at its first start",
        ),
        (_, None, None) => findings.problem(
            format!("{address} is PostgreSQL {server} without pgvector"),
            "install pgvector 0.8 or newer on the database server",
        ),
    }
    match examined.schema_version {
        None => findings.ok("its tables are created at the first start"),
        Some(version) if version < VERSION => {
            findings.ok(format!("its schema version {version} is upgraded to {VERSION} at the next start"));
        }
        Some(_) => findings.ok(format!("{} instances are connected", examined.instances)),
    }
    check_indexes(examined, findings);
    if !examined.bloated_tables.is_empty() {
        let tables = examined.bloated_tables.iter().map(|(table, share)| format!("{table} ({share} % dead rows)"));
        findings.note(
            format!("bloated tables: {}", tables.collect::<Vec<_>>().join(", ")),
            "check why autovacuum does not process them, or run `VACUUM` on each",
        );
    }
    let PostingListSize { allocated_bytes: taken, used_bytes: filled } = examined.posting_lists;
    if taken >= BLOAT_MIN_BYTES && taken / BLOAT_FACTOR > filled {
        findings.note(
            format!("posting lists occupy {} MB, of which about {} MB are used", taken >> 20, filled >> 20),
            "new documents reuse the space; to release it, run `VACUUM FULL corbie.postings` while there are no searches",
        );
    }
    if examined.unmerged_batches > MAX_SMALL_BATCHES {
        findings.note(
            format!("{} posting lists are not merged, which slows down searches", examined.unmerged_batches),
            "a running instance merges them; check its log if the number does not decrease",
        );
    }
    if examined.replication_lag.is_some() {
        findings.problem(
            format!("{address} is a replica and accepts no writes"),
            "set `knowledge.store` to the primary, and add this one to `knowledge.store_replicas`",
        );
    }
}

fn check_indexes(examined: &DatabaseDiagnostics, findings: &mut Findings) {
    let DatabaseDiagnostics { is_indexing, invalid_indexes: invalid, unindexed_models: unindexed, .. } = examined;
    if *is_indexing {
        findings.note(
            "a vector index is being built; searches are slower until it is complete",
            "wait; this may take minutes, or hours with millions of vectors",
        );
        return;
    }
    if !invalid.is_empty() {
        findings.problem(
            format!("invalid indexes: {}", invalid.join(", ")),
            "start an instance, which rebuilds vector indexes; run `REINDEX INDEX CONCURRENTLY` on the others",
        );
    } else if !unindexed.is_empty() {
        findings.note(
            format!("vectors without an index, which are scanned sequentially: {}", unindexed.join(", ")),
            "an instance with that model builds the index; check its log if it does not",
        );
    }
}

fn check_replica(address: &Address, examined: &DatabaseDiagnostics, findings: &mut Findings) {
    match examined.replication_lag {
        None => findings.note(
            format!("{address} is not a replica"),
            "remove it from `knowledge.store_replicas` unless it has the same content",
        ),
        Some(lag) if lag > MAX_LAG_SECONDS => findings.note(
            format!("{address} lags {lag} s behind, unless nothing was written in that time"),
            "check its replication if documents are being added",
        ),
        Some(_) => findings.ok(format!("{address} is a replica and up to date")),
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
    fn healthy_database_is_ok() {
        let check = told(&well());
        assert_eq!((check.state, check.advice.as_deref()), (State::Ok, None));
        assert!(check.message.contains("PostgreSQL 18.4 with pgvector 0.8.5"), "{}", check.message);
        assert!(check.message.contains("3 instances are connected"), "{}", check.message);
    }

    #[test]
    fn each_problem_has_a_message_and_advice() {
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
                "is not created",
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
                "is being built",
                "wait",
            ),
            (
                DatabaseDiagnostics { unindexed_models: vec!["minilm".into()], ..well() },
                State::Warning,
                "sequentially: minilm",
                "builds the index",
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
                "occupy 5120 MB, of which about 1024 MB are used",
                "VACUUM FULL",
            ),
            (
                DatabaseDiagnostics { unmerged_batches: 1001, ..well() },
                State::Warning,
                "1001 posting lists are not merged",
                "merges them",
            ),
            (
                DatabaseDiagnostics { replication_lag: Some(0), ..well() },
                State::Problem,
                "accepts no writes",
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
