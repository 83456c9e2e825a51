//! `auto` routes, a named model is kept, and headers report the decision.

use serde_json::{Value, json};

use crate::fixture::{Face, peer, question, setup, three, with};
use crate::process::Setup;
use crate::upstream::{FORMATS, Peer, Upstream, listing, write_json};

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

pub(crate) const PROMPTS: &str = "You know all about";

fn routed(upstream: &Upstream) -> Face {
    Face::of(with_categories("serve --port 0", three(upstream)))
}

/// The program with the categories above.
pub(crate) fn with_categories(arguments: &str, mut settings: Value) -> Setup {
    settings["classification"] = json!({ "taxonomy": "taxonomy.yaml", "watch": false });
    let setup = setup(arguments, &settings).file("taxonomy.yaml", TAXONOMY);
    let taxonomy = setup.folder().join("taxonomy.yaml");
    setup.variable("CORBIE_CLASSIFICATION__TAXONOMY", taxonomy.display())
}

#[test]
fn auto_asks_the_model_of_the_category_with_the_prompt_of_the_category() {
    let upstream = Upstream::start();
    let face = routed(&upstream);
    for (provider, prompt, category) in CATEGORIES {
        let auto = question("auto", prompt);
        let mut unnamed = auto.clone();
        unnamed.as_object_mut().unwrap().shift_remove("model");
        let null = with(auto.clone(), json!({ "model": null }));
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
    let requests = upstream.asked("echo-large");
    assert_eq!(requests.len(), 12);
    for request in requests {
        assert!(request["body"].to_string().contains(PROMPTS), "{request}");
    }
}

#[test]
fn a_model_that_the_caller_names_is_asked_without_classifying() {
    let upstream = Upstream::start();
    let face = routed(&upstream);
    for ((_, prompt, _), format) in CATEGORIES.iter().zip(FORMATS.iter().rev()) {
        let asked = question(&format!("{format}/echo-small"), prompt);
        for reply in [face.chat(&asked), face.stream(&asked).head] {
            assert_eq!(reply.status, 200, "{reply:?}");
            assert_eq!(reply.header("x-corbie-category"), None);
            assert_eq!(reply.header("x-corbie-provider"), Some(*format));
            assert_eq!(reply.header("x-corbie-reason"), Some("requested"));
        }
    }
    let requests = upstream.asked("echo-small");
    assert_eq!(requests.len(), 6);
    assert!(requests.iter().all(|request| !request["body"].to_string().contains(PROMPTS)), "{requests:?}");
}

#[test]
fn the_prompt_of_the_category_goes_before_the_callers_own() {
    let upstream = Upstream::start();
    let face = routed(&upstream);
    let messages = json!([
        { "role": "system", "content": "Be brief.", "name": "host" },
        { "role": "user", "content": "INV-12 is wrong" },
    ]);
    face.answer(&json!({ "model": "auto", "messages": messages }));
    let body = &upstream.asked("echo-large")[0]["body"];
    let text = body["messages"].to_string();
    let [category, own] = ["You know all about bills.", "Be brief."].map(|part| text.find(part));
    assert!(category.is_some() && category < own, "{text}");
    assert_eq!(body["messages"].as_array().unwrap().last(), messages.as_array().unwrap().last());
}

#[test]
fn every_decision_has_a_number_of_its_own_that_the_records_know() {
    let upstream = Upstream::start();
    let face = Face::of_upstream(&upstream);
    let decisions: Vec<String> = (0..3)
        .map(|_| face.chat(&question("openai/echo-small", "hello")).header("x-corbie-decision").unwrap().to_owned())
        .collect();
    let known: Vec<String> = face.decisions().iter().map(|decision| decision["id"].to_string()).collect();
    assert_eq!(known, decisions.into_iter().rev().collect::<Vec<_>>());
}

#[test]
fn a_name_that_no_header_can_carry_does_not_spoil_the_answer() {
    let strange = "modèle\n";
    let house = Peer::start(move |request, connection| {
        let body = match request.head.starts_with("GET") {
            true => listing(&[strange]),
            false => json!({ "choices": [{ "message": { "content": "here" } }] }),
        };
        write_json(connection, &body);
    });
    let face = Face::start(&json!({ "providers": { "house": peer("openai-compatible", &house) } }));
    let reply = face.chat(&question(&format!("house/{strange}"), "hello"));
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!((reply.header("x-corbie-model"), reply.header("x-corbie-provider")), (None, Some("house")));
    assert_eq!(reply.json()["choices"][0]["message"]["content"], "here");
}
