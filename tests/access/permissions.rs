//! Token restrictions: tools and knowledge bases, over every path.

use serde_json::{Value, json};

use crate::fixture::{OperatorHome, call, post, start_with_client};
use crate::http::HttpClient;
use crate::process::wait_for;

const CROWS: &str = "Crows remember the faces of people who were unkind to them, for years.";

/// Adds a text to a base and waits until it can be found.
fn add(client: HttpClient, token: &str, file: &std::path::Path, base: &str) -> Value {
    let arguments = json!({ "file_path": file, "knowledge_base": base });
    let reply = call(client, token, "knowledge-add", &arguments).json();
    let task = reply["structuredContent"]["task_id"].clone();
    wait_for("the document", || {
        let status = call(client, token, "knowledge-task-status", &json!({ "task_id": task })).json();
        let status = &status["structuredContent"];
        assert_ne!(status["status"], "failed", "{status}");
        (status["status"] == "completed").then(|| status.clone())
    });
    task
}

#[test]
fn a_token_may_use_its_tools_and_sees_no_others() {
    let operator = OperatorHome::new();
    let narrow = operator.token("narrow --tool classify_text --tool list_* --trust trusted");
    let (_server, client) = start_with_client(operator.server());
    let listed = post(client, &narrow, "/mcp/tools/list", &json!({})).json();
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"classify_text") && names.contains(&"list_categories"), "{names:?}");
    assert!(names.iter().all(|name| *name == "classify_text" || name.starts_with("list_")), "{names:?}");
    assert_eq!(call(client, &narrow, "list_categories", &json!({})).status, 200);
    let inside = call(client, &narrow, "list_registered_tools", &json!({})).json();
    assert_eq!(inside["structuredContent"]["count"], names.len(), "{inside}");

    let bearer = format!("Bearer {narrow}");
    for (tool, arguments) in [
        ("inspect_server", json!({})),
        ("knowledge-clear", json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" })),
        ("chat_completion", json!({ "messages": [{ "role": "user", "content": "hello" }] })),
    ] {
        let reply = call(client, &narrow, tool, &arguments);
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (403, &json!(-32010)), "{tool}: {}", reply.body);
        assert!(reply.body.contains("token does not permit"), "{}", reply.body);
    }
    let hidden = call(client, &narrow, "chat_completion", &json!({ "zzz": 1 }));
    assert_eq!(hidden.status, 403, "nor is told what it takes: {}", hidden.body);
    let near = call(client, &narrow, "knowledge-cleer", &json!({}));
    assert!(!near.body.contains("knowledge-clear"), "{}", near.body);
    // The same over other paths.
    let prompt = json!({ "model": "auto", "messages": [{ "role": "user", "content": "hello" }] });
    assert_eq!(post(client, &narrow, "/v1/chat/completions", &prompt).status, 403);
    assert_eq!(post(client, &narrow, "/v1/embeddings", &json!({ "input": "a", "model": "auto" })).status, 403);
    assert_eq!(post(client, &narrow, "/mcp/completion/complete", &json!({ "prompt": "hello" })).status, 403);
    assert_eq!(client.call("POST", "/files?filename=a.txt", &[("Authorization", &bearer)], "text").status, 403);
    let prompt = json!({ "name": "answer_from_documents", "arguments": { "question": "crows" } });
    assert_eq!(post(client, &narrow, "/mcp/prompts/get", &prompt).status, 403);
    assert_eq!(post(client, &narrow, "/mcp/models/list", &json!({})).status, 200, "as `list_*` says");
    let other = operator.token("other --tool classify_text --tool embeddings --trust verified");
    wait_for("the new token", || (post(client, &other, "/mcp/tools/list", &json!({})).status == 200).then_some(()));
    assert_eq!(post(client, &other, "/mcp/models/list", &json!({})).status, 403);
    assert_eq!(client.call("GET", "/v1/models", &[("Authorization", &format!("Bearer {other}"))], "").status, 403);
    assert_eq!(post(client, &other, "/v1/embeddings", &json!({ "input": "a", "model": "auto" })).status, 200);
}

#[test]
fn a_token_may_use_its_knowledge_bases_and_learns_nothing_of_others() {
    let operator = OperatorHome::new();
    let file = operator.folder().join("crows.txt");
    std::fs::write(&file, CROWS).unwrap();
    let (all, narrow) = (operator.token("all"), operator.token("narrow --base public --trust trusted"));
    let (_server, client) = start_with_client(operator.server());
    let hidden_task = add(client, &all, &file, "secret");
    add(client, &narrow, &file, "public");

    let query = json!({ "query": "unkind people", "knowledge_base": "public" });
    let found = call(client, &narrow, "knowledge-search", &query).json();
    assert_eq!(found["structuredContent"]["results"].as_array().map(Vec::len), Some(1), "{found}");
    let id = json!("00000000-0000-4000-8000-000000000000");
    for (tool, arguments) in [
        ("knowledge-search", json!({ "query": "unkind people" })),
        ("knowledge-ask", json!({ "question": "who?" })),
        ("knowledge-add", json!({ "file_path": file })),
        ("knowledge-import", json!({ "paths": [file] })),
        ("knowledge-show", json!({})),
        ("knowledge-status", json!({})),
        ("knowledge-tasks", json!({})),
        ("knowledge-get", json!({ "document_id": id })),
        ("knowledge-remove", json!({ "document_id": id, "confirm": true })),
        ("knowledge-clear", json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" })),
    ] {
        for base in ["secret", "default", "never-made"] {
            let mut arguments = arguments.clone();
            arguments["knowledge_base"] = base.into();
            let reply = call(client, &narrow, tool, &arguments);
            assert_eq!(reply.status, 403, "{tool} in {base}: {}", reply.body);
        }
    }
    let status = call(client, &narrow, "knowledge-status", &json!({ "knowledge_base": "public" })).json();
    assert_eq!(status["structuredContent"]["knowledge_bases"], json!(["public"]), "{status}");
    let task = call(client, &narrow, "knowledge-task-status", &json!({ "task_id": hidden_task })).json();
    assert!(task["isError"] == true && task.to_string().contains("task_not_found"), "{task}");

    let tasks = |token: &str| -> Vec<Value> {
        let listed = call(client, token, "knowledge-tasks", &json!({})).json();
        listed["structuredContent"]["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| task["knowledge_base"].clone())
            .collect()
    };
    assert_eq!((tasks(&all), tasks(&narrow)), (vec![json!("public"), json!("secret")], vec![json!("public")]));

    let metrics = |token: &str| client.call("GET", "/metrics", &[("Authorization", &format!("Bearer {token}"))], "");
    assert!(metrics(&all).body.contains("secret"));
    assert_eq!(metrics(&narrow).status, 403, "they name bases");
    let near = call(client, &narrow, "knowledge-serch", &json!({}));
    assert!(near.body.contains("knowledge-search"), "{}", near.body);

    let resources = |token: &str| -> Vec<Value> {
        let listed = post(client, token, "/mcp/resources/list", &json!({})).json();
        let listed = listed["resources"].as_array().unwrap().clone();
        listed.into_iter().filter(|resource| resource["uri"].as_str().unwrap().starts_with("knowledge:")).collect()
    };
    let (everything, own) = (resources(&all), resources(&narrow));
    assert_eq!((everything.len(), own.len()), (2, 1));
    let hidden = everything.iter().find(|resource| !own.contains(resource)).unwrap();
    let read = |token: &str| post(client, token, "/mcp/resources/read", &json!({ "uri": hidden["uri"] })).json();
    assert!(read(&all)["contents"][0]["text"].as_str().unwrap().contains("Crows"));
    assert!(read(&narrow)["error"]["message"].as_str().unwrap().contains("unknown resource"), "{}", read(&narrow));
    assert_eq!(
        call(client, &all, "knowledge-show", &json!({ "knowledge_base": "secret" })).json()["structuredContent"]["total_count"],
        1
    );
}

#[test]
fn s11_who_is_not_trusted_with_everything_adds_files_of_allowed_folders_and_its_own_uploads_alone() {
    let operator = OperatorHome::new();
    let (open, closed) = (operator.folder().join("open"), operator.folder().join("closed"));
    for folder in [&open, &closed] {
        std::fs::create_dir(folder).unwrap();
        std::fs::write(folder.join("crows.txt"), CROWS).unwrap();
    }
    let (guest, other) = (operator.token("guest --trust verified"), operator.token("other --trust verified"));
    let trusted = operator.token("trusted --trust trusted");
    let path = |folder: &std::path::Path| json!({ "file_path": folder.join("crows.txt") });
    let refused = |client: HttpClient, token: &str, tool: &str, arguments: &Value| {
        let reply = call(client, token, tool, arguments);
        assert!(reply.body.contains("path_not_allowed"), "{tool} {arguments}: {}", reply.body);
    };
    let (server, client) = start_with_client(operator.server());
    refused(client, &guest, "knowledge-add", &path(&open));
    refused(client, &guest, "knowledge-import", &json!({ "paths": [open] }));
    let added = call(client, &trusted, "knowledge-add", &path(&closed)).json();
    assert_eq!(added["structuredContent"]["success"], true, "the operator's own may: {added}");
    drop(server);

    let roots = json!([open]).to_string();
    let (_server, client) = start_with_client(operator.server().variable("CORBIE_KNOWLEDGE__ALLOWED_ROOTS", roots));
    let bearer = format!("Bearer {guest}");
    let upload = client.call("POST", "/files?filename=mine.txt", &[("Authorization", &bearer)], CROWS).json();
    let mine = std::path::PathBuf::from(upload["file_path"].as_str().unwrap());
    let uploads = mine.parent().unwrap().parent().unwrap();
    refused(client, &guest, "knowledge-add", &path(&closed));
    // Callers cannot list the uploads of other callers.
    for listed in [uploads, mine.parent().unwrap()] {
        let import = json!({ "paths": [listed], "async": false, "knowledge_base": "of-the-other" });
        let reply = call(client, &other, "knowledge-import", &import);
        assert!(reply.body.contains("path_not_allowed"), "{}", reply.body);
    }
    add(client, &guest, &mine, "default");
    add(client, &guest, &open.join("crows.txt"), "default");
}

#[test]
fn what_became_of_prompts_is_for_who_sent_them_and_for_the_operator() {
    let operator = OperatorHome::new();
    let (one, other) = (operator.token("one --trust verified"), operator.token("other --trust verified"));
    let trusted = operator.token("trusted --trust trusted");
    let settings = json!({ "providers": { "mock": { "type": "mock" } } }).to_string();
    let (_server, client) = start_with_client(operator.server().file("corbie.json", &settings));
    let prompt = json!({ "messages": [{ "role": "user", "content": "hello" }] });
    assert_eq!(call(client, &one, "chat_completion", &prompt).json()["isError"], false);
    let seen = |token: &str| {
        let read = post(client, token, "/mcp/resources/read", &json!({ "uri": "corbie://decisions" })).json();
        let text: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
        text["decisions"].as_array().unwrap().len()
    };
    assert_eq!([seen(&one), seen(&other), seen(&trusted)], [1, 0, 1]);
    let first =
        |token: &str| post(client, token, "/mcp/resources/read", &json!({ "uri": "corbie://decisions/1" })).body;
    assert!(first(&one).contains("contents") && first(&other).contains("unknown resource"));
}
