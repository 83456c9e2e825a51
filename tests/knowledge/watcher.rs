//! Watched folders: new, changed and deleted files.

use std::path::Path;

use serde_json::{Value, json};

use crate::fixture::{CROWS, KnowledgeServer, long_text, server_command};
use crate::process::wait_for;

fn server_watching(folder: &Path) -> KnowledgeServer {
    let watch = json!([{ "path": folder }]).to_string();
    KnowledgeServer::from_command(server_command(&[("WATCH", &watch), ("WATCH_INTERVAL", "100ms")]))
}

/// Waits until the documents have exactly these names.
#[track_caller]
pub(crate) fn wait_for_documents(corbie: &mut KnowledgeServer, expected: &[&str]) -> Vec<Value> {
    wait_for(&format!("{expected:?}"), || {
        let shown = corbie.call("knowledge-show", json!({ "sort_by": "filename", "sort_order": "asc" }));
        let documents = shown["documents"].as_array().unwrap().clone();
        let are_there = documents.len() == expected.len()
            && documents
                .iter()
                .zip(expected)
                .all(|(document, name)| document["filename"] == *name && document["processing_status"] == "completed");
        are_there.then_some(documents)
    })
}

#[test]
fn k43_files_that_appear_change_and_go_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("first.txt"), CROWS).unwrap();
    let mut corbie = server_watching(folder.path());
    let first = wait_for_documents(&mut corbie, &["first.txt"]);
    std::fs::create_dir(folder.path().join("deeper")).unwrap();
    std::fs::write(folder.path().join("deeper/second.txt"), "Bees gather nectar and make honey.").unwrap();
    std::fs::write(folder.path().join("ignored.exe"), "no document").unwrap();
    wait_for_documents(&mut corbie, &["first.txt", "second.txt"]);

    std::fs::write(folder.path().join("first.txt"), "Wasps build nests of paper that they chew from wood.").unwrap();
    wait_for("the new content", || {
        let found = corbie.search("wasps chew wood for paper nests");
        let best = found["results"][0].clone();
        (best["document_id"] == first[0]["id"]
            && best["chunk_text"].as_str().is_some_and(|text| text.contains("Wasps")))
        .then_some(())
    });

    std::fs::remove_file(folder.path().join("first.txt")).unwrap();
    wait_for_documents(&mut corbie, &["second.txt"]);
}

#[test]
fn k43_documents_that_were_added_by_hand_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut corbie = server_watching(folder.path());
    let path = corbie.file("by-hand.txt", CROWS);
    corbie.add_path(&path, json!({}));
    std::fs::write(folder.path().join("watched.txt"), "Bees gather nectar and make honey.").unwrap();
    wait_for_documents(&mut corbie, &["by-hand.txt", "watched.txt"]);
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(folder.path().join("watched.txt")).unwrap();
    wait_for_documents(&mut corbie, &["by-hand.txt"]);
}

#[test]
fn a_folder_that_is_gone_costs_no_documents() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("mounted");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("first.txt"), CROWS).unwrap();
    let mut corbie = server_watching(&folder);
    wait_for_documents(&mut corbie, &["first.txt"]);
    std::fs::rename(&folder, parent.path().join("unmounted")).unwrap();
    corbie.running.wait_for_log("keeping its documents");
    assert_eq!(corbie.show()["total_count"], 1);
    std::fs::rename(parent.path().join("unmounted"), &folder).unwrap();
    std::fs::write(folder.join("second.txt"), "Bees gather nectar and make honey.").unwrap();
    wait_for_documents(&mut corbie, &["first.txt", "second.txt"]);
}

#[cfg(target_os = "linux")]
#[test]
fn s11_a_name_that_is_no_text_does_not_keep_the_others_waiting() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(std::ffi::OsStr::from_bytes(b"b\xffd.txt")), CROWS).unwrap();
    std::fs::write(folder.path().join("good.txt"), "Bees gather nectar and make honey.").unwrap();
    let mut corbie = server_watching(folder.path());
    corbie.running.wait_for_log("its name is not valid UTF-8; rename it");
    wait_for_documents(&mut corbie, &["good.txt"]);
}

#[test]
fn k43_a_file_that_is_moved_keeps_its_document() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("old.txt"), CROWS).unwrap();
    std::fs::write(folder.path().join("other.txt"), "Bees gather nectar and make honey.").unwrap();
    let mut corbie = server_watching(folder.path());
    let before = wait_for_documents(&mut corbie, &["old.txt", "other.txt"]);
    std::fs::create_dir(folder.path().join("deeper")).unwrap();
    for (from, to) in [("old.txt", "new.txt"), ("other.txt", "deeper/moved.txt")] {
        std::fs::rename(folder.path().join(from), folder.path().join(to)).unwrap();
    }
    let after = wait_for_documents(&mut corbie, &["moved.txt", "new.txt"]);
    assert_eq!((&after[0]["id"], &after[1]["id"]), (&before[1]["id"], &before[0]["id"]));
    let found = corbie.search("what do crows remember");
    assert_eq!(found["results"][0]["filename"], "new.txt", "{found}");
    // No task keeps running.
    wait_for("all tasks are done", || (corbie.status()["tasks"] == json!({ "running": 0, "queued": 0 })).then_some(()));
}

#[test]
fn what_finds_no_room_is_added_later_and_keeps_nothing_else_waiting() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("first.txt"), CROWS).unwrap();
    let watch = json!([{ "path": folder.path() }]).to_string();
    let settings = [("WATCH", watch.as_str()), ("WATCH_INTERVAL", "100ms"), ("MAX_QUEUED_TASKS", "1")];
    let mut corbie = KnowledgeServer::from_command(server_command(&settings));
    wait_for_documents(&mut corbie, &["first.txt"]);
    let long = corbie.file("long.txt", long_text());
    let task = corbie.start_task(&long);
    std::fs::write(folder.path().join("second.txt"), "Bees gather nectar and make honey.").unwrap();
    corbie.running.wait_for_log("task queue is full; watched files are added later");
    std::fs::remove_file(folder.path().join("first.txt")).unwrap();
    wait_for("what is gone to go", || (!corbie.show().to_string().contains("first.txt")).then_some(()));
    corbie.request("tools/cancel", json!({ "taskId": task }));
    wait_for_documents(&mut corbie, &["second.txt"]);
}

#[test]
fn an_upload_does_not_become_a_watched_file_that_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let mut corbie = server_watching(folder.path());
    let upload = corbie.client.call_bytes("POST", "/files?filename=sent.txt", CROWS.as_bytes()).json();
    let added = corbie.add_path(upload["file_path"].as_str().unwrap(), json!({}));
    std::fs::write(folder.path().join("watched.txt"), CROWS).unwrap();
    // The task of `watched.txt` ends with the existing document.
    std::fs::write(folder.path().join("x.txt"), "Bees gather nectar and make honey.").unwrap();
    wait_for_documents(&mut corbie, &["sent.txt", "x.txt"]);
    wait_for("all tasks are done", || (corbie.status()["tasks"] == json!({ "running": 0, "queued": 0 })).then_some(()));
    std::fs::write(folder.path().join("watched.txt"), "Wasps build nests of paper.").unwrap();
    let documents = wait_for_documents(&mut corbie, &["sent.txt", "watched.txt", "x.txt"]);
    assert_eq!(documents[0]["id"], added["document_id"]);
}

#[cfg(unix)]
#[test]
fn s11_a_watched_folder_that_is_replaced_by_a_symlink_is_not_followed() {
    let parent = tempfile::tempdir().unwrap();
    let [docs, private, other] = ["docs", "private", "other"].map(|name| parent.path().join(name));
    for folder in [&docs, &private, &other] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(docs.join("crows.txt"), CROWS).unwrap();
    std::fs::write(private.join("diary.txt"), "Dear diary, quokkawombat is the password.").unwrap();
    let watch = json!([{ "path": docs }, { "path": other }]).to_string();
    let mut corbie = KnowledgeServer::from_command(server_command(&[("WATCH", &watch), ("WATCH_INTERVAL", "100ms")]));
    wait_for_documents(&mut corbie, &["crows.txt"]);
    std::fs::rename(&docs, parent.path().join("before")).unwrap();
    std::os::unix::fs::symlink("private", &docs).unwrap();
    corbie.running.wait_for_log("skipping a watched folder that is a symbolic link");
    // The other folder is still followed, and the documents of the first are kept.
    std::fs::write(other.join("bees.txt"), "Bees gather nectar and make honey.").unwrap();
    wait_for_documents(&mut corbie, &["bees.txt", "crows.txt"]);
    // The folder is followed again once it is back.
    std::fs::remove_file(&docs).unwrap();
    std::fs::rename(parent.path().join("before"), &docs).unwrap();
    std::fs::write(docs.join("wasps.txt"), "Wasps build nests of paper.").unwrap();
    wait_for_documents(&mut corbie, &["bees.txt", "crows.txt", "wasps.txt"]);
    let found = corbie.search("quokkawombat").to_string();
    assert!(!found.contains("diary"), "{found}");
}

/// A link in the settings is treated like one that replaces a folder later. Otherwise a restart would follow the latter.
#[cfg(unix)]
#[test]
fn s11_a_watched_folder_that_is_a_symlink_is_not_followed() {
    let parent = tempfile::tempdir().unwrap();
    for folder in ["real/docs", "other"] {
        std::fs::create_dir_all(parent.path().join(folder)).unwrap();
    }
    std::fs::write(parent.path().join("real/docs/crows.txt"), CROWS).unwrap();
    std::fs::write(parent.path().join("other/bees.txt"), "Bees gather nectar and make honey.").unwrap();
    std::os::unix::fs::symlink("real", parent.path().join("above")).unwrap();
    std::os::unix::fs::symlink("other", parent.path().join("link")).unwrap();
    // Only the last component counts.
    let watch =
        json!([{ "path": parent.path().join("link") }, { "path": parent.path().join("above/docs") }]).to_string();
    let mut corbie = KnowledgeServer::from_command(server_command(&[("WATCH", &watch), ("WATCH_INTERVAL", "100ms")]));
    let logged = corbie.running.wait_for_log("skipping a watched folder that is a symbolic link");
    assert!(logged.contains("set its path in `knowledge.watch`"), "{logged}");
    wait_for_documents(&mut corbie, &["crows.txt"]);
    // The folder is watched once it takes the place of the link.
    std::fs::remove_file(parent.path().join("link")).unwrap();
    std::fs::rename(parent.path().join("other"), parent.path().join("link")).unwrap();
    wait_for_documents(&mut corbie, &["bees.txt", "crows.txt"]);
}

#[cfg(unix)]
#[test]
fn s11_a_symlink_in_a_watched_folder_does_not_reach_hidden_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("docs")).unwrap();
    std::fs::write(folder.path().join(".env"), "quokkawombat is the password.").unwrap();
    std::fs::write(folder.path().join("docs/crows.txt"), CROWS).unwrap();
    std::os::unix::fs::symlink("../.env", folder.path().join("docs/env.txt")).unwrap();
    let mut corbie = server_watching(folder.path());
    let logged = corbie.running.wait_for_log("skipping symbolic links that lead out of a watched folder");
    assert!(logged.contains("links=1"), "{logged}");
    wait_for_documents(&mut corbie, &["crows.txt"]);
    let found = corbie.search("quokkawombat").to_string();
    assert!(!found.contains("quokkawombat is the password"), "{found}");
}

#[cfg(unix)]
#[test]
fn s11_a_symlink_in_a_watched_folder_does_not_reach_files_outside() {
    use std::os::unix::fs::symlink;
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::create_dir(outside.path().join("deep")).unwrap();
    for name in ["secret.txt", "deep/diary.txt"] {
        std::fs::write(outside.path().join(name), format!("{name}: quokkawombat is the password.")).unwrap();
    }
    std::fs::write(folder.path().join("crows.txt"), CROWS).unwrap();
    symlink(outside.path().join("secret.txt"), folder.path().join("notes.txt")).unwrap();
    symlink(outside.path().join("deep"), folder.path().join("more")).unwrap();
    let mut corbie = server_watching(folder.path());
    let logged = corbie.running.wait_for_log("skipping symbolic links that lead out of a watched folder");
    assert!(logged.contains("links=2"), "{logged}");
    wait_for_documents(&mut corbie, &["crows.txt"]);
    // A file that is replaced by a link keeps its content in the knowledge base.
    std::fs::remove_file(folder.path().join("crows.txt")).unwrap();
    symlink(outside.path().join("secret.txt"), folder.path().join("crows.txt")).unwrap();
    std::fs::write(folder.path().join("bees.txt"), "Bees gather nectar and make honey.").unwrap();
    wait_for_documents(&mut corbie, &["bees.txt", "crows.txt"]);
    let found = corbie.search("quokkawombat").to_string();
    assert!(!found.contains("quokkawombat is the password"), "{found}");
}
