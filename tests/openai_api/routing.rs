//! `auto` routes, a named model is kept, and headers report the decision.

use serde_json::{Value, json};

use crate::fixture::{
    ApiServer, chat_request, provider_settings, server_command, settings_for_each_format, with_members,
};
use crate::process::TestCommand;
use crate::upstream::{FORMATS, FakeUpstream, ScriptedServer, listing, write_json};

/// One category per wire format, each with `certain` rules.
const TAXONOMY: &str = r"
routing: {}
model: openai/echo-small
categories:
  - name: billing
    system_prompt: You know all about bills.
    model: openai/echo-large
    use_reasoning: true
    certain: ['^INV-\d+']
    examples: [please send me the invoice for march, how do i get my money back]
  - name: delivery
    system_prompt: You know all about parcels.
    model: anthropic/echo-large
    use_reasoning: false
    certain: ['^PARCEL-\d+']
    examples: [where is my parcel right now, the courier never rang the bell]
  - name: garden
    system_prompt: You know all about plants.
    model: google/echo-large
    use_reasoning: false
    certain: ['^PLANT-\d+']
    examples: [my roses do not bloom, how often do i water a cactus]
";

const CATEGORIES: [(&str, &str, &str); 3] = [
    ("openai", "INV-12 is wrong", "billing"),
    ("anthropic", "PARCEL-12 is late", "delivery"),
    ("google", "PLANT-12 is dry", "garden"),
];

pub(crate) const PROMPT_PREFIX: &str = "You know all about";

fn server_with_categories(upstream: &FakeUpstream) -> ApiServer {
    ApiServer::from_command(command_with_categories("serve --port 0", settings_for_each_format(upstream)))
}

/// The program with the categories above.
pub(crate) fn command_with_categories(arguments: &str, mut settings: Value) -> TestCommand {
    settings["classification"] = json!({ "taxonomy": "taxonomy.yaml", "watch": false });
    let setup = server_command(arguments, &settings).file("taxonomy.yaml", TAXONOMY);
    let taxonomy = setup.folder().join("taxonomy.yaml");
    setup.variable("CORBIE_CLASSIFICATION__TAXONOMY", taxonomy.display())
}

#[test]
fn auto_asks_the_model_of_the_category_with_the_prompt_of_the_category() {
    let upstream = FakeUpstream::start();
    let face = server_with_categories(&upstream);
    for (provider, prompt, category) in CATEGORIES {
        let auto = chat_request("auto", prompt);
        let mut unnamed = auto.clone();
        unnamed.as_object_mut().unwrap().shift_remove("model");
        let null = with_members(auto.clone(), json!({ "model": null }));
        let whole = [auto.clone(), unnamed, null].map(|asked| face.chat(&asked));
        for reply in whole.iter().chain([&face.stream(&auto).head]) {
            assert_eq!(reply.status, 200, "{reply:?}");
            assert_eq!(reply.header("x-corbie-category"), Some(category));
            assert_eq!(reply.header("x-corbie-provider"), Some(provider));
            assert_eq!(reply.header("x-corbie-model"), Some("echo-large"));
            assert_eq!(reply.header("x-corbie-reason"), Some("category"));
            assert_eq!(reply.header("x-corbie-attempts"), Some("1"));
            let reasons = if category == "billing" { "true" } else { "false" };
            assert_eq!(reply.header("x-corbie-reasoning"), Some(reasons), "{category}");
        }
        assert_eq!(whole[0].json()["model"], "echo-large", "the model that answered is told");
    }
    let requests = upstream.requests_for("echo-large");
    assert_eq!(requests.len(), 12);
    for request in requests {
        assert!(request["body"].to_string().contains(PROMPT_PREFIX), "{request}");
    }
}

#[test]
fn a_model_that_the_caller_names_is_asked_without_classifying() {
    let upstream = FakeUpstream::start();
    let face = server_with_categories(&upstream);
    for ((_, prompt, _), format) in CATEGORIES.iter().zip(FORMATS.iter().rev()) {
        let asked = chat_request(&format!("{format}/echo-small"), prompt);
        for reply in [face.chat(&asked), face.stream(&asked).head] {
            assert_eq!(reply.status, 200, "{reply:?}");
            assert_eq!(reply.header("x-corbie-category"), None);
            assert_eq!(reply.header("x-corbie-provider"), Some(*format));
            assert_eq!(reply.header("x-corbie-reason"), Some("requested"));
        }
    }
    let requests = upstream.requests_for("echo-small");
    assert_eq!(requests.len(), 6);
    assert!(requests.iter().all(|request| !request["body"].to_string().contains(PROMPT_PREFIX)), "{requests:?}");
}

#[test]
fn the_prompt_of_the_category_goes_before_the_callers_own() {
    let upstream = FakeUpstream::start();
    let face = server_with_categories(&upstream);
    let messages = json!([
        { "role": "system", "content": "Be brief.", "name": "host" },
        { "role": "user", "content": "INV-12 is wrong" },
    ]);
    face.expect_answer(&json!({ "model": "auto", "messages": messages }));
    let body = &upstream.requests_for("echo-large")[0]["body"];
    let text = body["messages"].to_string();
    let [category, own] = ["You know all about bills.", "Be brief."].map(|part| text.find(part));
    assert!(category.is_some() && category < own, "{text}");
    assert_eq!(body["messages"].as_array().unwrap().last(), messages.as_array().unwrap().last());
}

#[test]
fn every_decision_has_a_number_of_its_own_that_the_records_know() {
    let upstream = FakeUpstream::start();
    let face = ApiServer::with_upstream(&upstream);
    let decisions: Vec<String> = (0..3)
        .map(|_| face.chat(&chat_request("openai/echo-small", "hello")).header("x-corbie-decision").unwrap().to_owned())
        .collect();
    let known: Vec<String> = face.decisions().iter().map(|decision| decision["id"].to_string()).collect();
    assert_eq!(known, decisions.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn a_name_that_no_header_can_carry_does_not_spoil_the_answer() {
    let strange = "modèle\n";
    let house = ScriptedServer::start(move |request, connection| {
        let body = match request.head.starts_with("GET") {
            true => listing(&[strange]),
            false => json!({ "choices": [{ "message": { "content": "here" } }] }),
        };
        write_json(connection, &body);
    });
    let face = ApiServer::start(&json!({ "providers": { "house": provider_settings("openai-compatible", &house) } }));
    let reply = face.chat(&chat_request(&format!("house/{strange}"), "hello"));
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!((reply.header("x-corbie-model"), reply.header("x-corbie-provider")), (None, Some("house")));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "here");
}
