//! M-05: the structured result of every tool validates against its `outputSchema`, and equals the text.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::fixture::{CROWS, CallTransport, KnowledgeServer, server_command, tool_json};
use crate::process::modern_meta;

/// Small, because saving it trains a classifier.
const TAXONOMY: &str = "\
categories:
- name: math
  examples: [what is two plus two, the derivative of a square, solve this equation, how large is pi]
- name: birds
  examples: [which birds remember faces, why do geese fly in a wedge, what do owls eat, how crows count]
";

/// A tool call, and whether it succeeds.
type Case = (&'static str, Value, bool);

/// Calls that succeed and calls that fail. Every tool has one that succeeds, and every tool with arguments one that
/// fails.
fn cases(corbie: &mut KnowledgeServer) -> Vec<Case> {
    let document = corbie.add("crows.txt", CROWS)["document_id"].clone();
    let other = corbie.add("bees.txt", "Bees gather nectar and make honey.")["document_id"].clone();
    let path = corbie.file("broken.pdf", b"%PDF-1.7\nnothing\n");
    let failed = corbie.start_task(&path);
    corbie.wait_for_task(&failed);
    let more = corbie.file("more/geese.md", "# Geese\n\nGeese fly south in a wedge.");
    let task = corbie.start_task(&more);
    corbie.wait_for_task(&task);
    let folder = corbie.folder().join("more").display().to_string();
    let unknown = "00000000-0000-4000-8000-000000000000";
    let one_example = json!([{ "text": "What is 2 + 2?", "category": "math" }]);
    let wrong = json!([{ "text": "Who was the last tsar?", "category": "math" }]);
    vec![
        ("list_registered_tools", json!({}), true),
        ("get_tool_schema", json!({ "name": "knowledge-add" }), true),
        ("inspect_server", json!({}), true),
        ("check_setup", json!({}), true),
        ("list_categories", json!({}), true),
        ("classify_text", json!({ "text": "What is 2 + 2?" }), true),
        (
            "classify_text",
            json!({ "text": "Who was the last tsar?", "with_probabilities": true, "with_examples": true }),
            true,
        ),
        ("classify_text", json!({ "text": "" }), false),
        ("batch_categorize", json!({ "texts": ["What is 2 + 2?", ""], "with_probabilities": true }), true),
        ("batch_categorize", json!({ "texts": 7 }), false),
        ("get_taxonomy", json!({}), true),
        ("check_taxonomy", json!({ "text": TAXONOMY, "trial_texts": ["one", ""] }), true),
        ("check_taxonomy", json!({ "text": "categories: [" }), true),
        ("check_taxonomy", json!({}), false),
        ("save_taxonomy", json!({ "text": TAXONOMY }), true),
        ("save_taxonomy", json!({ "text": "categories: [" }), false),
        ("save_taxonomy", json!({ "text": 7 }), false),
        // Most categories have no text, so their precision and recall are null.
        ("evaluate_categories", json!({ "examples": one_example }), true),
        ("evaluate_categories", json!({ "examples": wrong }), true),
        ("evaluate_categories", json!({ "examples": [{ "text": "a", "category": "nowhere" }] }), false),
        ("chat_completion", json!({ "prompt": "Say hello." }), true),
        ("chat_completion", json!({ "prompt": "Why?", "model": "mock-reasoner" }), true),
        ("chat_completion", json!({ "prompt": "Why?", "model": "mock-error-model-not-found" }), false),
        ("explain_route", json!({ "prompt": "What is 2 + 2?" }), true),
        ("explain_route", json!({ "prompt": "What is 2 + 2?", "model": "nobody/serves-it" }), true),
        ("explain_route", json!({ "prompt": "" }), false),
        ("list_models", json!({}), true),
        ("list_providers", json!({}), true),
        ("knowledge-add", json!({ "file_path": more }), true),
        ("knowledge-add", json!({ "file_path": more, "async": false }), true),
        ("knowledge-add", json!({ "file_path": "/nowhere/a.txt" }), false),
        ("knowledge-import", json!({ "paths": [folder] }), true),
        ("knowledge-import", json!({ "paths": [folder], "async": false }), true),
        ("knowledge-import", json!({ "paths": 7 }), false),
        ("knowledge-search", json!({ "query": "which birds remember faces" }), true),
        ("knowledge-search", json!({ "query": "faces", "filters": { "format": "pdf" } }), true),
        ("knowledge-search", json!({ "query": "" }), false),
        ("knowledge-get", json!({ "document_id": document, "chunks": true }), true),
        ("knowledge-get", json!({ "document_id": document, "max_characters": 10 }), false),
        ("knowledge-get", json!({ "document_id": unknown }), false),
        ("knowledge-ask", json!({ "question": "which birds remember faces" }), true),
        ("knowledge-ask", json!({ "question": " " }), false),
        ("knowledge-show", json!({}), true),
        ("knowledge-show", json!({ "limit": 0 }), false),
        ("knowledge-status", json!({}), true),
        ("knowledge-status", json!({ "knowledge_base": "never_used" }), true),
        ("knowledge-status", json!({ "knowledge_base": "not a name!" }), false),
        ("knowledge-tasks", json!({}), true),
        ("knowledge-tasks", json!({ "limit": 0 }), false),
        ("knowledge-task-status", json!({ "task_id": task }), true),
        ("knowledge-task-status", json!({ "task_id": failed }), false),
        ("knowledge-task-status", json!({ "task_id": unknown }), false),
        ("knowledge-remove", json!({ "document_id": other, "confirm": true }), true),
        ("knowledge-remove", json!({ "document_id": document }), false),
        ("knowledge-clear", json!({}), false),
        ("knowledge-clear", json!({ "confirm": true, "confirmation_phrase": "DELETE ALL" }), true),
        // An empty base.
        ("knowledge-show", json!({}), true),
        ("knowledge-status", json!({}), true),
        ("knowledge-search", json!({ "query": "anything" }), false),
    ]
}

/// The declared schemas by tool. Tools without one have `None`.
fn schemas(corbie: &mut KnowledgeServer) -> BTreeMap<String, Option<jsonschema::Validator>> {
    let listed = corbie.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let compile = |tool: &Value| {
        let schema = tool.get("outputSchema").map(|schema| jsonschema::validator_for(schema).expect("a schema"));
        (tool["name"].as_str().expect("a name").to_owned(), schema)
    };
    tools.iter().map(compile).collect()
}

#[track_caller]
fn check(schema: Option<&jsonschema::Validator>, (tool, arguments, succeeds): &Case, reply: &Value) {
    // A failure of a provider is a JSON-RPC error.
    let Some(result) = reply.get("result") else {
        assert!(!succeeds && reply.get("error").is_some(), "{tool} {arguments}: {reply}");
        return;
    };
    assert_eq!(result["isError"].as_bool(), Some(!succeeds), "{tool} {arguments}: {result}");
    let Some(structured) = result.get("structuredContent") else {
        assert!(!succeeds || schema.is_none(), "{tool} {arguments} promises a structured result: {result}");
        return;
    };
    assert_eq!(*structured, tool_json(result), "{tool} {arguments}");
    if let Some(schema) = schema {
        let errors: Vec<String> =
            schema.iter_errors(structured).map(|error| format!("{}: {error}", error.instance_path())).collect();
        assert!(errors.is_empty(), "{tool} {arguments}: {errors:?} in {structured}");
    }
}

#[test]
fn m05_every_result_validates_against_the_declared_output_schema() {
    let folder = tempfile::tempdir().unwrap();
    let taxonomy = folder.path().join("taxonomy.yaml");
    std::fs::write(&taxonomy, TAXONOMY).unwrap();
    let setup = server_command(&[])
        .variable("CORBIE_PROVIDERS__MOCK__TYPE", "mock")
        .variable("CORBIE_CLASSIFICATION__TAXONOMY", taxonomy.display());
    let mut corbie = KnowledgeServer::from_command(setup);
    corbie.transport = CallTransport::Http;
    let schemas = schemas(&mut corbie);
    let cases = cases(&mut corbie);
    let called: BTreeSet<&str> = cases.iter().filter(|case| case.2).map(|case| case.0).collect();
    assert_eq!(called, schemas.keys().map(String::as_str).collect(), "every tool is called");
    for case in &cases {
        let (tool, arguments, _) = case;
        let schema = schemas[*tool].as_ref();
        let mut params = json!({ "name": tool, "arguments": arguments });
        // Calls with lasting effects are made once.
        if !tool.starts_with("knowledge-remove") && !tool.starts_with("knowledge-clear") {
            let mut of_modern = params.clone();
            of_modern["_meta"] = modern_meta();
            let headers = [
                ("MCP-Protocol-Version", "2026-07-28"),
                ("Mcp-Method", "tools/call"),
                ("Mcp-Name", tool),
                ("Accept", "application/json"),
            ];
            let body = crate::process::request(1, "tools/call", of_modern).to_string();
            check(schema, case, &corbie.client.call("POST", "/mcp", &headers, &body).json());
        }
        check(schema, case, &corbie.request("tools/call", params.take()));
    }
}
