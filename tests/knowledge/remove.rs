//! `knowledge-remove`: confirmation, and complete removal.

use serde_json::json;

use crate::fixture::{CROWS, KnowledgeServer, each_transport, long_text, server_command};

const REMOVE: &str = "knowledge-remove";
const UNKNOWN_ID: &str = "00000000-0000-4000-8000-000000000000";

#[test]
fn k04_k05_k70_the_document_must_be_named() {
    each_transport(|corbie| {
        let refused = corbie.expect_error(REMOVE, json!({ "confirm": true }), "missing_required_parameter");
        assert_eq!(refused["parameter"], "document_id");
        corbie.expect_invalid(REMOVE, json!({ "document_id": 7 }), "document_id");
        corbie.expect_invalid(REMOVE, json!({ "document_id": "" }), "document_id");
        corbie.expect_invalid(REMOVE, json!({ "document_id": UNKNOWN_ID, "confirm": "yes" }), "confirm");
    });
}

#[test]
fn k71_k74_a_removed_document_is_gone_from_everywhere() {
    each_transport(|corbie| {
        let added = corbie.add("crows.txt", CROWS);
        corbie.add("bees.txt", "Bees gather nectar and make honey.");
        let id = &added["document_id"];
        let removed = corbie.call(REMOVE, json!({ "document_id": id, "confirm": true }));
        assert_eq!(
            removed,
            json!({
                "success": true,
                "document_id": id,
                "filename": "crows.txt",
                "chunks_removed": 1,
                "message": "Document removed successfully",
            })
        );
        assert_eq!(corbie.show()["total_count"], 1);
        assert_eq!(corbie.status()["knowledge_base"]["total_chunks"], 1);
        let found = corbie.search("clever crows remember faces");
        assert!(!found.to_string().contains("crows.txt"), "{found}");
        corbie.expect_error("knowledge-get", json!({ "document_id": id }), "document_not_found");
        corbie.expect_error(REMOVE, json!({ "document_id": id, "confirm": true }), "document_not_found");
        // A removed document can be added again, with a new id.
        let again = corbie.add("crows.txt", CROWS);
        assert_ne!(again["document_id"], *id);
    });
}

#[test]
fn k72_s13_without_confirmation_nothing_is_removed() {
    each_transport(|corbie| {
        let added = corbie.add("crows.txt", CROWS);
        let id = &added["document_id"];
        for arguments in [json!({ "document_id": id }), json!({ "document_id": id, "confirm": false })] {
            assert_eq!(
                corbie.call(REMOVE, arguments),
                json!({
                    "success": false,
                    "error": "confirmation_required",
                    "message": "Set confirm=true to remove this document",
                    "document": { "id": id, "filename": "crows.txt", "chunks": 1 },
                })
            );
        }
        assert_eq!(corbie.show()["total_count"], 1);
    });
}

#[test]
fn k73_a_document_that_is_not_there_is_told_before_confirmation() {
    each_transport(|corbie| {
        for confirm in [true, false] {
            assert_eq!(
                corbie.call(REMOVE, json!({ "document_id": UNKNOWN_ID, "confirm": confirm })),
                json!({
                    "success": false,
                    "error": "document_not_found",
                    "message": format!("Document with ID '{UNKNOWN_ID}' not found"),
                    "document_id": UNKNOWN_ID,
                })
            );
        }
        // The example of the specification has a word for an id.
        let example = json!({ "document_id": "uuid-v4-doc-id", "confirm": true });
        let refused = corbie.expect_error(REMOVE, example, "document_not_found");
        assert_eq!(refused["message"], "Document with ID 'uuid-v4-doc-id' not found");
    });
}

#[test]
fn k74_a_document_that_is_being_added_does_not_come() {
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("long.txt", long_text());
    let task = corbie.start_task(&path);
    let id = corbie.show()["documents"][0]["id"].clone();
    assert_eq!(corbie.call(REMOVE, json!({ "document_id": id, "confirm": true }))["success"], true);
    assert_eq!(corbie.show()["total_count"], 0);
    assert_eq!(corbie.task_status(&task)["status"], "cancelled");
}

#[test]
fn x16_x17_x31_who_is_not_trusted_may_add_and_not_remove() {
    let mut corbie = KnowledgeServer::from_command(server_command(&[]).arguments("--trust verified"));
    let added = corbie.add("crows.txt", CROWS);
    for (tool, arguments) in [
        (REMOVE, json!({ "document_id": added["document_id"], "confirm": true })),
        (REMOVE, json!({ "document_id": added["document_id"] })),
        (REMOVE, json!({ "document_id": UNKNOWN_ID })),
        ("knowledge-clear", json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" })),
        ("knowledge-clear", json!({})),
    ] {
        let answer = corbie.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(answer["error"]["code"], -32010, "{answer}");
        assert!(!answer.to_string().contains("crows.txt"), "nothing of the document is told: {answer}");
        let reply = corbie.client.post("/mcp/tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert_eq!(reply.status, 403, "{reply:?}");
    }
    assert_eq!(corbie.show()["total_count"], 1);
}

/// Leftovers in the files of the index.
mod embedded {
    use std::path::Path;

    use serde_json::json;

    use super::REMOVE;
    use crate::fixture::{CROWS, KnowledgeServer};
    use crate::process::wait_for;

    /// Whether any file below a folder contains a word.
    fn any_file_contains(folder: &Path, word: &str) -> bool {
        let Ok(entries) = std::fs::read_dir(folder) else { return false };
        entries.flatten().any(|entry| match entry.path() {
            path if path.is_dir() => any_file_contains(&path, word),
            // The file may have been replaced meanwhile.
            path => {
                std::fs::read(path).is_ok_and(|bytes| bytes.windows(word.len()).any(|some| some == word.as_bytes()))
            }
        })
    }

    #[test]
    fn k74_words_of_a_removed_document_are_soon_in_no_file_of_the_index() {
        let mut corbie = KnowledgeServer::start();
        let index = corbie.storage().join("index");
        for number in 0..8 {
            corbie.add(&format!("{number}.txt"), format!("{CROWS} This is tale {number} of them."));
        }
        let secret = corbie.add("secret.txt", "The zyzzyva whispers.");
        wait_for("the index to be written", || any_file_contains(&index, "zyzzyva").then_some(()));
        corbie.call(REMOVE, json!({ "document_id": secret["document_id"], "confirm": true }));
        wait_for("the word to be gone", || (!any_file_contains(&index, "zyzzyva")).then_some(()));
        assert_eq!(corbie.search("clever crows")["results"].as_array().unwrap().len(), 8);
    }
}
