use serde_json::json;

use crate::fixture::{app, call, tool_json};

#[tokio::test]
async fn c01_list_categories_takes_nothing_and_ignores_what_it_is_given() {
    let app = app();
    let plain = call(&app, "list_categories", json!({})).await.unwrap();
    assert_eq!(call(&app, "list_categories", json!({ "surplus": [1] })).await.unwrap(), plain);
    assert_eq!(plain["isError"], false);
}

#[tokio::test]
async fn c02_c03_c04_c08_every_category_has_a_prompt_and_a_description() {
    let app = app();
    let listed = tool_json(&call(&app, "list_categories", json!({})).await.unwrap());
    let names: Vec<&str> = listed["categories"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(names, ["math", "science", "technology", "history", "general"]);
    for map in ["category_system_prompts", "category_descriptions"] {
        let map = listed[map].as_object().unwrap();
        assert_eq!(map.keys().collect::<Vec<_>>(), names);
        assert!(map.values().all(|text| !text.as_str().unwrap().is_empty()));
    }
}

#[tokio::test]
async fn c09_the_list_stays_the_same_byte_for_byte() {
    let (app, other) = (app(), app());
    let listed = call(&app, "list_categories", json!({})).await.unwrap().to_string();
    call(&app, "classify_text", json!({ "text": "hello" })).await.unwrap();
    assert_eq!(call(&app, "list_categories", json!({})).await.unwrap().to_string(), listed);
    assert_eq!(call(&other, "list_categories", json!({})).await.unwrap().to_string(), listed);
}

#[tokio::test]
async fn x28_the_text_is_json_in_one_line() {
    let listed = call(&app(), "list_categories", json!({})).await.unwrap();
    assert!(!listed["content"][0]["text"].as_str().unwrap().contains('\n'));
}

#[tokio::test]
async fn z05_only_one_tool_speaks_of_classifying() {
    let app = app();
    let tools = app.server.registry();
    for tool in tools.iter() {
        let says = tool.listing().to_string().to_lowercase().contains("classif");
        assert_eq!(says, tool.name() == "classify_text", "{}", tool.listing());
    }
}

#[tokio::test]
async fn the_categories_are_a_resource_too() {
    let app = app();
    let params = json!({ "uri": "corbie://categories" });
    let read = app.server.request(corbie_mcp::TrustLevel::Trusted, "resources/read", &params).await.unwrap();
    let listed = call(&app, "list_categories", json!({})).await.unwrap();
    assert_eq!(read["contents"][0]["text"], listed["content"][0]["text"]);
}
