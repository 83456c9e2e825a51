//! `corbie doctor` on a shared database.

use serde_json::Value;

use crate::fixture::{KnowledgeServer, Storage, in_database, path_string, server_command};
use crate::process::{self, report_skip, wait_for};

/// The database finding: state, description and advice.
fn database_check(corbie: &KnowledgeServer) -> (String, String, String) {
    let database = corbie.database().unwrap();
    let storage = tempfile::tempdir().unwrap();
    let setup =
        process::corbie("doctor --json").variable("CORBIE_KNOWLEDGE__STORAGE_PATH", path_string(storage.path()));
    let ended = in_database(setup, Some(database)).run("");
    let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let check = report["checks"].as_array().unwrap().iter().find(|check| check["name"] == "database").unwrap();
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    (text("state"), text("message"), text("advice"))
}

#[test]
fn a_database_is_told_with_its_versions_and_what_is_wrong_with_its_indexes() {
    let (storage, setup) = (Storage::new(), server_command(&[]));
    let corbie = KnowledgeServer::with_storage_and_command(&storage, setup);
    let Some(database) = corbie.database() else { return report_skip("there is no database to look at") };
    wait_for("the database", || (corbie.client.get("/ready?for=knowledge").status == 200).then_some(()));
    let (state, found, _) = database_check(&corbie);
    assert_eq!(state, "ok", "{found}");
    for what in ["PostgreSQL 1", "with pgvector 0.", "1 instances are connected"] {
        assert!(found.contains(what), "{what} in {found}");
    }

    // An index whose creation was interrupted.
    database.query("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'corbie.documents_added'::regclass");
    let (state, found, advice) = database_check(&corbie);
    assert_eq!(state, "problem");
    assert!(found.contains("documents_added") && advice.contains("REINDEX"), "{found}; {advice}");
    // Another process appears to be creating it.
    let _making = database.hold_transaction("SELECT pg_advisory_xact_lock(x'636f72626966'::bigint)");
    let (state, found, _) = database_check(&corbie);
    assert!(state == "warning" && found.contains("is being built"), "{state}: {found}");
}
