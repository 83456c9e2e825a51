//! Full and read-only disks: clear errors, accurate health, and no data loss.
//!
//! Each disk is a small tmpfs, mounted in a private mount namespace, which needs no privileges. The tests are skipped
//! if the system does not allow that.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::stdio_process::StdioProcess;

/// Whether an unprivileged user can mount a tmpfs on this system.
fn can_mount_tmpfs() -> bool {
    Command::new("unshare")
        .args(["-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .status()
        .is_ok_and(|ended| ended.success())
}

/// Runs the program with its storage on a disk of this size; `before` is a shell command that runs first.
fn start_on_tmpfs(storage: &Path, size: &str, before: &str) -> StdioProcess {
    let corbie = env!("CARGO_BIN_EXE_corbie");
    let script = format!(
        "mount -t tmpfs -o size={size},mode=700 tmpfs '{storage}' && {before} exec '{corbie}' stdio",
        storage = storage.display()
    );
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script]);
    StdioProcess::spawn(command, storage)
}

#[test]
fn a_full_disk_costs_nothing_that_was_there() {
    if !can_mount_tmpfs() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (storage, files) = (folder.path().join("storage"), folder.path().join("files"));
    std::fs::create_dir(&storage).unwrap();
    std::fs::create_dir(&files).unwrap();
    let mut peer = start_on_tmpfs(&storage, "3m", "");
    let mut added = Vec::new();
    let refused = (0..400).find_map(|number| {
        let path = files.join(format!("n{number}.txt"));
        let filler = "Grain, salt and timber were weighed in the morning and written down. ".repeat(40);
        std::fs::write(&path, format!("note{number}q begins. {filler} note{number}z ends.")).unwrap();
        let answer = peer.call("knowledge-add", &json!({ "file_path": path, "async": false }));
        match answer["success"] == true {
            true => {
                added.push((number, answer["document_id"].clone()));
                None
            }
            false => Some(answer),
        }
    });
    let refused = refused.expect("a small disk is full before long");
    assert_eq!(refused["error"], "storage_full", "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("disk is full") && message.contains("free some space"), "{message}");
    assert!(!added.is_empty());
    // Every acknowledged document exists and is found; no rejected one does.
    let shown = peer.call("knowledge-show", &json!({ "limit": 1000 }));
    let completed = shown["documents"].as_array().unwrap().iter().filter(|one| one["processing_status"] == "completed");
    assert_eq!(completed.count(), added.len(), "{}", shown["total_count"]);
    for (number, id) in added.iter().step_by(7) {
        let found = peer.call("knowledge-search", &json!({ "query": format!("note{number}z") }));
        assert!(found["results"].as_array().unwrap().iter().any(|hit| hit["document_id"] == *id), "note{number}z");
    }
    let status = peer.call("knowledge-status", &json!({}));
    assert_eq!(status["health"]["status"], "degraded", "{status}");
    assert!(status["health"]["issues"][0].as_str().unwrap().contains("No space left"), "{status}");
    peer.shutdown();
}

#[test]
fn a_disk_that_cannot_be_written_is_told_and_costs_nothing_else() {
    if !can_mount_tmpfs() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let storage = folder.path().join("storage");
    std::fs::create_dir(&storage).unwrap();
    let before = format!("mount -o remount,ro '{}' &&", storage.display());
    let mut peer = start_on_tmpfs(&storage, "3m", &before);
    let path = folder.path().join("a.txt");
    std::fs::write(&path, "A note.").unwrap();
    let refused = peer.call("knowledge-add", &json!({ "file_path": path }));
    assert_eq!(refused["success"], false, "{refused}");
    assert_eq!(refused["error"], "storage_read_only", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("not writable"), "{refused}");
    let status = peer.call("knowledge-status", &json!({}));
    assert_eq!(status["health"]["status"], "degraded", "{status}");
    assert_eq!(status["health"]["storage_accessible"], false, "{status}");
    // The other components are not affected.
    let class = peer.call("classify_text", &json!({ "text": "What is 2 + 2?" }));
    assert_eq!(class["class"], 0, "{class}");
    peer.shutdown();
}
