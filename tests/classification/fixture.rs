//! In-process server and a small taxonomy.

use std::path::Path;

use corbie::app::{self, App};
use corbie::config::classification::ClassificationMethod;
use corbie::config::{Config, Sources};
use corbie_mcp::{Error, TrustLevel};
use serde_json::{Value, json};

/// Three categories whose examples share hardly a word.
pub(crate) const SMALL_TAXONOMY: &str = r"
model: acme/plain
categories:
  - name: billing
    description: Money that was paid or is owed
    system_prompt: You know all about bills.
    model: acme/accountant
    words: [refund, invoice]
    certain: ['^INV-\d+$']
    examples:
      - I was charged twice for my subscription
      - please send me the invoice for march
      - how do i get my money back
      - my card was declined yesterday
      - where can i see what i owe
      - cancel the payment i made this morning
      - the amount on my bill is wrong
      - do you accept bank transfers
  - name: delivery
    words: [parcel, courier]
    examples:
      - where is my parcel right now
      - the courier never rang the bell
      - my package arrived broken
      - can you deliver on saturday
      - tracking has not moved for a week
      - i want it sent to another address
      - the box was left in the rain
      - how long does shipping to norway take
  - name: general
    examples:
      - hello there
      - thank you so much
      - who am i talking to
      - that will be all
      - are you a robot
      - good morning everyone
      - i have a question
      - bye for now
";

pub(crate) fn settings() -> Config {
    Config::load(Sources::default()).unwrap().config
}

pub(crate) fn with_taxonomy(path: &Path, method: ClassificationMethod) -> Config {
    let mut config = settings();
    config.classification.taxonomy = Some(path.to_owned());
    config.classification.method = method;
    config
}

pub(crate) fn app() -> App {
    app::build(&settings()).unwrap()
}

pub(crate) async fn call(app: &App, tool: &str, arguments: Value) -> Result<Value, Error> {
    app.server.request(TrustLevel::Trusted, "tools/call", &json!({ "name": tool, "arguments": arguments })).await
}

/// The JSON in the first text of a result.
#[track_caller]
pub(crate) fn tool_json(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

pub(crate) async fn classify(app: &App, text: &str) -> Value {
    tool_json(&call(app, "classify_text", json!({ "text": text, "with_probabilities": true })).await.unwrap())
}

pub(crate) async fn categories(app: &App) -> Vec<String> {
    let listed = tool_json(&call(app, "list_categories", json!({})).await.unwrap());
    serde_json::from_value(listed["categories"].clone()).unwrap()
}
