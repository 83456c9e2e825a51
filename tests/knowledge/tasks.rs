//! `knowledge-tasks`: active and finished tasks, and cancellation from the list.

use serde_json::{Value, json};

use crate::fixture::{
    CROWS, CallTransport, KnowledgeServer, each_transport, is_timestamp, long_text, server_command, tool_json,
};
use crate::process::{modern_meta, request, wait_for};
use crate::sample_files;

const TASKS: &str = "knowledge-tasks";

fn task_ids(listed: &Value) -> Vec<&str> {
    let tasks = listed["tasks"].as_array().unwrap();
    assert_eq!(listed["count"], tasks.len());
    tasks.iter().map(|task| task["task_id"].as_str().unwrap()).collect()
}

/// A program with a running task and a queued one.
fn server_with_busy_queue() -> (KnowledgeServer, String, String) {
    let mut corbie = KnowledgeServer::with(&[("MAX_CONCURRENT_TASKS", "1")]);
    corbie.transport = CallTransport::Http;
    let (long, short) = (corbie.file("long.txt", long_text()), corbie.file("short.txt", CROWS));
    let (running, queued) = (corbie.start_task(&long), corbie.start_task(&short));
    wait_for("the first to run", || (corbie.task_status(&running)["status"] == "running").then_some(()));
    (corbie, running, queued)
}

#[test]
fn what_is_out_of_range_is_named() {
    each_transport(|corbie| {
        for (name, wrong) in [
            ("limit", json!(0)),
            ("limit", json!(201)),
            ("active_only", json!("yes")),
            ("knowledge_base", json!("")),
            ("knowledge_base", json!("a b")),
        ] {
            corbie.expect_invalid(TASKS, json!({ name: wrong }), name);
        }
        for right in [json!({}), json!({ "limit": 200.0 }), json!({ "knowledge_base": "never-made" })] {
            assert_eq!(corbie.call(TASKS, right)["success"], true);
        }
    });
}

#[test]
fn tasks_are_listed_newest_first_as_their_status_tells_them() {
    let mut corbie = KnowledgeServer::start();
    assert_eq!(corbie.call(TASKS, json!({})), json!({ "success": true, "tasks": [], "count": 0 }));
    let good = corbie.file("crows.txt", CROWS);
    let broken = corbie.file("broken.docx", &sample_files::docx()[..300]);
    let (first, second) = (corbie.start_task(&good), corbie.start_task(&broken));
    corbie.wait_for_task(&first);
    corbie.wait_for_task(&second);
    let folder = corbie.folder().join("more");
    corbie.file("more/bees.txt", "Bees make honey of nectar.");
    let imported = corbie.call("knowledge-import", json!({ "paths": [folder], "knowledge_base": "other" }));
    let third = imported["task_id"].as_str().unwrap().to_owned();
    corbie.wait_for_task(&third);

    let listed = corbie.call(TASKS, json!({}));
    assert_eq!(task_ids(&listed), [&third, &second, &first]);
    for (task, id) in listed["tasks"].as_array().unwrap().iter().zip([&third, &second, &first]) {
        let told = corbie.task_status(id);
        for (name, value) in told.as_object().unwrap() {
            match name.as_str() {
                "success" => assert_eq!(task.get(name), None, "{task}"),
                "result" => {}
                _ => assert_eq!(&task[name], value, "{name} of {task}"),
            }
        }
        assert!(
            is_timestamp(&task["created"]) && is_timestamp(&task["started"]) && is_timestamp(&task["ended"]),
            "{task}"
        );
        assert_eq!(task["can_cancel"], false, "it has ended: {task}");
    }
    let [import, failed, added] = [0, 1, 2].map(|number| &listed["tasks"][number]);
    assert_eq!((&import["kind"], &import["knowledge_base"]), (&json!("import"), &json!("other")));
    assert_eq!(import["filename"].as_str(), folder.to_str());
    assert_eq!((&import["result"]["added"], import["result"].get("files")), (&json!(1), None), "{import}");
    assert_eq!((&failed["status"], &failed["error"]), (&json!("failed"), &json!("corrupted_file")));
    assert_eq!((&failed["filename"], &failed["format"]), (&json!("broken.docx"), &json!("docx")));
    assert_eq!((&added["kind"], &added["knowledge_base"]), (&json!("add"), &json!("default")));
    assert_eq!((&added["result"]["filename"], &added["progress"]), (&json!("crows.txt"), &json!(1.0)));

    assert_eq!(task_ids(&corbie.call(TASKS, json!({ "limit": 2 }))), [&third, &second]);
    assert_eq!(task_ids(&corbie.call(TASKS, json!({ "knowledge_base": "other" }))), [&third]);
    assert_eq!(task_ids(&corbie.call(TASKS, json!({ "active_only": true }))), [""; 0]);
}

#[test]
fn tasks_at_work_are_listed_and_only_their_owner_can_cancel_them() {
    let (mut corbie, running, queued) = server_with_busy_queue();
    let listed = corbie.call(TASKS, json!({ "active_only": true }));
    assert_eq!(task_ids(&listed), [&queued, &running]);
    let [waits, runs] = [0, 1].map(|number| &listed["tasks"][number]);
    assert_eq!(
        (&waits["status"], &waits["progress"], &waits["started"]),
        (&json!("queued"), &json!(0.0), &json!(null))
    );
    assert_eq!((&runs["status"], &runs["filename"]), (&json!("running"), &json!("long.txt")));
    assert!(runs["current_step"].as_str().is_some_and(|step| !step.is_empty()), "{runs}");
    assert!(runs["progress"].as_f64().is_some_and(|share| (0.0..=1.0).contains(&share)), "{runs}");
    assert_eq!((&waits["can_cancel"], &runs["can_cancel"]), (&json!(true), &json!(true)));
    corbie.transport = CallTransport::Stdio;
    let others = corbie.call(TASKS, json!({ "active_only": true }));
    assert_eq!(task_ids(&others), [&queued, &running], "a trusted caller sees the tasks of all");
    assert_eq!(others["tasks"][0]["can_cancel"], false, "{others}");
}

/// A 2026-07-28 request over HTTP, without a token or extensions.
fn modern_request(corbie: &KnowledgeServer, method: &str, mut params: Value) -> Value {
    params["_meta"] = modern_meta();
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
    corbie.client.call("POST", "/mcp", &headers, &request(1, method, params).to_string()).json()
}

#[test]
fn k117_x08_an_anonymous_caller_on_this_machine_cancels_what_it_began_in_either_era() {
    let (mut corbie, running, queued) = server_with_busy_queue();
    let cancelled = modern_request(&corbie, "tools/cancel", json!({ "taskId": queued }));
    let result = &cancelled["result"];
    assert_eq!((&result["success"], &result["status"]), (&json!(true), &json!("cancelled")), "{cancelled}");
    let cancelled = corbie.request("tools/cancel", json!({ "taskId": running }));
    assert_eq!(cancelled["result"], json!({ "success": true, "taskId": running, "status": "cancelled" }));
    let listed = corbie.call(TASKS, json!({}));
    for task in listed["tasks"].as_array().unwrap() {
        assert_eq!((&task["status"], &task["can_cancel"]), (&json!("cancelled"), &json!(false)), "{task}");
    }
    assert_eq!(task_ids(&corbie.call(TASKS, json!({ "active_only": true }))), [""; 0]);
    let again = modern_request(&corbie, "tools/cancel", json!({ "taskId": running }));
    assert_eq!(again["error"]["code"], -32602, "{again}");
}

/// A program whose callers on HTTP are its operators, and those on stdio are not.
fn with_a_guest() -> KnowledgeServer {
    KnowledgeServer::from_command(server_command(&[]).variable("CORBIE_TRUST__STDIO", "verified"))
}

#[test]
fn tasks_of_another_caller_are_not_listed_and_their_ids_are_unknown() {
    let mut corbie = with_a_guest();
    corbie.transport = CallTransport::Http;
    let crows = corbie.file("crows.txt", CROWS);
    let operators = corbie.start_task(&crows);
    corbie.wait_for_task(&operators);

    corbie.transport = CallTransport::Stdio;
    assert_eq!(task_ids(&corbie.call(TASKS, json!({}))), [""; 0]);
    let never = "00000000-0000-4000-8000-000000000000";
    let [foreign, unknown] = [operators.as_str(), never].map(|id| {
        let refused = corbie.expect_error("knowledge-task-status", json!({ "task_id": id }), "task_not_found");
        refused.to_string().replace(id, "ID")
    });
    assert_eq!(foreign, unknown, "a task of another caller is one that does not exist");
    let bees = corbie.file("bees.txt", "Bees make honey of nectar.");
    let own = corbie.start_task(&bees);
    assert_eq!(corbie.wait_for_task(&own)["status"], "completed");
    assert_eq!(task_ids(&corbie.call(TASKS, json!({}))), [&own]);

    corbie.transport = CallTransport::Http;
    assert_eq!(task_ids(&corbie.call(TASKS, json!({}))), [&own, &operators], "the operator sees all");
    assert_eq!(corbie.task_status(&own)["status"], "completed");
}

#[test]
fn folders_of_the_server_are_shown_to_trusted_callers_alone() {
    let mut corbie = with_a_guest();
    corbie.transport = CallTransport::Http;
    let storage = corbie.storage().display().to_string();
    corbie.transport = CallTransport::Stdio;
    let folder = corbie.folder().display().to_string();
    let path = corbie.file("papers/crows.txt", CROWS);
    let broken = corbie.file("papers/broken.docx", &sample_files::docx()[..300]);
    corbie.add_path(&path, json!({}));
    let papers = corbie.folder().join("papers");
    let imported = corbie.call("knowledge-import", json!({ "paths": [papers], "async": false }));
    let import = corbie.start_task(&broken);
    corbie.wait_for_task(&import);
    let mut said = vec![imported];
    for (tool, arguments) in [
        ("knowledge-show", json!({})),
        ("knowledge-status", json!({})),
        ("knowledge-tasks", json!({})),
        ("knowledge-task-status", json!({ "task_id": import })),
        ("knowledge-search", json!({ "query": "clever birds" })),
        ("knowledge-add", json!({ "file_path": format!("{folder}/papers/none.txt") })),
        ("get_taxonomy", json!({})),
    ] {
        let result = corbie.result(tool, &arguments);
        said.push(result);
    }
    for said in &said {
        assert!(!said.to_string().contains(&folder) && !said.to_string().contains(&storage), "{said}");
    }
    corbie.transport = CallTransport::Http;
    let shown = corbie.show().to_string();
    assert!(shown.contains(&path), "{shown}");
    assert!(corbie.storage().is_absolute());
}

#[test]
fn folders_of_the_server_are_not_shown_by_the_tasks_extension() {
    let mut corbie = with_a_guest();
    let folder = corbie.folder().display().to_string();
    corbie.file("papers/crows.txt", CROWS);
    let broken = corbie.file("papers/broken.docx", &sample_files::docx()[..300]);
    let papers = corbie.folder().join("papers");
    let mut meta = modern_meta();
    meta["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let mut task = |tool: &str, arguments: Value| {
        let begun = corbie.request("tools/call", json!({ "name": tool, "arguments": arguments, "_meta": meta }));
        let id = begun["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
        corbie.wait_for_task(&id);
        let task = corbie.request("tasks/get", json!({ "taskId": id, "_meta": meta }));
        assert!(!task.to_string().contains(&folder), "{task}");
        task["result"]["result"].clone()
    };
    let imported = tool_json(&task("knowledge-import", json!({ "paths": [papers] })));
    let files = imported["files"].as_array().unwrap();
    let mut paths: Vec<&str> = files.iter().map(|file| file["file_path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["broken.docx", "crows.txt"]);
    let failed = task("knowledge-add", json!({ "file_path": broken }));
    assert_eq!(
        (&failed["isError"], &tool_json(&failed)["error"]),
        (&json!(true), &json!("corrupted_file")),
        "{failed}"
    );
}
