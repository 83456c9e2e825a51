//! The knowledge base in `GET /health`.

use serde_json::{Value, json};

use crate::knowledge::KnowledgeFixture;
use crate::process::{TestProcess, call, corbie, wait_for};

fn health(server: &mut TestProcess) -> Value {
    let reply = server.client().get("/health");
    assert_eq!(reply.status, 200, "t41");
    serde_json::from_str(&reply.body).unwrap()
}

#[test]
fn t40_the_page_tells_how_many_documents_there_are_and_how_they_are_doing() {
    let place = KnowledgeFixture::with_documents();
    let mut server = place.with(corbie("serve --port 0")).start();
    // An existing knowledge base is opened soon after startup.
    let known = wait_for("the knowledge base to be open", || {
        let known = health(&mut server)["knowledge"].clone();
        known["documents"].is_u64().then_some(known)
    });
    assert_eq!(known, json!({ "status": "healthy", "documents": 2 }));
    drop(server);

    let mut server = place.with(corbie("serve --port 0")).variable("CORBIE_KNOWLEDGE__ENABLED", "false").start();
    assert_eq!(health(&mut server).get("knowledge"), None, "there is none");
}

#[test]
fn t41_a_knowledge_base_that_cannot_be_opened_is_degraded_with_the_reason() {
    let place = KnowledgeFixture::new();
    // A file blocks the path of the folder.
    std::fs::write(place.storage(), "").unwrap();
    let mut server = place.with(corbie("serve --port 0")).start();
    let before = health(&mut server);
    assert_eq!(before["knowledge"], json!({ "status": "healthy", "documents": null }), "nobody has asked for it");
    let status = server.client().post("/mcp", &call(1, "knowledge-status", json!({})));
    assert_eq!(status.status, 200, "{status:?}");
    let after = health(&mut server);
    let (known, whole) = (&after["knowledge"], &after["status"]);
    assert_eq!((&known["status"], whole), (&json!("degraded"), &json!("degraded")), "{after}");
    assert_eq!(known["reason"], after["impaired"]["knowledge"], "{after}");
    assert!(known["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{after}");
}
