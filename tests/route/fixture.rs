//! In-process program with the settings of a test.

use corbie::app::{self, App};
use corbie::config::{Config, Sources};
use corbie::providers::Chat;
use corbie::providers::chat::{ChatRole, Message};
use corbie::route::RouteRequest;
use corbie_mcp::{Error, TrustLevel};
use serde_json::{Value, json};

/// Three categories with `certain` words, with models that a test may serve.
pub(crate) const TAXONOMY: &str = r"
routing: {}
model: plain-model
categories:
  - name: billing
    description: Money that was paid or is owed
    system_prompt: You know all about bills.
    model: billing-model
    use_reasoning: true
    certain: ['^INV-\d+']
    words: [refund, invoice]
    examples: [please send me the invoice for march, how do i get my money back, my card was declined yesterday]
  - name: delivery
    system_prompt: You know all about parcels.
    model: delivery-model
    use_reasoning: false
    certain: ['^PARCEL-\d+']
    words: [parcel, courier]
    examples: [where is my parcel right now, the courier never rang the bell, my package arrived broken]
  - name: general
    system_prompt: You are friendly.
    model: general-model
    examples: [hello there, thank you so much, who am i talking to]
";

/// Settings as in a configuration file. Local server detection is off unless a test enables it.
pub(crate) fn settings(mut settings: Value) -> Value {
    if settings["providers"]["detect_ports"].is_null() {
        settings["providers"]["detect_ports"] = json!([]);
    }
    settings
}

pub(crate) fn config(values: Value) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("corbie.json");
    std::fs::write(&file, settings(values).to_string()).unwrap();
    Config::load(Sources { file: Some(file), ..Sources::default() }).unwrap_or_else(|error| panic!("{error}")).config
}

pub(crate) fn app(values: Value) -> App {
    app::build(&config(values)).unwrap()
}

/// An app that classifies prompts by [`TAXONOMY`].
pub(crate) fn app_with_categories(values: Value) -> App {
    app_with_taxonomy(values, TAXONOMY)
}

pub(crate) fn app_with_taxonomy(mut values: Value, taxonomy: &str) -> App {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("taxonomy.yaml");
    std::fs::write(&file, taxonomy).unwrap();
    values["classification"] = json!({ "taxonomy": file, "watch": false });
    // All files are read during the build.
    app(values)
}

pub(crate) async fn request(app: &App, method: &str, params: Value) -> Result<Value, Error> {
    app.server.request(TrustLevel::Trusted, method, &params).await
}

pub(crate) async fn complete(app: &App, params: Value) -> Result<Value, Error> {
    request(app, "completion/complete", params).await
}

/// The JSON result of a tool.
pub(crate) async fn call(app: &App, tool: &str, arguments: Value) -> Value {
    let called = request(app, "tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap();
    serde_json::from_str(called["content"][0]["text"].as_str().unwrap()).unwrap_or_else(|_| panic!("{called}"))
}

/// The newest decision of the resource.
pub(crate) async fn last_decision(app: &App) -> Value {
    let read = request(app, "resources/read", json!({ "uri": "corbie://decisions" })).await.unwrap();
    let told: Value = serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap();
    told["decisions"][0].clone()
}

pub(crate) fn ask_request(model: Option<&str>, prompt: &str) -> RouteRequest {
    let chat = Chat { messages: vec![Message::text(ChatRole::User, prompt)], ..Chat::default() };
    RouteRequest { request: chat.into(), model: model.map(str::to_owned), ..RouteRequest::default() }
}
