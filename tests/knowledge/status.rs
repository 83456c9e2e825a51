//! `knowledge-status`: live counts and measurements.

use serde_json::{Value, json};

use crate::fixture::{CROWS, KnowledgeServer, Storage, each_transport, is_timestamp, server_command};

#[test]
fn x42_k100_k101_k102_k103_the_reply_has_what_the_specification_shows() {
    each_transport(|corbie| {
        corbie.add("crows.txt", CROWS);
        corbie.add("large.txt", format!("{CROWS}{}", " ".repeat(1 << 20)));
        let status = corbie.status();
        assert_eq!(status["success"], true);
        let base = &status["knowledge_base"];
        let size = 2 * CROWS.len() + (1 << 20);
        assert_eq!(
            (&base["name"], &base["document_count"], &base["total_chunks"], &base["total_size_bytes"]),
            (&json!("default"), &json!(2), &json!(2), &json!(size))
        );
        assert_eq!((&base["total_size_mb"], &base["average_chunks_per_document"]), (&json!(1.0), &json!(1.0)));
        assert!(base["storage_path"].as_str().is_some_and(|path| path.starts_with('/')), "x42: {base}");
        let expected = if corbie.database().is_some() { "postgres://" } else { "/" };
        assert!(base["vector_db_path"].as_str().is_some_and(|path| path.starts_with(expected)), "x42: {base}");
        assert_eq!(
            status["health"],
            json!({
                "status": "healthy",
                "vector_db_connected": true,
                "storage_accessible": true,
                "embedding_model_loaded": true,
            })
        );
        let configuration = &status["configuration"];
        assert_eq!((&configuration["chunk_size"], &configuration["max_file_size_mb"]), (&json!(500), &json!(100)));
        assert!(configuration["embedding_model"].as_str().unwrap().contains("all-MiniLM-L6-v2"), "{configuration}");
        assert!(is_timestamp(&status["last_updated"]), "k104: {status}");
    });
}

#[test]
fn k101_an_empty_base_has_zeros() {
    let mut corbie = KnowledgeServer::start();
    let status = corbie.status();
    let base = &status["knowledge_base"];
    assert_eq!(
        (&base["document_count"], &base["total_size_mb"], &base["average_chunks_per_document"]),
        (&json!(0), &json!(0.0), &json!(0.0))
    );
    assert!(is_timestamp(&status["last_updated"]), "k104: {status}");
}

#[test]
fn k104_the_last_change_is_told() {
    let mut corbie = KnowledgeServer::start();
    let added = corbie.add("crows.txt", CROWS);
    let after_adding = corbie.status()["last_updated"].clone();
    assert!(is_timestamp(&after_adding), "{after_adding}");
    corbie.call("knowledge-remove", json!({ "document_id": added["document_id"], "confirm": true }));
    let after_removing = corbie.status()["last_updated"].clone();
    assert!(after_removing.as_str() >= after_adding.as_str() && is_timestamp(&after_removing), "{after_removing}");
}

#[test]
fn k103_f33_settings_are_told_as_they_are() {
    let mut corbie = KnowledgeServer::with(&[("CHUNK_SIZE", "64"), ("MAX_FILE_SIZE_MB", "7")]);
    let configuration = &corbie.status()["configuration"];
    assert_eq!((&configuration["chunk_size"], &configuration["max_file_size_mb"]), (&json!(64), &json!(7)));
}

#[test]
fn a16_a_model_that_is_missing_is_told_and_stops_nothing_else() {
    let setup = server_command(&[]).variable("CORBIE_INFERENCE__EMBEDDING__PATH", "/nowhere/model");
    let mut corbie = KnowledgeServer::from_command(setup);
    let status = corbie.status();
    let health = &status["health"];
    assert_eq!((&health["status"], &health["embedding_model_loaded"]), (&json!("degraded"), &json!(false)), "{status}");
    assert_eq!(
        (&health["vector_db_connected"], &health["storage_accessible"]),
        (&json!(true), &json!(true)),
        "{status}"
    );
    let issues: Vec<&Value> = health["issues"].as_array().unwrap().iter().collect();
    assert!(issues.iter().any(|issue| issue.as_str().unwrap().to_lowercase().contains("model")), "{status}");
}

#[test]
fn a16_without_its_model_what_is_there_is_found_by_its_words() {
    let storage = Storage::new();
    let added = KnowledgeServer::with_storage(&storage, &[]).add("crows.txt", CROWS);
    let without = server_command(&[]).variable("CORBIE_INFERENCE__EMBEDDING__PATH", "/nowhere/model");
    let mut corbie = KnowledgeServer::with_storage_and_command(&storage, without);
    let found = corbie.search("clever birds");
    assert_eq!(found["results"][0]["document_id"], added["document_id"], "{found}");
    assert_eq!(corbie.show()["total_count"], 1);
    let bees = corbie.file("bees.txt", "Bees make honey.");
    corbie.expect_error("knowledge-add", json!({ "file_path": bees, "async": false }), "embedding_failed");
    let removed = corbie.call("knowledge-remove", json!({ "document_id": added["document_id"], "confirm": true }));
    assert_eq!(removed["success"], true, "{removed}");
}

/// Unusable storage directories.
mod embedded {
    use serde_json::json;

    use crate::fixture::{CROWS, CallTransport, KnowledgeServer};

    #[test]
    fn k102_k105_a_storage_that_goes_away_is_noticed() {
        let storage = tempfile::tempdir().unwrap();
        let folder = storage.path().join("kept");
        let mut corbie = KnowledgeServer::with(&[("STORAGE_PATH", folder.to_str().unwrap())]);
        corbie.add("crows.txt", CROWS);
        assert_eq!(corbie.status()["health"]["status"], "healthy");
        std::fs::rename(&folder, storage.path().join("moved")).unwrap();
        let status = corbie.status();
        assert_eq!(
            (&status["success"], &status["health"]["status"]),
            (&json!(true), &json!("degraded")),
            "k100: {status}"
        );
        assert_eq!(status["health"]["storage_accessible"], false, "{status}");
        assert!(status["health"]["issues"].as_array().is_some_and(|issues| !issues.is_empty()), "{status}");
        std::fs::rename(storage.path().join("moved"), &folder).unwrap();
        assert_eq!(corbie.status()["health"]["status"], "healthy");
    }

    #[test]
    fn a16_x25_a_storage_that_cannot_be_opened_stops_nothing_else() {
        let blocked = tempfile::tempdir().unwrap();
        let file = blocked.path().join("file");
        std::fs::write(&file, "not a folder").unwrap();
        let mut corbie = KnowledgeServer::with(&[("STORAGE_PATH", file.join("storage").to_str().unwrap())]);
        let status = corbie.status();
        assert_eq!((&status["success"], &status["health"]["status"]), (&json!(true), &json!("degraded")), "{status}");
        assert_eq!(status["health"]["vector_db_connected"], false, "{status}");
        let crows = corbie.file("crows.txt", CROWS);
        let refused = corbie.call("knowledge-add", json!({ "file_path": crows }));
        assert_eq!(refused["success"], false);
        corbie.transport = CallTransport::Http;
        let classified =
            corbie.request("tools/call", json!({ "name": "classify_text", "arguments": { "text": "two plus two" } }));
        assert_eq!(classified.get("error"), None, "{classified}");
        let listed = corbie.request("resources/list", json!({}));
        assert!(listed["result"]["resources"].as_array().is_some_and(|all| !all.is_empty()), "{listed}");
        let health = corbie.client.get("/health");
        assert_eq!((health.status, &health.json()["status"]), (200, &json!("degraded")));
        assert!(health.body.contains("knowledge"), "{health:?}");
    }
}
