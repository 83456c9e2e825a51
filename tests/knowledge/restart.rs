//! Persistence across orderly shutdowns and crashes.

use serde_json::json;

use crate::fixture::{CROWS, KnowledgeServer, Storage, long_text, path_string};
use crate::process::wait_for;

fn server_on(storage: &Storage) -> KnowledgeServer {
    KnowledgeServer::with_storage(storage, &[("MAX_CONCURRENT_TASKS", "1")])
}

/// How often a task was started.
fn attempts(storage: &Storage, task: &str) -> u32 {
    let id = task.parse().unwrap();
    storage.open_store().run(async |store| store.task(id).await.unwrap().unwrap().attempts)
}

/// Shuts the program down in an orderly way.
fn stop(mut corbie: KnowledgeServer) {
    corbie.running.close_stdin();
    corbie.running.terminate();
    wait_for("the program to end", || corbie.running.has_exited().then_some(()));
}

#[test]
fn k08_z12_what_was_added_stays_and_what_was_removed_stays_away() {
    let storage = Storage::new();
    let mut corbie = server_on(&storage);
    let crows = corbie.add("crows.txt", CROWS);
    let bees = corbie.add("bees.txt", "Bees gather nectar and make honey.");
    corbie.call("knowledge-remove", json!({ "document_id": bees["document_id"], "confirm": true }));
    stop(corbie);
    let mut corbie = server_on(&storage);
    let listed = corbie.show();
    assert_eq!((&listed["total_count"], &listed["documents"][0]["id"]), (&json!(1), &crows["document_id"]));
    assert_eq!(corbie.search("clever crows")["results"][0]["document_id"], crows["document_id"]);
    let found = corbie.search("nectar and honey of bees");
    assert!(!found.to_string().contains("bees.txt"), "{found}");
    corbie.expect_error("knowledge-get", json!({ "document_id": bees["document_id"] }), "document_not_found");
    // Killed without warning; all documents are still present.
    corbie.call("knowledge-remove", json!({ "document_id": crows["document_id"], "confirm": true }));
    let wasps = corbie.add("wasps.txt", "Wasps build nests of paper that they chew from wood.");
    drop(corbie);
    let mut corbie = server_on(&storage);
    let listed = corbie.show();
    assert_eq!((&listed["total_count"], &listed["documents"][0]["id"]), (&json!(1), &wasps["document_id"]));
    let found = corbie.search("wasps chew wood for paper nests");
    assert_eq!((&found["total_results"], &found["results"][0]["filename"]), (&json!(1), &json!("wasps.txt")));
}

#[test]
fn k08_a09_tasks_of_a_killed_process_are_resumed() {
    let storage = Storage::new();
    let mut first = server_on(&storage);
    let (long, short) = (first.file("long.txt", long_text()), first.file("short.txt", CROWS));
    let (running, queued) = (first.start_task(&long), first.start_task(&short));
    wait_for("the first to run", || (first.task_status(&running)["status"] == "running").then_some(()));
    // The files must remain and the process must not: SIGKILL leaves it no time to clean up.
    first.running.signal("KILL");
    wait_for("its end", || first.running.has_exited().then_some(()));
    std::fs::write(&long, "Only this is left of a long text about herons.").unwrap();
    let mut second = server_on(&storage);
    for (task, name) in [(&running, "long.txt"), (&queued, "short.txt")] {
        let told = second.wait_for_task(task);
        assert_eq!((&told["status"], &told["result"]["filename"]), (&json!("completed"), &json!(name)), "{told}");
    }
    assert_eq!(second.show()["total_count"], 2);
    assert_eq!(second.status()["health"]["status"], "healthy");
}

#[test]
fn a09_a_task_whose_file_is_gone_after_a_restart_fails_with_a_reason() {
    let storage = Storage::new();
    let mut first = server_on(&storage);
    let long = first.file("long.txt", long_text());
    let task = first.start_task(&long);
    wait_for("it to run", || (first.task_status(&task)["status"] == "running").then_some(()));
    first.running.signal("KILL");
    wait_for("its end", || first.running.has_exited().then_some(()));
    std::fs::remove_file(&long).unwrap();
    let mut second = server_on(&storage);
    let told = second.wait_for_task(&task);
    assert_eq!((&told["status"], &told["error"]), (&json!("failed"), &json!("file_not_found")), "{told}");
}

#[test]
fn a09_a_task_that_ends_the_program_again_and_again_is_given_up() {
    let storage = Storage::new();
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("long.txt");
    std::fs::write(&path, long_text()).unwrap();
    let mut corbie = server_on(&storage);
    let task = corbie.start_task(&path_string(&path));
    for times in 1..=3 {
        // Until the death of a process is detected, its task is reported as running.
        wait_for("it to run here", || {
            let runs = corbie.task_status(&task)["status"] == "running";
            (runs && attempts(&storage, &task) == times).then_some(())
        });
        corbie.running.signal("KILL");
        wait_for("its end", || corbie.running.has_exited().then_some(()));
        corbie = server_on(&storage);
        let told = corbie.task_status(&task);
        assert!(times == 3 || told["status"] != "failed", "begun again after {times}: {told}");
    }
    let told = corbie.wait_for_task(&task);
    assert_eq!((&told["status"], &told["error"]), (&json!("failed"), &json!("interrupted")), "{told}");
    assert!(told["message"].as_str().unwrap().contains("3 times"), "{told}");
}

#[test]
fn k43_an_import_that_is_resumed_tells_what_it_added_and_not_what_it_found() {
    let storage = Storage::new();
    let mut first = server_on(&storage);
    // An unchanged file, a changed one, a new one, and a long one during which the program is killed.
    first.file("folder/1.txt", CROWS);
    first.file("folder/2.txt", "Bees gather nectar and make honey.");
    let paths = json!({ "paths": [first.folder().join("folder")] });
    first.call("knowledge-import", json!({ "paths": paths["paths"], "async": false }));
    first.file("folder/2.txt", "Wasps build nests of paper that they chew from wood.");
    first.file("folder/3.txt", "Herons stand still in the water until a fish comes by.");
    let long = first.file("folder/4.txt", long_text());
    let begun = first.call("knowledge-import", paths);
    let task = begun["task_id"].as_str().unwrap();
    wait_for("the third to be there", || (first.show()["total_count"] == 3).then_some(()));
    first.running.signal("KILL");
    wait_for("its end", || first.running.has_exited().then_some(()));
    std::fs::write(&long, "Only this is left of a long text about owls.").unwrap();
    let mut second = server_on(&storage);
    let told = second.wait_for_task(task);
    let counts = ["files_total", "added", "updated", "unchanged", "failed"].map(|name| told["result"][name].clone());
    assert_eq!(counts, [4, 2, 1, 1, 0].map(|count| json!(count)), "{told}");
}

#[test]
fn k93_k117_what_was_cancelled_is_not_resumed() {
    let storage = Storage::new();
    let mut first = server_on(&storage);
    let (long, short) = (first.file("long.txt", long_text()), first.file("short.txt", CROWS));
    let (running, queued) = (first.start_task(&long), first.start_task(&short));
    first.request("tools/cancel", json!({ "taskId": queued }));
    first.call("knowledge-clear", json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }));
    first.running.signal("KILL");
    wait_for("its end", || first.running.has_exited().then_some(()));
    let mut second = server_on(&storage);
    for task in [&running, &queued] {
        assert_eq!(second.task_status(task)["status"], "cancelled");
    }
    assert_eq!(second.show()["total_count"], 0);
}

#[test]
fn a09_an_end_in_good_order_lets_small_documents_finish() {
    let storage = Storage::new();
    let mut first = server_on(&storage);
    let path = first.file("crows.txt", CROWS);
    let task = first.start_task(&path);
    first.running.close_stdin();
    first.running.terminate();
    wait_for("the program to end", || first.running.has_exited().then_some(()));
    let mut second = server_on(&storage);
    assert_eq!(second.wait_for_task(&task)["status"], "completed");
    assert_eq!(second.show()["total_count"], 1);
}
