//! `auto:NAME`: named routing policies of the operator.

use serde_json::{Value, json};

use crate::fixture::{ApiServer, chat_request, expect_error, settings_for_each_format, with_members};
use crate::http::HttpResponse;
use crate::process::TestCommand;
use crate::routing::{PROMPT_PREFIX, command_with_categories};
use crate::upstream::FakeUpstream;

const INVOICE: &str = "INV-12 is wrong";
const PARCEL: &str = "PARCEL-12 is late";

fn settings(upstream: &FakeUpstream, more: Value) -> Value {
    let policies = json!({
        "cheap": { "enabled": false, "default_model": "google/echo-small" },
        "careful": { "models": { "billing": "google/echo-thinking" }, "system_prompt": "off" },
        "stubborn": { "models": { "billing": "openai/status-503" }, "failover": false },
        "patient": { "models": { "billing": "openai/status-503" }, "fallbacks": { "billing": ["anthropic/echo-small"] } },
    });
    let router = with_members(json!({ "policies": policies, "timeout": "1500ms" }), more);
    with_members(settings_for_each_format(upstream), json!({ "router": router }))
}

fn server_with_policies(arguments: &str, upstream: &FakeUpstream) -> TestCommand {
    command_with_categories(arguments, settings(upstream, json!({})))
}

fn api_server(upstream: &FakeUpstream) -> ApiServer {
    ApiServer::from_command(server_with_policies("serve --port 0", upstream))
}

/// Provider, category, and the reason for the model.
#[track_caller]
fn route_headers(reply: &HttpResponse) -> (String, Option<&str>, &str) {
    assert_eq!(reply.status, 200, "{reply:?}");
    let header = |name| reply.header(name).unwrap_or_default();
    let by = format!("{}/{}", header("x-corbie-provider"), header("x-corbie-model"));
    (by, reply.header("x-corbie-category"), header("x-corbie-reason"))
}

#[test]
fn a_policy_chooses_by_its_own_models_and_everything_else_is_as_for_auto() {
    let upstream = FakeUpstream::start();
    let face = api_server(&upstream);
    for (model, prompt, by, category, why) in [
        ("auto", INVOICE, "openai/echo-large", Some("billing"), "category"),
        ("auto:careful", INVOICE, "google/echo-thinking", Some("billing"), "category"),
        ("auto:careful", PARCEL, "anthropic/echo-large", Some("delivery"), "category"),
        ("auto:cheap", INVOICE, "google/echo-small", None, "default"),
        ("auto:cheap", PARCEL, "google/echo-small", None, "default"),
        ("auto:patient", INVOICE, "anthropic/echo-small", Some("billing"), "fallback"),
    ] {
        let asked = chat_request(model, prompt);
        for reply in [face.chat(&asked), face.stream(&asked).head] {
            assert_eq!(route_headers(&reply), (by.to_owned(), category, why), "{model}: {prompt}");
        }
    }
    assert_eq!(expect_error(&face.chat(&chat_request("auto:stubborn", INVOICE)), 503)["type"], "server_error");
    let sent = |model: &str| {
        upstream.requests_for(model).iter().map(|request| request["body"].to_string()).collect::<String>()
    };
    assert!(sent("echo-large").contains(PROMPT_PREFIX), "{}", sent("echo-large"));
    assert!(!sent("echo-thinking").contains(PROMPT_PREFIX), "its system prompts are off: {}", sent("echo-thinking"));
    assert!(!sent("echo-small").contains("auto:"), "nobody upstream is asked for a policy");
    let decision = face.decisions().into_iter().find(|decision| decision["requested_model"] == "auto:careful");
    assert!(decision.is_some(), "the records tell what was asked for");
}

#[test]
fn a_policy_that_is_not_there_is_404_and_those_that_are_there_are_named() {
    let upstream = FakeUpstream::start();
    let face = api_server(&upstream);
    for model in ["auto:dear", "auto:", "auto:Cheap", "auto:cheap "] {
        for stream in [false, true] {
            let reply = face.chat(&with_members(chat_request(model, INVOICE), json!({ "stream": stream })));
            let error = expect_error(&reply, 404);
            assert_eq!((&error["code"], &error["param"]), (&json!("model_not_found"), &json!("model")), "{model:?}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("`auto:careful`") && message.contains("`auto:cheap`"), "{message}");
        }
    }
    assert!(upstream.requests().iter().all(|request| request["method"] == "GET"), "nobody is asked");
}

#[test]
fn the_list_of_models_has_the_policies() {
    let upstream = FakeUpstream::start();
    let face = api_server(&upstream);
    let list = face.client.get("/v1/models").json();
    let names: Vec<&str> = list["data"].as_array().unwrap().iter().map(|model| model["id"].as_str().unwrap()).collect();
    assert_eq!(names[..5], ["auto", "auto:careful", "auto:cheap", "auto:patient", "auto:stubborn"]);
    assert_eq!(face.client.get("/v1/models/auto:cheap").json()["owned_by"], "corbie");
}

/// Independent of the policy and of its treatment of the category.
#[test]
fn no_policy_lets_out_what_must_stay() {
    let upstream = FakeUpstream::start();
    let policies = json!({
        "cheap": { "enabled": false, "default_model": "google/echo-small" },
        "far": { "models": { "billing": "google/echo-small" }, "fallbacks": { "billing": ["google/echo-small"] } },
    });
    let settings = settings(&upstream, json!({ "policies": policies, "restricted_categories": ["billing"] }));
    let mut face = ApiServer::from_command(command_with_categories("serve --port 0", settings));
    for model in ["auto", "auto:cheap", "auto:far"] {
        let reply = face.chat(&chat_request(model, INVOICE));
        assert_eq!(route_headers(&reply), ("openai/echo-large".to_owned(), Some("billing"), "category"), "{model}");
    }
    let reply = face.chat(&chat_request("auto:cheap", PARCEL));
    assert_eq!(
        route_headers(&reply),
        ("google/echo-small".to_owned(), None, "default"),
        "others go where the policy says"
    );
    assert_eq!(upstream.requests_for("echo-small").len(), 1);
    assert!(face.server.wait_for_log("`router.restricted_categories`").contains("billing"), "the operator is told");
}

#[test]
fn the_tools_and_methods_of_mcp_know_policies() {
    let upstream = FakeUpstream::start();
    let face = api_server(&upstream);
    let call = |name: &str, model: &str| {
        let arguments = json!({ "prompt": INVOICE, "model": model });
        face.client.post("/mcp/tools/call", &json!({ "name": name, "arguments": arguments })).json()
    };
    let asked = call("chat_completion", "auto:cheap")["structuredContent"].clone();
    assert_eq!((&asked["provider"], &asked["model"]), (&json!("google"), &json!("echo-small")), "{asked}");
    let refused = call("chat_completion", "auto:dear");
    assert!(refused["content"][0]["text"].as_str().unwrap().contains("`auto:cheap`"), "{refused}");

    let first = |explained: &Value| explained["structuredContent"]["candidates"][0].clone();
    let careful = first(&call("explain_route", "auto:careful"));
    assert_eq!((&careful["provider"], &careful["model"]), (&json!("google"), &json!("echo-thinking")), "{careful}");
    let unknown = call("explain_route", "auto:dear")["structuredContent"].clone();
    assert_eq!(
        (&unknown["candidates"], &unknown["unavailable_models"]),
        (&json!([]), &json!(["auto:dear"])),
        "{unknown}"
    );

    let params = json!({ "prompt": INVOICE, "model": "auto:cheap" });
    assert_eq!(face.client.post("/mcp/completion/complete", &params).json()["model"], "echo-small");
}

#[test]
fn the_command_line_knows_policies() {
    let upstream = FakeUpstream::start();
    let ask = |arguments: &str| server_with_policies(&format!("ask {arguments}"), &upstream).argument(INVOICE).run("");
    let careful = ask("--model auto:careful --explain");
    assert_eq!(careful.code, Some(0), "{careful:?}");
    assert!(careful.stdout.contains("category       billing"), "{careful:?}");
    assert!(careful.stdout.contains("model          google/echo-thinking · category"), "{careful:?}");
    let cheap = ask("--model auto:cheap --explain");
    assert!(cheap.stdout.contains("model          google/echo-small · default"), "{cheap:?}");
    let dear = ask("--model auto:dear --explain");
    assert!(dear.stdout.contains("\nerror          ") && dear.stdout.contains("`auto:cheap`"), "{dear:?}");
    assert_eq!(ask("--model auto:cheap").stdout, format!("echo: {INVOICE}\n"));
    assert_ne!(ask("--model auto:dear").code, Some(0));
}
