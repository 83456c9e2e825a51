//! `knowledge-import`: folders and patterns, one task for all of their files.

use serde_json::{Value, json};

use crate::fixture::{CROWS, CallTransport, KnowledgeServer, each_transport, is_uuid, long_text};
use crate::process::wait_for;
use crate::sample_files;

const IMPORT: &str = "knowledge-import";

fn import_and_wait(corbie: &mut KnowledgeServer, arguments: Value) -> Value {
    let mut arguments = arguments;
    arguments["async"] = false.into();
    let imported = corbie.call(IMPORT, arguments);
    assert_eq!(imported["success"], true, "{imported}");
    imported
}

fn counts(imported: &Value) -> [u64; 5] {
    ["files_total", "added", "updated", "unchanged", "failed"].map(|name| imported[name].as_u64().unwrap())
}

/// Result for a file, by a suffix of its path.
fn file_result<'a>(imported: &'a Value, name: &str) -> &'a Value {
    let files = imported["files"].as_array().unwrap();
    let ends = |file: &&Value| file["file_path"].as_str().is_some_and(|path| path.ends_with(name));
    files.iter().find(ends).unwrap_or_else(|| panic!("no {name} in {imported}"))
}

#[test]
fn k04_k05_paths_are_needed() {
    each_transport(|corbie| {
        corbie.expect_error(IMPORT, json!({}), "missing_required_parameter");
        for wrong in [json!("docs"), json!([]), json!([7]), json!([""])] {
            corbie.expect_invalid(IMPORT, json!({ "paths": wrong }), "paths");
        }
        corbie.expect_invalid(IMPORT, json!({ "paths": ["a"], "recursive": "no" }), "recursive");
    });
}

#[test]
fn k43_a_folder_is_one_task_that_tells_what_became_of_each_file() {
    each_transport(|corbie| {
        let folder = format!("{:?}", corbie.transport);
        corbie.file(&format!("{folder}/crows.txt"), CROWS);
        corbie.file(&format!("{folder}/deeper/crow.pdf"), sample_files::pdf());
        corbie.file(&format!("{folder}/broken.docx"), &sample_files::docx()[..300]);
        corbie.file(&format!("{folder}/program.exe"), "no document");
        corbie.file(&format!("{folder}/.hidden.txt"), "a file that hides");
        let path = corbie.folder().join(&folder);
        let begun = corbie.call(IMPORT, json!({ "paths": [path] }));
        assert!(is_uuid(&begun["task_id"]), "{begun}");
        let told = corbie.wait_for_task(begun["task_id"].as_str().unwrap());
        assert_eq!((&told["status"], &told["progress"]), (&json!("completed"), &json!(1.0)), "{told}");
        let imported = &told["result"];
        assert_eq!(counts(imported), [3, 2, 0, 0, 1], "{imported}");
        let crows = file_result(imported, "crows.txt");
        assert!(is_uuid(&crows["document_id"]) && crows["status"] == "added", "{crows}");
        let broken = file_result(imported, "broken.docx");
        assert_eq!((&broken["status"], &broken["error"]), (&json!("failed"), &json!("corrupted_file")), "{broken}");
        assert_eq!(corbie.show()["total_count"], 2);
    });
}

#[test]
fn k25_k111_an_import_tells_how_long_it_takes_and_how_many_files_it_has() {
    let mut corbie = KnowledgeServer::with(&[("MAX_CONCURRENT_TASKS", "2")]);
    let paths: Vec<String> = (0..4)
        .map(|number| corbie.file(&format!("folder/{number}.txt"), format!("{number} {}", long_text())))
        .collect();
    let seconds = |begun: &Value| begun["estimated_time_seconds"].as_u64().unwrap_or_else(|| panic!("{begun}"));
    // The folder has not been scanned yet.
    let begun = corbie.call(IMPORT, json!({ "paths": [corbie.folder().join("folder")] }));
    assert!((1..10).contains(&seconds(&begun)), "{begun}");
    let task = begun["task_id"].as_str().unwrap();
    let told = wait_for("its files to be listed", || {
        let told = corbie.task_status(task);
        (told["total_steps"] == 4).then_some(told)
    });
    // The initial estimate for a megabyte of text is twenty seconds, and two files are processed at a time.
    assert!(told["estimated_remaining_seconds"].as_f64().unwrap() > 20.0, "{told}");
    // Named files are included in the estimate immediately, as is the queue before them.
    let named = corbie.call(IMPORT, json!({ "paths": paths }));
    assert!(seconds(&named) > 40, "{named}");
}

#[test]
fn k43_what_is_there_is_passed_over_and_what_changed_keeps_its_document() {
    each_transport(|corbie| {
        corbie.file("folder/one.txt", CROWS);
        corbie.file("folder/two.txt", "Bees gather nectar and make honey.");
        let paths = json!({ "paths": [corbie.folder().join("folder")] });
        let first = import_and_wait(corbie, paths.clone());
        assert_eq!(counts(&first), [2, 2, 0, 0, 0], "{first}");
        assert_eq!(counts(&import_and_wait(corbie, paths.clone())), [2, 0, 0, 2, 0]);
        corbie.file("folder/two.txt", "Wasps build nests of paper that they chew from wood.");
        let third = import_and_wait(corbie, paths);
        assert_eq!(counts(&third), [2, 0, 1, 1, 0], "{third}");
        assert_eq!(file_result(&third, "two.txt")["document_id"], file_result(&first, "two.txt")["document_id"]);
        let found = corbie.search("wasps chew wood for paper nests");
        assert_eq!(found["results"][0]["filename"], "two.txt", "{found}");
    });
}

#[test]
fn k43_patterns_and_folders_without_those_in_them() {
    let mut corbie = KnowledgeServer::start();
    corbie.file("docs/a.txt", "The first text is about apples.");
    corbie.file("docs/b.md", "The second text is about bananas.");
    corbie.file("docs/deep/c.txt", "The third text is about cherries.");
    corbie.file("docs/deep/er/d.txt", "The fourth text is about dates.");
    let root = corbie.folder().join("docs");
    let path = |rest: &str| root.join(rest);
    let mut names = |arguments: Value| {
        let imported = import_and_wait(&mut corbie, arguments);
        let mut names: Vec<String> = imported["files"]
            .as_array()
            .unwrap()
            .iter()
            .map(|file| file["file_path"].as_str().unwrap().rsplit('/').next().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names(json!({ "paths": [root], "recursive": false })), ["a.txt", "b.md"]);
    assert_eq!(names(json!({ "paths": [path("*.txt")] })), ["a.txt"]);
    assert_eq!(names(json!({ "paths": [path("**/*.txt")] })), ["a.txt", "c.txt", "d.txt"]);
    assert_eq!(names(json!({ "paths": [path("{a,b}.*"), path("a.txt")] })), ["a.txt", "b.md"], "each once");
}

#[test]
fn k43_a_pattern_that_no_file_fits_has_failed() {
    let mut corbie = KnowledgeServer::start();
    corbie.file("docs/a.txt", CROWS);
    let path = |corbie: &KnowledgeServer, name: &str| corbie.folder().join("docs").join(name);
    let paths = [path(&corbie, "*.txt"), path(&corbie, "nothing*.pdf")];
    let imported = import_and_wait(&mut corbie, json!({ "paths": paths }));
    assert_eq!(counts(&imported), [2, 1, 0, 0, 1], "{imported}");
    let failed = file_result(&imported, "nothing*.pdf");
    assert_eq!(failed["error"], "file_not_found", "{imported}");
    assert!(failed["message"].as_str().unwrap().starts_with("No files match: "), "{imported}");
}

#[test]
fn k43_what_is_not_there_is_told_for_each_path() {
    let mut corbie = KnowledgeServer::start();
    let there = corbie.file("there.txt", CROWS);
    let gone = corbie.folder().join("gone");
    let missing = corbie.folder().join("missing.pdf");
    let other = corbie.file("other.xyz", CROWS);
    let imported = import_and_wait(&mut corbie, json!({ "paths": [there, gone, missing, other, "[" ] }));
    assert_eq!(imported["added"], 1, "{imported}");
    assert_eq!(file_result(&imported, "missing.pdf")["error"], "file_not_found", "{imported}");
    assert_eq!(file_result(&imported, "other.xyz")["error"], "unsupported_format", "{imported}");
    assert_eq!(file_result(&imported, "gone")["status"], "failed", "{imported}");
    assert_eq!(imported["failed"], 4, "{imported}");
}

#[test]
fn k117_an_import_that_is_cancelled_stops() {
    let mut corbie = KnowledgeServer::with(&[("MAX_CONCURRENT_TASKS", "1")]);
    for number in 0..5 {
        corbie.file(&format!("many/{number}.txt"), format!("{number} {}", long_text()));
    }
    let begun = corbie.call(IMPORT, json!({ "paths": [corbie.folder().join("many")] }));
    let task = begun["task_id"].as_str().unwrap();
    crate::process::wait_for("it to run", || (corbie.task_status(task)["status"] == "running").then_some(()));
    let cancelled = corbie.request("tools/cancel", json!({ "taskId": task }));
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    assert_eq!(corbie.task_status(task)["status"], "cancelled");
    assert_eq!(corbie.status()["tasks"], json!({ "running": 0, "queued": 0 }));
    assert_eq!(corbie.show()["total_count"], 0);
}

#[cfg(unix)]
#[test]
fn s11_folders_that_loop_are_entered_once() {
    let mut corbie = KnowledgeServer::start();
    corbie.file("loop/a.txt", CROWS);
    let root = corbie.folder().join("loop");
    std::os::unix::fs::symlink(&root, root.join("again")).unwrap();
    std::os::unix::fs::symlink(root.join("nowhere"), root.join("dangling.txt")).unwrap();
    let imported = import_and_wait(&mut corbie, json!({ "paths": [root] }));
    assert_eq!(counts(&imported), [1, 1, 0, 0, 0], "{imported}");
}

/// Two such names would collide if they were shown as text.
#[cfg(target_os = "linux")]
#[test]
fn k31_files_whose_names_are_no_text_are_told_and_not_added() {
    use std::os::unix::ffi::OsStrExt;
    let mut corbie = KnowledgeServer::start();
    corbie.file("crows.txt", CROWS);
    for (name, text) in [(b"bird\xff.txt", "Herons wait."), (b"bird\xfe.txt", "Swifts never land.")] {
        std::fs::write(corbie.folder().join(std::ffi::OsStr::from_bytes(name)), text).unwrap();
    }
    let folder = corbie.folder().to_owned();
    let imported = import_and_wait(&mut corbie, json!({ "paths": [folder] }));
    assert_eq!(counts(&imported), [3, 1, 0, 0, 2], "{imported}");
    let files = imported["files"].as_array().unwrap();
    let failed: Vec<&Value> = files.iter().filter(|file| file["status"] == "failed").collect();
    for file in failed {
        assert_eq!(file["error"], "file_not_readable", "{file}");
        assert!(file["message"].as_str().unwrap().ends_with("its name is not valid UTF-8; rename it"), "{file}");
    }
    assert_eq!(corbie.show()["total_count"], 1);
}

#[test]
fn k43_a_file_that_was_moved_is_found_by_its_new_name() {
    let mut corbie = KnowledgeServer::start();
    let before = corbie.file("quokkaquest.txt", CROWS);
    let added = corbie.add_path(&before, json!({}));
    assert_eq!(corbie.search("quokkaquest")["results"][0]["document_id"], added["document_id"]);
    let after = corbie.folder().join("wombatwander.txt");
    std::fs::rename(&before, &after).unwrap();
    let imported = import_and_wait(&mut corbie, json!({ "paths": [after] }));
    assert_eq!(counts(&imported), [1, 0, 0, 1, 0], "{imported}");
    let found = corbie.search("wombatwander");
    assert_eq!(found["results"][0]["document_id"], added["document_id"], "{found}");
    assert_eq!(found["results"][0]["filename"], "wombatwander.txt");
    let gone = corbie.search("quokkaquest");
    assert_eq!(gone["total_results"], 0, "{gone}");
}

/// A folder `docs` with untrusted content: links to files outside of it.
#[cfg(unix)]
fn docs_with_links(corbie: &KnowledgeServer) -> std::path::PathBuf {
    use std::os::unix::fs::symlink;
    corbie.file("private/credentials", "aws_secret_access_key = quokkawombat");
    corbie.file("private/deep/diary.txt", "Dear diary, quokkawombat is the password of the bank.");
    corbie.file("docs/crows.txt", CROWS);
    let docs = corbie.folder().join("docs");
    symlink(corbie.folder().join("private/credentials"), docs.join("notes.txt")).unwrap();
    symlink("../private", docs.join("more")).unwrap();
    symlink("crows.txt", docs.join("birds.txt")).unwrap();
    docs
}

#[cfg(unix)]
#[test]
fn s11_a_symlink_in_an_imported_folder_does_not_reach_files_outside() {
    each_transport(|corbie| {
        let docs = docs_with_links(corbie);
        // The folders above may be links.
        let above = corbie.folder().join("above");
        let _ = std::os::unix::fs::symlink(corbie.folder(), &above);
        for paths in [json!([docs]), json!([docs.join("**/*.txt")]), json!([above.join("docs")])] {
            let imported = import_and_wait(corbie, json!({ "paths": paths }));
            assert_eq!((&imported["files_total"], &imported["failed"]), (&json!(2), &json!(0)), "{imported}");
            assert_eq!(imported["skipped_by_kind"]["links_outside_folder"], 2, "{imported}");
            assert_eq!(corbie.show()["total_count"], 1);
        }
        let found = corbie.search("quokkawombat").to_string();
        assert!(!found.contains("secret") && !found.contains("diary"), "{found}");
        std::fs::remove_dir_all(corbie.folder().join("docs")).unwrap();
    });
}

#[cfg(unix)]
#[test]
fn s11_a_symlink_in_an_imported_folder_does_not_reach_hidden_files() {
    use std::os::unix::fs::symlink;
    let mut corbie = KnowledgeServer::start();
    corbie.file("home/.env", "aws_secret_access_key = quokkawombat");
    corbie.file("home/.ssh/id_ed25519", "a private key, quokkawombat");
    corbie.file("home/repo/docs/crows.txt", CROWS);
    let home = corbie.folder().join("home");
    symlink("../../.env", home.join("repo/docs/env.txt")).unwrap();
    symlink("../../.ssh/id_ed25519", home.join("repo/docs/notes.md")).unwrap();
    symlink("../.ssh", home.join("repo/keys")).unwrap();
    for (paths, links) in [(json!([home]), 3), (json!([home.join("**/*.txt")]), 2)] {
        let imported = import_and_wait(&mut corbie, json!({ "paths": paths }));
        assert_eq!((&imported["files_total"], &imported["failed"]), (&json!(1), &json!(0)), "{imported}");
        assert_eq!(imported["skipped_by_kind"]["links_outside_folder"], links, "{imported}");
        assert_eq!(corbie.show()["total_count"], 1);
    }
    let found = corbie.search("quokkawombat").to_string();
    assert!(!found.contains("secret") && !found.contains("private key"), "{found}");
}

#[cfg(unix)]
#[test]
fn s11_links_that_leave_a_folder_are_followed_for_local_callers_who_ask_for_it_alone() {
    let mut corbie = KnowledgeServer::start();
    let docs = docs_with_links(&corbie);
    for way in [CallTransport::Http, CallTransport::Rest] {
        corbie.transport = way;
        corbie.expect_invalid(IMPORT, json!({ "paths": [docs], "follow_links": true }), "follow_links");
    }
    corbie.transport = CallTransport::Stdio;
    let imported = import_and_wait(&mut corbie, json!({ "paths": [docs], "follow_links": true }));
    assert_eq!(counts(&imported)[..2], [4, 3], "{imported}");
    assert_eq!(imported["skipped"], 1, "the file without an extension: {imported}");
}

#[cfg(unix)]
#[test]
fn s11_a_link_that_is_named_itself_is_skipped_and_counted() {
    each_transport(|corbie| {
        let docs = docs_with_links(corbie);
        // As a shell expands `docs/*`.
        let expanded = ["birds.txt", "crows.txt", "more", "notes.txt"].map(|name| docs.join(name));
        let imported = import_and_wait(corbie, json!({ "paths": expanded }));
        assert_eq!((&imported["files_total"], &imported["failed"]), (&json!(1), &json!(0)), "{imported}");
        assert_eq!(imported["skipped_by_kind"], json!({ "symbolic_links": 3 }), "{imported}");
        for only in ["notes.txt", "more", "more/", "more/**/*.txt"] {
            let imported = import_and_wait(corbie, json!({ "paths": [docs.join(only)] }));
            assert_eq!(counts(&imported), [1, 0, 0, 0, 1], "{imported}");
            let file = &imported["files"][0];
            assert_eq!(file["error"], "file_not_readable", "{file}");
            let message = file["message"].as_str().unwrap();
            assert!(message.contains("it is a symbolic link") && message.contains("--follow-links"), "{message}");
        }
        let found = corbie.search("quokkawombat").to_string();
        assert!(!found.contains("secret") && !found.contains("diary"), "{found}");
        std::fs::remove_dir_all(&docs).unwrap();
    });
    let mut corbie = KnowledgeServer::start();
    let docs = docs_with_links(&corbie);
    let follow = |path: &str| json!({ "paths": [docs.join(path)], "follow_links": true });
    assert_eq!(counts(&import_and_wait(&mut corbie, follow("notes.txt"))), [1, 1, 0, 0, 0]);
    assert_eq!(counts(&import_and_wait(&mut corbie, follow("more"))), [1, 1, 0, 0, 0]);
}
