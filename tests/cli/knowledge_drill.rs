//! `corbie knowledge drill`: verifies that a backup can be restored.

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use serde_json::json;

use crate::knowledge::KnowledgeFixture;
#[cfg(unix)]
use crate::process::TestProcess;
use crate::process::{call, wait_for};

/// Folders that a drill created and did not remove.
fn leftover_folders(place: &KnowledgeFixture) -> Vec<String> {
    let entries = std::fs::read_dir(place.storage()).map(|entries| entries.flatten().collect::<Vec<_>>());
    let names = entries.unwrap_or_default().into_iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("corbie-drill-")).collect()
}

#[test]
fn drill_restores_everything_and_removes_its_files() {
    let place = KnowledgeFixture::with_documents();
    let ended = place.run("knowledge drill");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let [copied, back, compared, asked, end] = lines[..] else { panic!("{ended:?}") };
    assert!(copied.starts_with("Backup created: ") && back.starts_with("Restored in "), "{ended:?}");
    assert!(compared.starts_with("Compared 2 documents, ") && compared.ends_with(": no differences"), "{ended:?}");
    assert!(asked.starts_with("Index built in ") && asked.ends_with(" found"), "{ended:?}");
    assert_eq!(end, "OK: the backup can be restored; live data was not changed");
    assert_eq!(leftover_folders(&place), Vec::<String>::new());
    assert_eq!(place.json("show --json")["total_count"], 2);
}

#[test]
fn drill_of_a_backup_needs_no_knowledge_base() {
    let place = KnowledgeFixture::with_documents();
    let backup = place.documents().join("backup.db").display().to_string();
    assert_eq!(place.run(&format!("knowledge backup {backup}")).code, Some(0));
    let live = place.json("knowledge drill --json");
    assert_eq!((&live["success"], &live["documents"]), (&json!(true), &json!(2)), "{live}");
    assert!(live["queries"].as_u64() > Some(1) && live["queries"] == live["queries_found"], "{live}");
    let elsewhere = KnowledgeFixture::new();
    let kept = elsewhere.json(&format!("knowledge drill --json --from {backup}"));
    assert_eq!((&kept["success"], &kept["sha256"]), (&json!(true), &live["sha256"]), "{kept}");
    assert_eq!(kept["seconds"]["backup"], json!(null), "{kept}");
    assert!(!Path::new(&elsewhere.storage()).exists(), "nothing is made where there was nothing");
    for (command, why) in [("", "there is no knowledge base in `"), ("--from none.db", "`none.db`: file not found")] {
        let ended = elsewhere.run(&format!("knowledge drill {command}"));
        assert!(ended.startup_error().contains(why), "{ended:?}");
    }
}

#[cfg(unix)]
#[test]
fn drill_succeeds_while_a_server_adds_documents() {
    let place = KnowledgeFixture::with_documents();
    let mut server = place.serve();
    for number in 0..60 {
        place.write(&format!("note-{number}.txt"), &format!("Note {number} is about the harbour of town {number}.\n"));
    }
    let folder = place.documents().join("documents").display().to_string();
    let begun = server.send_and_receive(&call(2, "knowledge-import", json!({ "paths": [folder] })));
    assert_eq!(begun["result"]["isError"], false, "{begun}");
    let mut seen = Vec::new();
    for _ in 0..3 {
        let drilled = place.json("knowledge drill --json");
        assert_eq!(drilled["success"], true, "{drilled}");
        assert_eq!(drilled["queries"], drilled["queries_found"], "{drilled}");
        seen.push(drilled["documents"].as_u64().unwrap());
    }
    assert!(seen[0] >= 2 && seen.is_sorted(), "{seen:?}");
    // A drill does not take tasks from the server, and no document is lost.
    wait_for("all documents", || (place.json("show --json")["total_count"] == 62).then_some(()));
    assert_eq!(leftover_folders(&place), Vec::<String>::new());
}

#[test]
fn drill_detects_a_damaged_backup() {
    let place = KnowledgeFixture::with_documents();
    let backup = place.documents().join("backup.db");
    assert_eq!(place.run(&format!("knowledge backup {}", backup.display())).code, Some(0));
    let length = std::fs::metadata(&backup).unwrap().len();
    let mut damaged = std::fs::OpenOptions::new().write(true).open(&backup).unwrap();
    for page in (3..length / 8192).step_by(2) {
        damaged.seek(SeekFrom::Start(page * 8192)).unwrap();
        damaged.write_all(&[0xa5; 64]).unwrap();
    }
    drop(damaged);
    let ended = place.run(&format!("knowledge drill --from {}", backup.display()));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.starts_with("problem: ") && ended.stdout.contains("the backup: "), "{ended:?}");
    assert!(ended.stdout.contains("do not rely on this backup"), "{ended:?}");
    let told = place.json(&format!("knowledge drill --json --from {}", backup.display()));
    assert_eq!((&told["success"], &told["error"]), (&json!(false), &json!("drill_failed")), "{told}");
    // A file that is not a backup gets the same error as for restore.
    let foreign = place.run("knowledge drill --from ./bees.md");
    assert!(foreign.startup_error().contains("not a corbie knowledge base"), "{foreign:?}");
    assert_eq!(leftover_folders(&place), Vec::<String>::new());
    assert_eq!(place.json("knowledge drill --json")["success"], true, "the knowledge base itself is sound");
}

/// A drill that has started restoring, or has already finished.
#[cfg(unix)]
fn start_drill(place: &KnowledgeFixture) -> TestProcess {
    let mut drill = place.corbie("knowledge drill").start();
    drill.close_stdin();
    let began =
        || leftover_folders(place).iter().any(|name| Path::new(&place.storage()).join(name).join("knowledge").exists());
    wait_for("the copy to be brought back, or the end", || (began() || drill.has_exited()).then_some(()));
    drill
}

#[cfg(unix)]
#[test]
fn interrupted_drill_removes_its_files() {
    let place = KnowledgeFixture::with_documents();
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let mut drill = start_drill(&place);
        if !drill.has_exited() {
            drill.signal(signal);
        }
        let ended = drill.wait();
        assert!(ended.code == Some(code) || ended.code == Some(0), "{signal}: {ended:?}");
        assert_eq!(leftover_folders(&place), Vec::<String>::new(), "{signal}: {ended:?}");
    }
}

#[cfg(unix)]
#[test]
fn files_of_a_killed_drill_are_removed_by_the_next() {
    let place = KnowledgeFixture::with_documents();
    let mut drill = start_drill(&place);
    if !drill.has_exited() {
        drill.signal("KILL");
    }
    drill.wait();
    // As left by a drill that was killed.
    let left = Path::new(&place.storage()).join("corbie-drill-killed").join("knowledge");
    std::fs::create_dir_all(&left).unwrap();
    std::fs::write(left.join("knowledge.db"), "half").unwrap();
    std::fs::write(left.with_file_name("in-use.lock"), "").unwrap();
    // And one of a drill still running.
    let running = Path::new(&place.storage()).join("corbie-drill-running");
    std::fs::create_dir(&running).unwrap();
    let in_use = std::fs::File::create(running.join("in-use.lock")).unwrap();
    in_use.lock().unwrap();
    assert_eq!(place.json("knowledge drill --json")["success"], true);
    assert_eq!(leftover_folders(&place), ["corbie-drill-running"]);
    drop(in_use);
    assert_eq!(place.json("knowledge drill --json")["success"], true);
    assert_eq!(leftover_folders(&place), Vec::<String>::new());
}

#[cfg(unix)]
#[test]
fn drill_without_free_space_fails_before_it_starts() {
    let place = KnowledgeFixture::with_documents();
    let disk = rustix::fs::statvfs(place.documents()).unwrap();
    let free = disk.f_bavail * disk.f_frsize;
    // A sparse file as long as the free disk space.
    let large = place.documents().join("large.db");
    std::fs::File::create(&large).unwrap().set_len(free).unwrap();
    let told = place.json(&format!("knowledge drill --json --from {}", large.display()));
    assert_eq!((&told["success"], &told["error"]), (&json!(false), &json!("storage_full")), "{told}");
    assert_eq!(told["needed_bytes"], free + free / 2, "{told}");
    assert!(told["free_bytes"].as_u64().is_some_and(|free| told["needed_bytes"].as_u64() > Some(free)), "{told}");
    let message = told["message"].as_str().unwrap();
    assert!(message.starts_with("the drill needs ") && message.contains("--into FOLDER"), "{told}");
    // For the live knowledge base, space for a backup is needed in addition.
    let database = Path::new(&place.storage()).join("knowledge.db");
    let length = std::fs::metadata(&database).unwrap().len();
    let file = std::fs::OpenOptions::new().write(true).open(&database).unwrap();
    file.set_len(free / 2).unwrap();
    let ended = place.run("knowledge drill");
    file.set_len(length).unwrap();
    assert!(ended.startup_error().contains("free some space"), "{ended:?}");
    assert_eq!(leftover_folders(&place), Vec::<String>::new());
    assert_eq!(place.json("knowledge drill --json")["success"], true);
}

#[test]
fn drill_uses_the_given_folder() {
    let place = KnowledgeFixture::with_documents();
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::create_dir(elsewhere.path().join("corbie-drill-killed")).unwrap();
    std::fs::write(elsewhere.path().join("corbie-drill-killed/in-use.lock"), "").unwrap();
    let drilled = place.json(&format!("knowledge drill --json --into {}", elsewhere.path().display()));
    assert_eq!(drilled["success"], true, "{drilled}");
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0, "what another left there is gone as well");
    let missing = elsewhere.path().join("missing");
    let ended = place.run(&format!("knowledge drill --into {}", missing.display()));
    assert!(ended.startup_error().contains("missing"), "{ended:?}");
}

#[test]
fn drill_accepts_passages_with_equal_beginnings() {
    let place = KnowledgeFixture::new();
    let opening = "This agreement is made between the parties named below, who have read all of its terms. ".repeat(5);
    for number in 0..60 {
        place.write(&format!("agreement-{number}.txt"), &format!("{opening}\nThe rent is {number} crowns a month.\n"));
    }
    assert_eq!(place.run("add .").code, Some(0));
    let drilled = place.json("knowledge drill --json");
    assert_eq!((&drilled["success"], &drilled["problems"]), (&json!(true), &json!([])), "{drilled}");
    assert_eq!((&drilled["queries"], &drilled["queries_found"]), (&json!(5), &json!(5)), "{drilled}");
}

#[test]
fn drill_does_not_migrate_an_older_knowledge_base() {
    let place = KnowledgeFixture::with_documents();
    let database = Path::new(&place.storage()).join("knowledge.db");
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection
        .execute_batch(
            "ALTER TABLE chunks DROP COLUMN stretches; ALTER TABLE chunks DROP COLUMN checksum;
             ALTER TABLE documents DROP COLUMN checksum; ALTER TABLE pages DROP COLUMN checksum;
             ALTER TABLE vectors DROP COLUMN checksum; ALTER TABLE bases DROP COLUMN checksum; DROP TABLE unchecked; PRAGMA user_version = 5;",
        )
        .unwrap();
    drop(connection);
    let drilled = place.json("knowledge drill --json");
    assert_eq!((&drilled["success"], &drilled["documents"]), (&json!(true), &json!(2)), "{drilled}");
    let version = || -> i64 {
        let connection = rusqlite::Connection::open(&database).unwrap();
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    assert_eq!(version(), 5, "only what was brought back is brought up to date");
    assert_eq!(place.json("show --json")["total_count"], 2);
    assert!(version() > 5, "who works with it brings it up to date");
}
