//! `knowledge-clear`: both confirmations, and complete removal.

use serde_json::json;

use crate::fixture::{CROWS, KnowledgeServer, each_transport, long_text};

const CLEAR: &str = "knowledge-clear";

#[test]
fn k91_everything_is_removed() {
    each_transport(|corbie| {
        corbie.add("crows.txt", CROWS);
        corbie.add("bees.txt", "Bees gather nectar and make honey.");
        let cleared = corbie.call(CLEAR, json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
        assert_eq!(
            (&cleared["success"], &cleared["documents_removed"], &cleared["embeddings_removed"]),
            (&json!(true), &json!(2), &json!(2))
        );
        assert!(cleared["storage_freed_mb"].is_f64(), "{cleared}");
        assert_eq!(cleared["message"], "Knowledge base cleared successfully");
        assert_eq!(corbie.show()["total_count"], 0);
        assert_eq!(corbie.status()["knowledge_base"]["total_chunks"], 0);
        corbie.expect_error("knowledge-search", json!({ "query": "crows" }), "empty_knowledge_base");
    });
}

#[test]
fn k90_k92_x26_s13_anything_less_than_both_confirmations_removes_nothing() {
    each_transport(|corbie| {
        corbie.add("crows.txt", CROWS);
        for arguments in [
            json!({}),
            json!({ "confirm": true }),
            json!({ "confirmation_phrase": "DELETE ALL" }),
            json!({ "confirm": false, "confirmation_phrase": "DELETE ALL" }),
            json!({ "confirm": true, "confirmation_phrase": "delete all" }),
            json!({ "confirm": true, "confirmation_phrase": "DELETE ALL " }),
            json!({ "confirm": true, "confirmation_phrase": " DELETE  ALL" }),
            json!({ "confirm": true, "confirmation_phrase": "" }),
        ] {
            assert_eq!(
                corbie.call(CLEAR, arguments.clone()),
                json!({
                    "success": false,
                    "error": "confirmation_required",
                    "message": "This action will delete ALL documents. Set confirm=true and confirmation_phrase='DELETE ALL' to proceed",
                    "current_document_count": 1,
                }),
                "{arguments}"
            );
        }
        corbie.expect_invalid(CLEAR, json!({ "confirm": "true", "confirmation_phrase": "DELETE ALL" }), "confirm");
        corbie.expect_invalid(CLEAR, json!({ "confirm": true, "confirmation_phrase": 7 }), "confirmation_phrase");
        corbie.expect_invalid(CLEAR, json!({ "confirm": 1 }), "confirm");
        assert_eq!(corbie.show()["total_count"], 1);
    });
}

#[test]
fn k94_an_empty_base_is_cleared_with_zeros() {
    each_transport(|corbie| {
        let cleared = corbie.call(CLEAR, json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
        assert_eq!(
            (&cleared["success"], &cleared["documents_removed"], &cleared["embeddings_removed"]),
            (&json!(true), &json!(0), &json!(0))
        );
        assert_eq!(cleared["storage_freed_mb"].as_f64(), Some(0.0), "{cleared}");
    });
}

#[test]
fn k93_what_is_being_added_does_not_come_back() {
    let mut corbie = KnowledgeServer::with(&[("MAX_CONCURRENT_TASKS", "1")]);
    let long = corbie.file("long.txt", long_text());
    let short = corbie.file("short.txt", CROWS);
    let tasks = [corbie.start_task(&long), corbie.start_task(&short)];
    crate::process::wait_for("the first to run", || {
        (corbie.task_status(&tasks[0])["status"] == "running").then_some(())
    });
    corbie.call(CLEAR, json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
    for task in &tasks {
        let told = corbie.task_status(task);
        assert_eq!((&told["success"], &told["status"]), (&json!(true), &json!("cancelled")), "{told}");
    }
    assert_eq!(corbie.show()["total_count"], 0);
    // The task slot is free immediately.
    let added = corbie.add("bees.txt", "Bees gather nectar and make honey.");
    assert_eq!(added["success"], true);
    let shown = corbie.show();
    assert_eq!((&shown["total_count"], &shown["documents"][0]["filename"]), (&json!(1), &json!("bees.txt")));
}

#[test]
fn k91_other_bases_are_left_alone() {
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("crows.txt", CROWS);
    for base in ["default", "other"] {
        corbie.call("knowledge-add", json!({ "file_path": path, "async": false, "knowledge_base": base }));
    }
    let arguments = json!({ "confirm": true, "confirmation_phrase": "DELETE ALL", "knowledge_base": "other" });
    assert_eq!(corbie.call(CLEAR, arguments)["documents_removed"], 1);
    assert_eq!(corbie.show()["total_count"], 1);
    assert_eq!(corbie.call("knowledge-show", json!({ "knowledge_base": "other" }))["total_count"], 0);
}

/// Leftovers in the files of the storage.
mod embedded {
    use serde_json::json;

    use super::CLEAR;
    use crate::fixture::KnowledgeServer;

    #[test]
    fn k74_k91_the_words_of_documents_that_were_cleared_are_in_no_file() {
        let mut corbie = KnowledgeServer::start();
        let word = "Xylophonequartz";
        corbie.add("secret.txt", format!("The password is {word} and nobody may know."));
        corbie.call(CLEAR, json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
        let storage = corbie.storage();
        corbie.running.close_stdin();
        corbie.running.terminate();
        crate::process::wait_for("the program to end", || corbie.running.has_exited().then_some(()));
        let mut folders = vec![storage];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => {
                        let bytes = std::fs::read(entry.path()).unwrap_or_default();
                        let is_there =
                            bytes.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word.as_bytes()));
                        assert!(!is_there, "{} still has it", entry.path().display());
                    }
                }
            }
        }
    }
}
