//! `knowledge-show`: paginated list of documents.

use serde_json::{Value, json};

use crate::fixture::{CROWS, KnowledgeServer, each_transport, is_timestamp, is_uuid};
use crate::sample_files;

const SHOW: &str = "knowledge-show";

fn file_names(shown: &Value) -> Vec<&str> {
    shown["documents"].as_array().unwrap().iter().map(|document| document["filename"].as_str().unwrap()).collect()
}

#[test]
fn k05_k80_k81_what_is_out_of_range_is_named() {
    each_transport(|corbie| {
        for (name, wrong) in [
            ("limit", json!(0)),
            ("limit", json!(1001)),
            ("limit", json!("10")),
            ("limit", json!(1.5)),
            ("offset", json!(-1)),
            ("offset", json!("0")),
            ("sort_by", json!("author")),
            ("sort_by", json!("Filename")),
            ("sort_by", json!(1)),
            ("sort_order", json!("up")),
            ("sort_order", json!("DESC")),
            ("filter", json!("")),
            ("filter", json!("x".repeat(201))),
            ("filter", json!(["x"])),
            ("format", json!("exe")),
            ("format", json!("")),
            ("status", json!("done")),
        ] {
            corbie.expect_invalid(SHOW, json!({ name: wrong }), name);
        }
        for right in [json!({ "limit": 1 }), json!({ "limit": 1000.0 }), json!({ "offset": 1_000_000 })] {
            assert_eq!(corbie.call(SHOW, right)["success"], true);
        }
    });
}

#[test]
fn k85_an_empty_base_is_no_failure() {
    each_transport(|corbie| {
        let shown = corbie.show();
        assert_eq!(
            (&shown["success"], &shown["documents"], &shown["total_count"], &shown["message"]),
            (&json!(true), &json!([]), &json!(0), &json!("Knowledge base is empty"))
        );
    });
}

#[test]
fn k82_k83_k84_documents_are_told_as_the_specification_shows() {
    each_transport(|corbie| {
        let added = corbie.add("crow.pdf", sample_files::pdf());
        let example = json!({ "limit": 50, "offset": 0, "sort_by": "date_added", "sort_order": "desc" });
        let shown = corbie.call(SHOW, example);
        assert_eq!(
            (&shown["success"], &shown["total_count"], &shown["limit"], &shown["offset"]),
            (&json!(true), &json!(1), &json!(50), &json!(0))
        );
        assert_eq!(shown.get("message"), None);
        let document = &shown["documents"][0];
        assert_eq!(document["id"], added["document_id"]);
        assert!(is_uuid(&document["id"]) && is_timestamp(&document["date_added"]), "{document}");
        assert_eq!((&document["filename"], &document["format"]), (&json!("crow.pdf"), &json!("pdf")));
        assert_eq!((&document["size_bytes"], &document["chunk_count"]), (&json!(sample_files::pdf().len()), &json!(1)));
        assert_eq!(document["page_count"], 1);
        assert_eq!(
            (&document["processing_status"], &document["processing_method"]),
            (&json!("completed"), &json!("text_extraction"))
        );
    });
}

#[test]
fn k80_k81_k82_pages_and_orders() {
    each_transport(|corbie| {
        for (name, words) in [("b.txt", 3), ("a.txt", 9), ("c.txt", 6)] {
            corbie.add(name, format!("{name} {}", "many words ".repeat(words)));
        }
        for (arguments, expected) in [
            (json!({}), ["c.txt", "a.txt", "b.txt"].as_slice()),
            (json!({ "sort_order": "asc" }), &["b.txt", "a.txt", "c.txt"]),
            (json!({ "sort_by": "filename" }), &["c.txt", "b.txt", "a.txt"]),
            (json!({ "sort_by": "filename", "sort_order": "asc" }), &["a.txt", "b.txt", "c.txt"]),
            (json!({ "sort_by": "size" }), &["a.txt", "c.txt", "b.txt"]),
            (json!({ "sort_by": "size", "sort_order": "asc", "limit": 2 }), &["b.txt", "c.txt"]),
            (json!({ "sort_by": "size", "sort_order": "asc", "limit": 2, "offset": 2 }), &["a.txt"]),
            (json!({ "offset": 3 }), &[]),
        ] {
            let shown = corbie.call(SHOW, arguments.clone());
            assert_eq!(file_names(&shown), expected, "{arguments}");
            assert_eq!(shown["total_count"], 3, "z15: all of them, and not the page");
        }
        let shown = corbie.show();
        assert_eq!((&shown["limit"], &shown["offset"]), (&json!(100), &json!(0)), "the defaults");
    });
}

#[test]
fn k82_a_list_is_narrowed_and_counts_what_is_left() {
    each_transport(|corbie| {
        for name in ["Holidays.txt", "holiday 50%.txt", "expenses.md"] {
            corbie.add(name, format!("{name}: {CROWS}"));
        }
        corbie.add("crow.pdf", sample_files::pdf());
        let broken = corbie.file("broken holiday.docx", &sample_files::docx()[..300]);
        let task = corbie.start_task(&broken);
        corbie.wait_for_task(&task);
        for (arguments, expected, total) in [
            (json!({ "filter": "HOLIDAY" }), ["holiday 50%.txt", "Holidays.txt"].as_slice(), 2),
            (json!({ "filter": "holiday", "limit": 1, "offset": 1 }), &["Holidays.txt"], 2),
            (json!({ "filter": "%" }), &["holiday 50%.txt"], 1),
            (json!({ "filter": "h_l" }), &[], 0),
            (json!({ "format": "PDF" }), &["crow.pdf"], 1),
            (json!({ "format": ".md" }), &["expenses.md"], 1),
            (json!({ "format": "txt", "filter": "days" }), &["Holidays.txt"], 1),
            (json!({ "status": "failed" }), &[], 0),
            (json!({ "status": "completed", "filter": "holiday" }), &["holiday 50%.txt", "Holidays.txt"], 2),
        ] {
            let shown = corbie.call(SHOW, arguments.clone());
            assert_eq!(
                (file_names(&shown).as_slice(), &shown["total_count"]),
                (expected, &json!(total)),
                "{arguments}"
            );
            assert_eq!(shown.get("message").is_some(), total == 0, "{shown}");
        }
        let nothing = corbie.call(SHOW, json!({ "filter": "nobody" }));
        assert!(nothing["message"].as_str().unwrap().contains("filter"), "the base is not empty: {nothing}");
    });
}

#[test]
fn x48_a_failed_add_is_no_document_and_is_listed_among_the_tasks_until_it_succeeds() {
    let mut corbie = KnowledgeServer::start();
    let failed = |corbie: &mut KnowledgeServer| {
        let listed = corbie.call("knowledge-tasks", json!({ "status": "failed" }));
        let names =
            listed["tasks"].as_array().unwrap().iter().map(|task| task["filename"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let broken = &sample_files::docx()[..300];
    for _ in 0..2 {
        let path = corbie.file("broken.docx", broken);
        let task = corbie.start_task(&path);
        assert_eq!(corbie.wait_for_task(&task)["status"], "failed");
    }
    assert_eq!(failed(&mut corbie), ["broken.docx"], "once per file");
    assert_eq!(
        (&corbie.show()["total_count"], &corbie.show()["message"]),
        (&json!(0), &json!("Knowledge base is empty"))
    );
    assert_eq!(corbie.status()["knowledge_base"]["document_count"], 0);
    let refused = corbie.call("knowledge-clear", json!({}));
    assert_eq!(refused["current_document_count"], 0);
    let empty = corbie.expect_error("knowledge-search", json!({ "query": CROWS }), "empty_knowledge_base");
    assert_eq!(empty["document_count"], 0);

    let added = corbie.add("broken.docx", sample_files::docx());
    assert_eq!(failed(&mut corbie), [""; 0]);
    // Its next version cannot be read: the earlier one is still found.
    let path = corbie.file("broken.docx", broken);
    let task = corbie.start_task(&path);
    assert_eq!(corbie.wait_for_task(&task)["status"], "failed");
    let shown = corbie.show();
    let document = &shown["documents"][0];
    assert_eq!((&document["id"], &document["processing_status"]), (&added["document_id"], &json!("failed")), "{shown}");
    assert_eq!(failed(&mut corbie), ["broken.docx"]);
    assert_eq!(corbie.status()["knowledge_base"]["document_count"], 1);
}

#[test]
fn k07_k11_schemas_have_bounds_and_descriptions_begin_as_the_specification_has_them() {
    let mut corbie = KnowledgeServer::start();
    let listed = corbie.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no {name}"));
    for (name, description) in [
        ("knowledge-add", "Add a document or image to the knowledge base for semantic search"),
        ("knowledge-search", "Search the knowledge base using natural language query"),
        ("knowledge-remove", "Remove a specific document from the knowledge base"),
        ("knowledge-show", "List all documents in the knowledge base with metadata"),
        ("knowledge-clear", "Remove all documents from the knowledge base"),
        ("knowledge-status", "Get knowledge base statistics and health status"),
        ("knowledge-task-status", "Get status of an async processing task"),
    ] {
        let told = tool(name)["description"].as_str().unwrap();
        assert!(told.starts_with(description), "k01: {told}");
        assert!(!told.to_lowercase().contains("classif"), "z05: {told}");
    }
    let argument = |name: &str, argument: &str| &tool(name)["inputSchema"]["properties"][argument];
    assert_eq!(argument("knowledge-add", "async")["default"], true);
    assert_eq!(argument("knowledge-add", "force_ocr")["default"], false);
    let query = argument("knowledge-search", "query");
    assert_eq!((&query["minLength"], &query["maxLength"]), (&json!(1), &json!(500)));
    let top = argument("knowledge-search", "top_k");
    assert_eq!((&top["default"], &top["minimum"], &top["maximum"]), (&json!(10), &json!(1), &json!(50)));
    let least = argument("knowledge-search", "min_relevance");
    assert_eq!((&least["default"], &least["minimum"], &least["maximum"]), (&json!(0.0), &json!(0.0), &json!(1.0)));
    let limit = argument(SHOW, "limit");
    assert_eq!((&limit["default"], &limit["minimum"], &limit["maximum"]), (&json!(100), &json!(1), &json!(1000)));
    assert_eq!(argument(SHOW, "sort_by")["enum"], json!(["date_added", "filename", "size"]));
    assert_eq!(argument(SHOW, "sort_order")["default"], "desc");
    let required = |name: &str| &tool(name)["inputSchema"]["required"];
    assert_eq!(required("knowledge-add"), &json!(["file_path"]));
    assert_eq!(required("knowledge-clear"), &json!(["confirm", "confirmation_phrase"]));
    for (name, destroys) in [("knowledge-add", false), ("knowledge-remove", true), ("knowledge-clear", true)] {
        let hints = &tool(name)["annotations"];
        assert_eq!(
            (&hints["readOnlyHint"], &hints["destructiveHint"]),
            (&json!(false), &json!(destroys)),
            "x31 {name}"
        );
    }
    assert_eq!(tool("knowledge-search")["annotations"]["readOnlyHint"], true);
}
