//! Documents and passages as MCP resources, and the prompt that includes them.

use serde_json::{Value, json};

use crate::fixture::{CROWS, CallTransport, KnowledgeServer};

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

#[test]
fn k118_clients_hear_that_documents_came_and_went() {
    let mut corbie = KnowledgeServer::start();
    let opened = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    });
    corbie.request("initialize", opened);
    corbie.running.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let wait = |corbie: &mut KnowledgeServer, what: &str| {
        crate::process::wait_for(what, || {
            corbie.status();
            let is_told = |message: Value| message["method"] == "notifications/resources/list_changed";
            corbie.notifications.drain(..).any(is_told).then_some(())
        });
    };
    let added = corbie.add("crows.txt", CROWS);
    wait(&mut corbie, "word of one that was waited for");
    let path = corbie.file("bees.txt", "Bees gather nectar and make honey.");
    corbie.start_task(&path);
    wait(&mut corbie, "word of one that came later");
    corbie.call("knowledge-remove", json!({ "document_id": added["document_id"], "confirm": true }));
    wait(&mut corbie, "word of one that went");
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
