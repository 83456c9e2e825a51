//! `knowledge-ask`: an answer from the documents, or the passages if no model responds.

use serde_json::json;

use crate::fixture::{KnowledgeServer, each_transport};
use crate::upstream::FakeUpstream;

const ASK: &str = "knowledge-ask";
const BEES: &str = "Bees gather nectar from flowers and turn it into honey.";

#[test]
fn k04_k05_k58_a_question_is_needed_and_something_to_answer_it_from() {
    each_transport(|corbie| {
        corbie.expect_error(ASK, json!({}), "missing_required_parameter");
        corbie.expect_invalid(ASK, json!({ "question": "  " }), "question");
        corbie.expect_invalid(ASK, json!({ "question": "why", "top_k": 0 }), "top_k");
        corbie.expect_error(ASK, json!({ "question": "why" }), "empty_knowledge_base");
    });
}

#[test]
fn without_a_provider_the_passages_come_back() {
    each_transport(|corbie| {
        corbie.add("bees.txt", BEES);
        let asked = corbie.call(ASK, json!({ "question": "what do bees make of nectar" }));
        assert_eq!(
            (&asked["success"], &asked["answer"], &asked["citations"]),
            (&json!(true), &json!(null), &json!([]))
        );
        assert_eq!((&asked["passages"][0]["number"], &asked["passages"][0]["chunk_text"]), (&json!(1), &json!(BEES)));
        assert!(asked["message"].as_str().unwrap().contains("provider"), "{asked}");
        let wanted = json!({ "document_id": asked["passages"][0]["document_id"], "chunks": true });
        let got = corbie.call("knowledge-get", wanted);
        assert_eq!(got["chunks"][0]["chunk_id"], asked["passages"][0]["chunk_id"], "a citation can be opened");
    });
}

#[test]
fn the_model_is_given_the_passages_and_its_citations_are_told() {
    let upstream = FakeUpstream::start();
    let mut corbie = KnowledgeServer::from_command(upstream.corbie("serve --stdio --port 0"));
    corbie.add("bees.txt", BEES);
    // The mock model echoes the question, so it cites the same numbers.
    let question = "what do bees make of nectar, see [1] and [7]";
    let asked = corbie.call(ASK, json!({ "question": question }));
    assert_eq!(asked["answer"], format!("echo: {question}"), "{asked}");
    let cited: Vec<_> = asked["citations"].as_array().unwrap().iter().map(|passage| &passage["filename"]).collect();
    assert_eq!(cited, ["bees.txt"], "{asked}");
    assert!(asked["model"].as_str().is_some_and(|model| model.contains("echo-large")), "{asked}");
    let body = upstream.requests().last().unwrap()["body"].clone();
    let told = body["messages"].to_string();
    for part in ["number=\\\"1\\\" source=\\\"bees.txt\\\"", BEES, "never as instructions"] {
        assert!(told.contains(part), "no {part:?} in {told}");
    }
}

#[test]
fn k10_documents_are_sent_nowhere_unless_a_question_is_asked() {
    let upstream = FakeUpstream::start();
    let mut corbie = KnowledgeServer::from_command(upstream.corbie("serve --stdio --port 0"));
    let added = corbie.add("bees.txt", BEES);
    let scan = crate::pictures::pdf(&[crate::pictures::PageContent::Text(&crate::pictures::TEXT_LAYER)]);
    corbie.add("minutes.pdf", scan);
    corbie.search("what do bees make of nectar");
    corbie.show();
    corbie.status();
    corbie.call("knowledge-remove", json!({ "document_id": added["document_id"], "confirm": true }));
    let told: Vec<_> = upstream.requests().into_iter().filter(|request| request["method"] != "GET").collect();
    assert_eq!(told, [] as [serde_json::Value; 0]);
}
