//! Checks the shared PostgreSQL database of the knowledge base.

use std::sync::Arc;

use super::{Check, Findings, Subject};
use crate::knowledge::store::postgres::{Address, Examined, Lists, VERSION, examine};

/// Replication lag in seconds above which a replica returns stale results.
const LONG_LAG: u64 = 30;
/// Postings are reported if they occupy at least this many bytes and at most one part in `LITTLE_FILLED` of them is
/// used.
const MUCH: u64 = 1 << 30;
const LITTLE_FILLED: u64 = 4;
/// More small batches than this mean that no instance merges them.
const MANY_BATCHES: u64 = 1000;

pub(super) async fn check(subject: Arc<Subject>) -> Option<Check> {
    let knowledge = &subject.config.as_ref()?.knowledge;
    let store = knowledge.store.as_ref().filter(|_| knowledge.enabled)?;
    let mut findings = Findings::default();
    // The settings check reports an invalid address.
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
    let Examined { server, extension, available, unsuited, .. } = examined;
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
    match examined.version {
        None => findings.ok("its tables are made by the first start"),
        Some(version) if version < VERSION => {
            findings.ok(format!("its tables are of version {version}, and become {VERSION} with the next start"));
        }
        Some(_) => findings.ok(format!("{} instances use it", examined.instances)),
    }
    indexes(examined, findings);
    if !examined.bloated.is_empty() {
        let tables = examined.bloated.iter().map(|(table, share)| format!("{table} ({share} % of its rows are gone)"));
        findings.note(
            format!("tables that want cleaning: {}", tables.collect::<Vec<_>>().join(", ")),
            "look why autovacuum does not come to them, or run `VACUUM` for each",
        );
    }
    let Lists { taken, filled } = examined.lists;
    if taken >= MUCH && taken / LITTLE_FILLED > filled {
        findings.note(
            format!("lists of words take {} MB, of which about {} are filled", taken >> 20, filled >> 20),
            "what is added next fills the rest; to have it back, run `VACUUM FULL corbie.postings` while nobody searches",
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

fn indexes(examined: &Examined, findings: &mut Findings) {
    let Examined { is_indexing, invalid, unindexed, .. } = examined;
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::doctor::State;

    /// A database without problems.
    fn well() -> Examined {
        Examined {
            server: "18.4".into(),
            extension: Some("0.8.5".into()),
            available: Some("0.8.5".into()),
            version: Some(VERSION),
            instances: 3,
            lists: Lists { taken: 2 * MUCH, filled: MUCH },
            ..Examined::default()
        }
    }

    fn told(examined: &Examined) -> Check {
        let mut findings = Findings::default();
        primary(&Address::parse("postgres://a@db.example/nest").unwrap(), examined, &mut findings);
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
            (Examined { unsuited: old, ..well() }, State::Problem, "too old", "until then"),
            (
                Examined { extension: None, available: None, ..well() },
                State::Problem,
                "without pgvector",
                "install pgvector",
            ),
            (Examined { extension: None, ..well() }, State::Warning, "not yet made known", "CREATE EXTENSION"),
            (
                Examined { extension: Some("0.8.0".into()), ..well() },
                State::Warning,
                "0.8.5 is installed",
                "ALTER EXTENSION",
            ),
            (Examined { invalid: invalid.clone(), ..well() }, State::Problem, "vectors_2_model_1", "REINDEX"),
            (Examined { invalid, is_indexing: true, ..well() }, State::Warning, "is being made", "wait"),
            (Examined { unindexed: vec!["minilm".into()], ..well() }, State::Warning, "those of minilm", "makes it"),
            (Examined { bloated: vec![("chunks_1".into(), 40)], ..well() }, State::Warning, "chunks_1 (40 %", "VACUUM"),
            (
                Examined { lists: Lists { taken: 5 * MUCH, filled: MUCH }, ..well() },
                State::Warning,
                "take 5120 MB, of which about 1024 are filled",
                "VACUUM FULL",
            ),
            (Examined { batches: 1001, ..well() }, State::Warning, "1001 lists of words wait", "joined while"),
            (Examined { lag: Some(0), ..well() }, State::Problem, "takes no writes", "store_replicas"),
        ];
        for (examined, state, found, advice) in cases {
            let check = told(&examined);
            assert_eq!(check.state, state, "{check:?}");
            assert!(check.message.contains(found), "{check:?}");
            assert!(check.advice.as_deref().unwrap_or_default().contains(advice), "{check:?}");
        }
    }
}
