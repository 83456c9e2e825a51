//! Task cancellation: by `tools/cancel`, by the tasks extension, and by disconnecting callers.

use serde_json::{Value, json};

use crate::fixture::{CROWS, CallTransport, KnowledgeServer, long_text, server_command};
use crate::process::{call, modern_meta, wait_for};

/// A program that processes one document at a time, with a long-running task and a queued one.
fn server_with_busy_queue(way: CallTransport) -> (KnowledgeServer, String, String) {
    let mut corbie = KnowledgeServer::with(&[("MAX_CONCURRENT_TASKS", "1")]);
    corbie.transport = way;
    let (long, short) = (corbie.file("long.txt", long_text()), corbie.file("short.txt", CROWS));
    let (running, queued) = (corbie.start_task(&long), corbie.start_task(&short));
    wait_for("the first to run", || (corbie.task_status(&running)["status"] == "running").then_some(()));
    (corbie, running, queued)
}

#[test]
fn k114_k117_x08_running_and_queued_tasks_stop_and_leave_nothing() {
    for way in [CallTransport::Stdio, CallTransport::Http] {
        let (mut corbie, running, queued) = server_with_busy_queue(way);
        for task in [&queued, &running] {
            let cancelled = corbie.request("tools/cancel", json!({ "taskId": task }));
            assert_eq!(
                cancelled["result"],
                json!({ "success": true, "taskId": task, "status": "cancelled" }),
                "{cancelled}"
            );
            let told = corbie.task_status(task);
            assert_eq!((&told["success"], &told["status"]), (&json!(true), &json!("cancelled")), "{told}");
        }
        let status = corbie.status();
        assert_eq!(status["tasks"], json!({ "running": 0, "queued": 0 }), "{status}");
        assert_eq!(
            (&status["knowledge_base"]["document_count"], &status["knowledge_base"]["total_chunks"]),
            (&json!(0), &json!(0))
        );
        assert_eq!(corbie.show()["total_count"], 0);
        assert_eq!(corbie.add("bees.txt", "Bees make honey of nectar.")["success"], true, "the way is free");
        assert_eq!(corbie.task_status(&running)["status"], "cancelled");
    }
}

#[test]
fn k117_x08_as_a_notification_it_is_silent() {
    let (mut corbie, running, queued) = server_with_busy_queue(CallTransport::Stdio);
    for task in [queued.as_str(), running.as_str(), "nobody", "00000000-0000-4000-8000-000000000000"] {
        corbie.running.send(&json!({ "jsonrpc": "2.0", "method": "tools/cancel", "params": { "taskId": task } }));
    }
    for task in [&queued, &running] {
        assert_eq!(corbie.wait_for_task(task)["status"], "cancelled");
    }
    // progress is pushed regardless.
    corbie.notifications.retain(|notification| notification["method"] != "notifications/progress");
    assert_eq!(corbie.notifications, [] as [Value; 0], "nothing is said to a notification");
}

#[test]
fn k117_x08_what_is_unknown_or_over_has_no_effect() {
    let mut corbie = KnowledgeServer::start();
    for way in [CallTransport::Stdio, CallTransport::Http] {
        corbie.transport = way;
        let path = corbie.file("crows.txt", CROWS);
        let task = corbie.start_task(&path);
        corbie.wait_for_task(&task);
        for id in [task.as_str(), "00000000-0000-4000-8000-000000000000", "nobody"] {
            let answer = corbie.request("tools/cancel", json!({ "taskId": id }));
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
        }
        assert_eq!(corbie.request("tools/cancel", json!({}))["error"]["code"], -32602);
        assert_eq!(corbie.task_status(&task)["status"], "completed");
    }
    assert_eq!(corbie.show()["total_count"], 1);
}

#[test]
fn k117_a_task_of_another_caller_is_not_there_to_be_cancelled() {
    let (mut corbie, running, _) = server_with_busy_queue(CallTransport::Stdio);
    corbie.transport = CallTransport::Http;
    let answer = corbie.request("tools/cancel", json!({ "taskId": running }));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(corbie.task_status(&running)["status"], "running");
}

#[test]
fn k117_x08_who_gives_up_waiting_gives_up_the_document() {
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("long.txt", long_text());
    corbie.running.send(&call("slow", "knowledge-add", json!({ "file_path": path, "async": false })));
    wait_for("the work to begin", || (corbie.status()["tasks"]["running"] == 1).then_some(()));
    let given_up = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "slow" } });
    corbie.running.send(&given_up);
    wait_for("the work to end", || (corbie.status()["tasks"]["running"] == 0).then_some(()));
    assert_eq!(corbie.show()["total_count"], 0);
}

/// A request of a client with the tasks extension.
fn modern_request(corbie: &mut KnowledgeServer, method: &str, mut params: Value) -> Value {
    params["_meta"] = modern_meta();
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let answer = corbie.request(method, params);
    assert_eq!(answer.get("error"), None, "{answer}");
    answer["result"].clone()
}

#[test]
fn k112_k117_the_tasks_extension_shows_the_same_tasks() {
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("crows.txt", CROWS);
    let begun = modern_request(
        &mut corbie,
        "tools/call",
        json!({ "name": "knowledge-add", "arguments": { "file_path": path } }),
    );
    let id = begun["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    assert_eq!(corbie.wait_for_task(&id)["status"], "completed");
    let task = modern_request(&mut corbie, "tasks/get", json!({ "taskId": id }));
    assert_eq!(task["status"], "completed", "{task}");
    let result = crate::fixture::tool_json(&task["result"]);
    assert_eq!((&result["success"], &result["filename"]), (&json!(true), &json!("crows.txt")), "{task}");

    let long = corbie.file("long.txt", long_text());
    let begun = modern_request(
        &mut corbie,
        "tools/call",
        json!({ "name": "knowledge-add", "arguments": { "file_path": long } }),
    );
    let id = begun["taskId"].as_str().unwrap().to_owned();
    assert_eq!(modern_request(&mut corbie, "tasks/get", json!({ "taskId": id }))["status"], "working");
    modern_request(&mut corbie, "tasks/cancel", json!({ "taskId": id }));
    assert_eq!(modern_request(&mut corbie, "tasks/get", json!({ "taskId": id }))["status"], "cancelled");
    assert_eq!(corbie.task_status(&id)["status"], "cancelled", "one store, two views");
}

#[test]
fn k113_a_failed_task_of_the_extension_has_the_failure_as_its_result() {
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("broken.docx", &crate::sample_files::docx()[..300]);
    let begun = modern_request(
        &mut corbie,
        "tools/call",
        json!({ "name": "knowledge-add", "arguments": { "file_path": path } }),
    );
    let id = begun["taskId"].as_str().unwrap().to_owned();
    corbie.wait_for_task(&id);
    let task = modern_request(&mut corbie, "tasks/get", json!({ "taskId": id }));
    assert_eq!(task["result"]["isError"], true, "{task}");
    assert_eq!(crate::fixture::tool_json(&task["result"])["error"], "corrupted_file", "{task}");
}

#[test]
fn x19_a_document_may_take_longer_than_other_calls_and_has_a_limit_of_its_own() {
    let mut corbie =
        KnowledgeServer::from_command(server_command(&[]).variable("CORBIE_SERVER__TOOL_TIMEOUT_SECONDS", "1ms"));
    assert_eq!(corbie.add("crows.txt", CROWS)["success"], true);
    let limits = json!({ "knowledge-add": "300ms" }).to_string();
    let mut corbie =
        KnowledgeServer::from_command(server_command(&[]).variable("CORBIE_SERVER__TOOL_TIMEOUTS", limits));
    let path = corbie.file("long.txt", long_text());
    corbie.expect_error("knowledge-add", json!({ "file_path": path, "async": false }), "timeout");
    wait_for("the work to stop", || (corbie.status()["tasks"]["running"] == 0).then_some(()));
    assert_eq!(corbie.show()["total_count"], 0, "nothing stays of it");
}
