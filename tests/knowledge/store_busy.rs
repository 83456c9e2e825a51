//! A store locked by another process: acknowledged work waits for it.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::database::OpenTransaction;
use crate::fixture::{CROWS, KnowledgeServer, long_text};
use crate::process::{call, wait_for};

/// The store waits half a minute, possibly several times, before the call fails.
const TASK_TIMEOUT: Duration = Duration::from_secs(240);

/// Another writer that holds the write lock.
#[expect(dead_code, reason = "what it holds is let go with it")]
enum BlockingWriter {
    OnFiles(Connection),
    OnDatabase(OpenTransaction),
}

impl BlockingWriter {
    fn start(corbie: &mut KnowledgeServer) -> BlockingWriter {
        if let Some(database) = corbie.database() {
            return BlockingWriter::OnDatabase(
                database.hold_transaction("LOCK TABLE corbie.documents, corbie.tasks IN EXCLUSIVE MODE"),
            );
        }
        let other = Connection::open(corbie.storage().join("knowledge.db")).unwrap();
        other.busy_timeout(Duration::from_secs(10)).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        BlockingWriter::OnFiles(other)
    }
}

/// Polls a task until its status matches.
#[track_caller]
fn wait_for_task_status(corbie: &mut KnowledgeServer, task: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + TASK_TIMEOUT;
    loop {
        let told = corbie.task_status(task);
        if fits(&told) {
            return told;
        }
        assert!(Instant::now() < deadline, "still {told}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

#[test]
fn k114_a_task_waits_for_a_store_that_others_keep_busy() {
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("long.txt", &long_text()[..100_000]);
    let task = corbie.start_task(&path);
    // The task is running or about to; its next write finds the store locked.
    let other = BlockingWriter::start(&mut corbie);
    let waiting = wait_for_task_status(&mut corbie, &task, |told| told["current_step"] == "Waiting for storage");
    assert_eq!(waiting["success"], true, "{waiting}");
    drop(other);
    let ended = wait_for_task_status(&mut corbie, &task, |told| {
        !["queued", "running"].contains(&told["status"].as_str().unwrap())
    });
    assert_eq!((&ended["status"], &ended["result"]["filename"]), (&json!("completed"), &json!("long.txt")), "{ended}");
    assert_eq!(corbie.show()["total_count"], 1);
}

#[test]
fn k117_a_call_that_is_given_up_before_it_is_answered_leaves_no_task() {
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("crows.txt", CROWS);
    corbie.add_path(&path, json!({}));
    let other = BlockingWriter::start(&mut corbie);
    let path = corbie.file("bees.txt", "Bees gather nectar and make honey.");
    corbie.running.send(&call("given up", "knowledge-add", json!({ "file_path": path })));
    // Answered only after the previous call was accepted, since both come from the same caller.
    corbie.show();
    let given_up = json!({ "requestId": "given up" });
    corbie.running.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": given_up }));
    corbie.show();
    drop(other);
    // A write after all waiting ones.
    corbie.add("wasps.txt", "Wasps build nests of paper that they chew from wood.");
    wait_for("no task to be left", || (corbie.status()["tasks"] == json!({ "running": 0, "queued": 0 })).then_some(()));
    assert_eq!(corbie.show()["total_count"], 2);
}
