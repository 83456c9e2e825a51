//! The knowledge base in `GET /health`.

use std::path::Path;

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
fn t41_a16_a_knowledge_base_that_cannot_be_created_is_degraded_with_the_reason_from_the_start() {
    let place = KnowledgeFixture::new();
    // A file blocks the path of the folder.
    std::fs::write(place.storage(), "").unwrap();
    let mut server = place.with(corbie("serve --port 0")).start();
    // No tool was called: the check at the start found it.
    let after = health(&mut server);
    let (known, whole) = (&after["knowledge"], &after["status"]);
    assert_eq!((&known["status"], whole), (&json!("degraded"), &json!("degraded")), "{after}");
    assert_eq!(known["reason"], after["impaired"]["knowledge"], "{after}");
    assert!(known["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{after}");
    let ready = |server: &mut TestProcess, path| server.client().get(path).status;
    assert_eq!((ready(&mut server, "/ready"), ready(&mut server, "/ready?for=knowledge")), (200, 503));
    let classified = call(1, "classify_text", json!({ "text": "What is 2 + 2?" }));
    assert_eq!(server.client().post("/mcp", &classified).json()["result"]["isError"], false, "a16");

    std::fs::remove_file(place.storage()).unwrap();
    wait_for("the folder to be checked again", || (health(&mut server)["status"] == "ok").then_some(()));
    assert_eq!(ready(&mut server, "/ready?for=knowledge"), 200);
    assert!(!Path::new(&place.storage()).exists(), "the first use creates it");
}

#[test]
fn t41_a16_a_damaged_knowledge_base_is_degraded_from_the_start() {
    let place = KnowledgeFixture::new();
    std::fs::create_dir(place.storage()).unwrap();
    std::fs::write(Path::new(&place.storage()).join("knowledge.db"), "no database ".repeat(1000)).unwrap();
    let mut server = place.with(corbie("serve --port 0")).start();
    assert_eq!(health(&mut server)["knowledge"]["status"], "degraded", "also while it is being opened");
    let known = wait_for("the end of the attempt", || {
        let known = health(&mut server)["knowledge"].take();
        (known["reason"] != "the knowledge base is being opened").then_some(known)
    });
    assert_eq!(known["status"], "degraded", "{known}");
    assert_eq!(server.client().get("/ready?for=knowledge").status, 503);
}
