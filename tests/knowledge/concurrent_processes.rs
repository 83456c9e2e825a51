//! Several processes on one storage, and several callers of one process.

use std::thread;

use serde_json::json;

use crate::fixture::{CROWS, KnowledgeServer, Storage};
use crate::process::{call, wait_for};

#[test]
fn k08_two_processes_see_each_others_documents() {
    let storage = Storage::new();
    let (mut one, mut other) =
        (KnowledgeServer::with_storage(&storage, &[]), KnowledgeServer::with_storage(&storage, &[]));
    assert_eq!(other.show()["total_count"], 0);
    let added = one.add("crows.txt", CROWS);
    assert_eq!(other.show()["total_count"], 1);
    assert_eq!(other.search("clever crows")["results"][0]["document_id"], added["document_id"]);
    other.call("knowledge-remove", json!({ "document_id": added["document_id"], "confirm": true }));
    one.expect_error("knowledge-search", json!({ "query": "clever crows" }), "empty_knowledge_base");
    // A task of one process can be queried and cancelled in the other.
    let long = one.file("long.txt", crate::fixture::long_text());
    let task = one.start_task(&long);
    assert!(["queued", "running"].contains(&other.task_status(&task)["status"].as_str().unwrap()));
    let cancelled = other.request("tools/cancel", json!({ "taskId": task }));
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    wait_for("the other to hear of it", || (one.status()["tasks"]["running"] == 0).then_some(()));
    assert_eq!(one.task_status(&task)["status"], "cancelled");
}

/// A load balancer does not route by upload.
#[test]
fn k41_an_upload_to_one_process_is_added_by_another() {
    let storage = Storage::new();
    let (one, mut other) = (KnowledgeServer::with_storage(&storage, &[]), KnowledgeServer::with_storage(&storage, &[]));
    let kept = one.client.call_bytes("POST", "/files?filename=crows.txt", CROWS.as_bytes());
    assert_eq!(kept.status, 201, "{kept:?}");
    let path = kept.json()["file_path"].as_str().unwrap().to_owned();
    drop(one);
    // Instances that share a database do not share a folder.
    if other.database().is_some() {
        std::fs::remove_dir_all(storage.path().join("uploads")).unwrap();
    }
    let added = other.add_path(&path, json!({}));
    assert_eq!(added["filename"], "crows.txt");
    assert_eq!(other.search("clever crows")["results"][0]["document_id"], added["document_id"]);
}

#[test]
fn k09_ten_callers_work_at_once_and_nobody_sees_half_a_document() {
    let mut corbie = KnowledgeServer::with(&[("CHUNK_SIZE", "16"), ("CHUNK_OVERLAP", "0")]);
    let text: String =
        (0..6).map(|part| format!("Part {part} of the tale about the raven king and his court.\n\n")).collect();
    corbie.add("stays.txt", "The raven king has a palace that stays where it is.");
    let path = corbie.file("comes-and-goes.txt", text);
    let client = corbie.client;
    let searching: Vec<_> = (0..10)
        .map(|_| {
            thread::spawn(move || {
                for _ in 0..12 {
                    let search = json!({ "query": "the raven king", "top_k": 50 });
                    let answer = client.post("/mcp", &call(1, "knowledge-search", search)).json();
                    let found = crate::fixture::tool_json(&answer["result"]);
                    assert_eq!(found["success"], true, "{found}");
                    let results = found["results"].as_array().unwrap();
                    let of = |name: &str| results.iter().filter(|result| result["filename"] == name).count();
                    assert_eq!(of("stays.txt"), 1, "{found}");
                    assert!([0, 6].contains(&of("comes-and-goes.txt")), "half a document: {found}");
                }
            })
        })
        .collect();
    for _ in 0..6 {
        let added = corbie.add_path(&path, json!({}));
        let removed = corbie.call("knowledge-remove", json!({ "document_id": added["document_id"], "confirm": true }));
        assert_eq!(removed["chunks_removed"], added["chunks_created"]);
    }
    for one in searching {
        one.join().unwrap();
    }
}
