//! Documents and passages as MCP resources, and the prompt that includes them.

use serde_json::{Value, json};

use crate::fixture::{CROWS, CallTransport, KnowledgeServer};
use crate::process::{modern_meta, request};

fn document_resources(corbie: &mut KnowledgeServer) -> Vec<Value> {
    let answer = corbie.request("resources/list", json!({}));
    let all = answer["result"]["resources"].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
    all.into_iter().filter(|one| one["uri"].as_str().unwrap().starts_with("knowledge://")).collect()
}

#[test]
fn k118_documents_are_listed_and_read() {
    let mut corbie = KnowledgeServer::start();
    for way in [CallTransport::Stdio, CallTransport::Http] {
        corbie.transport = way;
        let added = corbie.add("crows.txt", CROWS);
        let id = added["document_id"].as_str().unwrap();
        let uri = format!("knowledge://documents/{id}");
        let listed = document_resources(&mut corbie);
        assert_eq!(listed.len(), 1, "{listed:?}");
        assert_eq!((&listed[0]["uri"], &listed[0]["name"]), (&json!(uri), &json!("crows.txt")));
        let read = corbie.request("resources/read", json!({ "uri": uri }));
        assert_eq!(read["result"]["contents"][0]["text"], CROWS, "{read}");
        let chunk = corbie.search("clever crows")["results"][0]["chunk_id"].clone();
        let uri = format!("knowledge://chunks/{}", chunk.as_str().unwrap());
        let read = corbie.request("resources/read", json!({ "uri": uri }));
        assert_eq!(read["result"]["contents"][0]["text"], CROWS, "{read}");
        corbie.call("knowledge-remove", json!({ "document_id": id, "confirm": true }));
        let gone = corbie.request("resources/read", json!({ "uri": format!("knowledge://documents/{id}") }));
        assert!(gone.get("error").is_some(), "{gone}");
        assert_eq!(self::document_resources(&mut corbie).len(), 0);
    }
}

#[test]
fn k118_ids_that_are_none_are_told() {
    let mut corbie = KnowledgeServer::start();
    for uri in [
        "knowledge://documents/00000000-0000-4000-8000-000000000000",
        "knowledge://documents/nobody",
        "knowledge://chunks/%2e%2e",
        "knowledge://documents/",
    ] {
        let read = corbie.request("resources/read", json!({ "uri": uri }));
        let code = read["error"]["code"].as_i64();
        assert!(code == Some(-32002) || code == Some(-32602), "{uri}: {read}");
    }
}

/// Waits for a notification of this method; returns its params.
#[track_caller]
fn wait_for_notification(corbie: &mut KnowledgeServer, method: &str) -> Value {
    crate::process::wait_for(method, || {
        corbie.status();
        let found = corbie.notifications.iter().position(|message| message["method"] == method)?;
        Some(corbie.notifications.remove(found)["params"].take())
    })
}

#[test]
fn k118_x49_modern_clients_hear_of_documents_that_came_changed_and_went() {
    const LIST_CHANGED: &str = "notifications/resources/list_changed";
    const UPDATED: &str = "notifications/resources/updated";
    let mut corbie = KnowledgeServer::start();
    let added = corbie.add("crows.txt", CROWS);
    let uri = format!("knowledge://documents/{}", added["document_id"].as_str().unwrap());
    let filter = json!({ "resourcesListChanged": true, "resourceSubscriptions": [uri] });
    let params = json!({ "_meta": modern_meta(), "notifications": filter });
    corbie.running.send(&request("subscription", "subscriptions/listen", params));
    wait_for_notification(&mut corbie, "notifications/subscriptions/acknowledged");

    let path = corbie.file("bees.txt", "Bees gather nectar and make honey.");
    corbie.start_task(&path);
    wait_for_notification(&mut corbie, LIST_CHANGED);
    corbie.add("crows.txt", format!("{CROWS} They also remember kind people."));
    assert_eq!(wait_for_notification(&mut corbie, UPDATED)["uri"], uri);
    wait_for_notification(&mut corbie, LIST_CHANGED);
    corbie.call("knowledge-remove", json!({ "document_id": added["document_id"], "confirm": true }));
    assert_eq!(wait_for_notification(&mut corbie, UPDATED)["uri"], uri);
    wait_for_notification(&mut corbie, LIST_CHANGED);
}

/// `resources.subscribe` and `listChanged` are false in `initialize`.
#[test]
fn m45_x49_legacy_clients_get_what_initialize_declared() {
    let mut corbie = KnowledgeServer::start();
    let opened = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    let told = corbie.request("initialize", opened);
    assert_eq!(told["result"]["capabilities"]["resources"], json!({ "subscribe": false, "listChanged": false }));
    let added = corbie.add("crows.txt", CROWS);
    let uri = format!("knowledge://documents/{}", added["document_id"].as_str().unwrap());
    let refused = corbie.request("resources/subscribe", json!({ "uri": uri }));
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    corbie.call("knowledge-remove", json!({ "document_id": added["document_id"], "confirm": true }));
    corbie.status();
    let of_resources = |message: &Value| message["method"].as_str().is_some_and(|method| method.contains("resources"));
    assert!(!corbie.notifications.iter().any(of_resources), "{:?}", corbie.notifications);
}

#[test]
fn the_prompt_brings_the_passages_for_a_question() {
    let mut corbie = KnowledgeServer::start();
    let asked = json!({ "name": "answer_from_documents", "arguments": { "question": "which birds remember faces" } });
    let empty = corbie.request("prompts/get", asked.clone());
    assert!(empty["result"]["messages"][0]["content"]["text"].as_str().is_some(), "{empty}");
    corbie.add("crows.txt", CROWS);
    let prompt = corbie.request("prompts/get", asked);
    let text = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap_or_else(|| panic!("{prompt}"));
    assert!(text.contains("number=\"1\" source=\"crows.txt\"") && text.contains(CROWS), "{text}");
    assert!(text.ends_with("Question: which birds remember faces"), "{text}");
}
