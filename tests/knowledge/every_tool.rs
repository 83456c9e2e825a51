//! Properties of all tools: missing and mistyped arguments are named, and no call is slow.

use serde_json::{Map, Value, json};

use crate::fixture::{CROWS, KnowledgeServer, each_transport};

/// The tools as listed to clients.
fn tools(corbie: &mut KnowledgeServer) -> Vec<Value> {
    let mut listed = corbie.request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array_mut().unwrap_or_else(|| panic!("no tools")).drain(..);
    let tools: Vec<Value> = tools.filter(|tool| tool["name"].as_str().unwrap().starts_with("knowledge-")).collect();
    assert_eq!(tools.len(), 11, "{tools:?}");
    tools
}

/// A valid and an invalid value for a schema type.
fn sample(schema: &Value) -> (Value, Value) {
    match schema["type"].as_str().unwrap() {
        "string" => (json!("00000000-0000-4000-8000-000000000000"), json!(7)),
        "array" => (json!(["/nowhere/a.txt"]), json!(7)),
        "object" => (json!({}), json!("text")),
        "boolean" => (json!(false), json!("text")),
        _ => (json!(1), json!("text")),
    }
}

#[test]
fn v01_every_argument_that_is_missing_or_of_another_type_is_named() {
    each_transport(|corbie| {
        for tool in tools(corbie) {
            let name = tool["name"].as_str().unwrap();
            let (properties, schema) = (tool["inputSchema"]["properties"].as_object().unwrap(), &tool["outputSchema"]);
            assert_eq!(schema["type"], "object", "{name} says what it answers");
            let required: Vec<&str> = match tool["inputSchema"]["required"].as_array() {
                Some(names) => names.iter().filter_map(Value::as_str).collect(),
                None => Vec::new(),
            };
            let given: Map<String, Value> =
                required.iter().map(|name| ((*name).to_owned(), sample(&properties[*name]).0)).collect();
            if !required.is_empty() {
                // A clear without arguments requires confirmation (K-92).
                let clears = name == "knowledge-clear";
                let error = if clears { "confirmation_required" } else { "missing_required_parameter" };
                corbie.expect_error(name, json!({}), error);
            }
            for (parameter, schema) in properties {
                let mut arguments = given.clone();
                arguments.insert(parameter.clone(), sample(schema).1);
                corbie.expect_invalid(name, Value::Object(arguments), parameter);
            }
        }
    });
}

/// Measured in CPU time, as tests share the machine: on an idle machine a call takes no longer than that.
#[test]
fn n10_no_call_about_a_hundred_documents_takes_half_a_second() {
    let mut corbie = KnowledgeServer::start();
    let documents: Vec<Value> = (0..100)
        .map(|number| corbie.add(&format!("{number}.txt"), format!("{CROWS} This is note {number} about them.")))
        .collect();
    let one = &documents[50]["document_id"];
    for (tool, arguments) in [
        ("knowledge-search", json!({ "query": "who remembers unkind people" })),
        ("knowledge-show", json!({ "limit": 100 })),
        ("knowledge-get", json!({ "document_id": one })),
        ("knowledge-status", json!({})),
        ("knowledge-tasks", json!({ "limit": 200 })),
        ("knowledge-remove", json!({ "document_id": one, "confirm": true })),
    ] {
        let before = corbie.running.cpu_seconds();
        let said = corbie.call(tool, arguments);
        let took = corbie.running.cpu_seconds() - before;
        assert!(said["success"] == true && took < 0.5, "{tool} took {took} s: {said}");
    }
}
