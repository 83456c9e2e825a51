//! Document processing: duplicates, concurrency, long documents and leftovers.

use serde_json::{Value, json};

use crate::fixture::{CROWS, CallTransport, KnowledgeServer, each_transport, long_text};
use crate::sample_files;

const ADD: &str = "knowledge-add";

// === worker processes ===

#[cfg(target_os = "linux")]
#[test]
fn s12_a_process_that_was_stopped_while_it_waited_for_documents_costs_no_document() {
    let mut corbie = KnowledgeServer::start();
    corbie.add("first.txt", CROWS);
    let idle = child_processes(corbie.running.id());
    assert!(!idle.is_empty(), "one that has read a document waits for the next");
    for worker in &idle {
        std::process::Command::new("kill").args(["-STOP", &worker.to_string()]).status().unwrap();
    }
    let added = corbie.add("second.txt", "Bread is baked from flour, water, salt and yeast.");
    assert_eq!(added["success"], true, "{added}");
    let found = corbie.search("what is bread baked from");
    assert!(found.to_string().contains("yeast"), "{found}");
    let left = child_processes(corbie.running.id()).into_iter().filter(|worker| idle.contains(worker)).count();
    assert!(left < idle.len(), "what did not answer is gone");
}

/// Child processes of a program.
#[cfg(target_os = "linux")]
fn child_processes(of: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{of}/task")).unwrap();
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<u32>>()).collect()
}

// === duplicates ===

#[test]
fn k36_the_same_content_is_there_once_and_what_is_said_of_it_is_renewed() {
    each_transport(|corbie| {
        let first = corbie.file("first.txt", CROWS);
        let added = corbie.add_path(&first, json!({ "author": "Ann", "year": 2024 }));
        let copy = corbie.file("copy.txt", CROWS);
        let again = corbie.add_path(&copy, json!({ "author": "Bob" }));
        assert_eq!(again["document_id"], added["document_id"]);
        assert_eq!((&again["filename"], &again["duplicate"]), (&json!("first.txt"), &json!(true)), "{again}");
        let shown = corbie.show();
        assert_eq!(shown["total_count"], 1, "{shown}");
        let metadata = &shown["documents"][0]["metadata"];
        assert_eq!((&metadata["author"], &metadata["year"]), (&json!("Bob"), &json!(2024)), "{shown}");
        let found = corbie.call("knowledge-search", json!({ "query": "birds", "filters": { "author": "Bob" } }));
        assert_eq!(found["total_results"], 1, "{found}");
    });
}

#[test]
fn k43_a_path_with_new_content_keeps_its_document() {
    each_transport(|corbie| {
        let path = corbie.file("notes.txt", CROWS);
        let before = corbie.add_path(&path, json!({}));
        corbie.file("notes.txt", "Bread is baked from flour, water, salt and yeast in a hot oven.");
        let after = corbie.add_path(&path, json!({}));
        assert_eq!(after["document_id"], before["document_id"]);
        assert_eq!(corbie.show()["total_count"], 1);
        let found = corbie.search("baked from flour and yeast");
        assert_eq!(found["total_results"], 1, "{found}");
        assert!(found["results"][0]["chunk_text"].as_str().unwrap().contains("yeast"), "{found}");
        let found = corbie.search("clever crows that remember faces");
        assert!(!found.to_string().contains("Crows"), "{found}");
    });
}

#[test]
fn k36_k43_a_path_that_became_the_same_as_another_leaves_nothing_behind() {
    each_transport(|corbie| {
        let bees = "Bees gather nectar and make honey.";
        let first = corbie.file("first.txt", CROWS);
        corbie.add_path(&first, json!({}));
        let second = corbie.add("second.txt", bees);
        corbie.file("first.txt", bees);
        let again = corbie.add_path(&first, json!({}));
        assert_eq!((&again["document_id"], &again["duplicate"]), (&second["document_id"], &json!(true)), "{again}");
        let shown = corbie.show();
        assert_eq!(shown["total_count"], 1, "no file says the other any more: {shown}");
        let found = corbie.search("clever crows that remember faces");
        assert!(!found.to_string().contains("Crows"), "{found}");
    });
}

#[test]
fn k36_k43_what_two_files_say_stays_when_one_of_them_changes() {
    each_transport(|corbie| {
        let (first, copy) = (corbie.file("first.txt", CROWS), corbie.file("copy.txt", CROWS));
        let crows = corbie.add_path(&first, json!({ "author": "Ann" }));
        assert_eq!(corbie.add_path(&copy, json!({}))["duplicate"], true);
        corbie.file("first.txt", "Bread is baked from flour, water, salt and yeast.");
        let bread = corbie.add_path(&first, json!({}));
        assert_ne!(bread["document_id"], crows["document_id"]);
        let found = corbie.search("clever crows that remember faces");
        let (document, name) = (&found["results"][0]["document_id"], &found["results"][0]["filename"]);
        assert_eq!((document, name), (&crows["document_id"], &json!("copy.txt")), "{found}");
        assert_eq!(found["results"][0]["metadata"]["author"], "Ann", "{found}");
        // Now the other file changes too, and no file has this content any more.
        corbie.file("copy.txt", "Bees gather nectar and make honey.");
        let bees = corbie.add_path(&copy, json!({}));
        assert_eq!(bees["document_id"], crows["document_id"]);
        let found = corbie.search("clever crows that remember faces");
        assert!(!found.to_string().contains("Crows"), "{found}");
        assert_eq!(corbie.show()["total_count"], 2);
    });
}

#[test]
fn k36_k41_what_was_uploaded_stays_when_a_file_that_said_the_same_changes() {
    let mut corbie = KnowledgeServer::start();
    corbie.transport = CallTransport::Http;
    let path = corbie.file("first.txt", CROWS);
    let crows = corbie.add_path(&path, json!({}));
    let kept = corbie.client.call_bytes("POST", "/files?filename=sent.txt", CROWS.as_bytes()).json();
    assert_eq!(corbie.add_path(kept["file_path"].as_str().unwrap(), json!({}))["duplicate"], true);
    corbie.file("first.txt", "Bread is baked from flour, water, salt and yeast.");
    corbie.add_path(&path, json!({}));
    let found = corbie.search("clever crows that remember faces");
    assert_eq!(found["results"][0]["document_id"], crows["document_id"], "{found}");
    assert_eq!(corbie.show()["total_count"], 2);
}

#[test]
fn k36_a_text_has_nothing_to_look_at_however_often_it_is_forced() {
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("crows.txt", CROWS);
    corbie.add_path(&path, json!({}));
    let again = corbie.call(ADD, json!({ "file_path": path, "force_ocr": true, "async": false }));
    assert_eq!((&again["duplicate"], again.get("updated")), (&json!(true), None), "{again}");
}

// === concurrency ===

#[test]
fn k39_so_many_are_processed_at_a_time_and_the_rest_wait() {
    let mut corbie = KnowledgeServer::with(&[("MAX_CONCURRENT_TASKS", "1")]);
    let tasks: Vec<String> = (0..3)
        .map(|number| {
            let path = corbie.file(&format!("{number}.txt"), format!("{number} {}", long_text()));
            corbie.start_task(&path)
        })
        .collect();
    crate::process::wait_for("the first to run", || {
        (corbie.task_status(&tasks[0])["status"] == "running").then_some(())
    });
    for task in &tasks[1..] {
        let told = corbie.task_status(task);
        assert_eq!((&told["status"], &told["progress"]), (&json!("queued"), &json!(0.0)), "{told}");
    }
    assert_eq!(corbie.status()["tasks"], json!({ "running": 1, "queued": 2 }));
    let statuses: Vec<Value> = corbie.show()["documents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|document| document["processing_status"].clone())
        .collect();
    assert_eq!(statuses.iter().filter(|status| **status == "processing").count(), 1, "k84: {statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == "pending").count(), 2, "k84: {statuses:?}");
}

#[test]
fn k40_long_texts_are_cut_between_sentences_and_read_to_the_end() {
    let mut corbie = KnowledgeServer::with(&[("CHUNK_SIZE", "60"), ("CHUNK_OVERLAP", "20")]);
    let mut text: String = (0..40).map(|number| format!("Sentence {number} is about the weather at sea. ")).collect();
    text += "The last word is about a purple submarine that carries cheese.";
    let added = corbie.add("long.txt", &text);
    assert!(added["chunks_created"].as_u64().unwrap() >= 6, "{added}");
    let found = corbie.call("knowledge-search", json!({ "query": "weather at sea", "top_k": 50 }));
    let chunks: Vec<&str> =
        found["results"].as_array().unwrap().iter().map(|result| result["chunk_text"].as_str().unwrap()).collect();
    for chunk in &chunks {
        assert!(chunk.starts_with("Sentence") || chunk.starts_with("The last"), "cut within a sentence: {chunk:?}");
        assert!(chunk.trim_end().ends_with('.'), "cut within a sentence: {chunk:?}");
    }
    let repeated = |number: usize| {
        let sentence = format!("Sentence {number} is");
        chunks.iter().filter(|chunk| chunk.contains(&sentence)).count() > 1
    };
    assert!((0..40).any(repeated), "chunks overlap: {chunks:#?}");
    let found = corbie.search("a submarine with cheese on board");
    assert!(found["results"][0]["chunk_text"].as_str().unwrap().contains("submarine"), "{found}");
}

#[test]
fn z17_others_are_answered_while_somebody_waits_for_a_document() {
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("long.txt", long_text());
    corbie.running.send(&crate::process::call("slow", ADD, json!({ "file_path": path, "async": false })));
    crate::process::wait_for("the work to begin", || {
        corbie.transport = CallTransport::Http;
        (corbie.status()["tasks"]["running"] == 1).then_some(())
    });
    assert_eq!(corbie.show()["success"], true);
    corbie.expect_error(ADD, json!({ "file_path": "/test/doc.xyz" }), "unsupported_format");
}

// === leftovers ===

#[test]
fn k38_no_temporary_files_stay_whatever_comes_of_a_document() {
    let temporary = tempfile::tempdir().unwrap();
    let setup = crate::fixture::server_command(&[]).variable("TMPDIR", temporary.path().display());
    let mut corbie = KnowledgeServer::from_command(setup);
    corbie.add("good.pdf", sample_files::pdf());
    let broken = corbie.file("broken.docx", &sample_files::docx()[..300]);
    corbie.expect_error(ADD, json!({ "file_path": broken, "async": false }), "corrupted_file");
    let long = corbie.file("long.txt", long_text());
    let task = corbie.start_task(&long);
    corbie.request("tools/cancel", json!({ "taskId": task }));
    crate::process::wait_for("the folder to be empty", || {
        std::fs::read_dir(temporary.path()).unwrap().next().is_none().then_some(())
    });
}

#[test]
fn k40_a_text_without_a_space_is_cut_and_none_of_it_is_lost() {
    /// Bytes of 500 tokens of maximum length.
    const MAX_CHUNK_BYTES: usize = 500 * 64;
    let mut corbie = KnowledgeServer::start();
    let text = format!("Herons wait. {}", "x".repeat(400_000));
    let added = corbie.add("long.txt", &text);
    assert!(added["chunks_created"].as_u64().unwrap() > 10, "{added}");
    let found = corbie.search("herons wait");
    let found = found["results"].as_array().unwrap();
    assert!(!found.is_empty() && found.iter().all(|one| one["chunk_text"].as_str().unwrap().len() <= MAX_CHUNK_BYTES));
    let wanted = json!({ "document_id": added["document_id"], "max_characters": 500_000 });
    assert_eq!(corbie.call("knowledge-get", wanted)["pages"][0]["text"], text);
}
