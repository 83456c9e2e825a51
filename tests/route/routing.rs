//! P-01, P-11, P-12, X-41: model selection, request parameters, and the reported decision.

use corbie::app::App;
use corbie_mcp::Era;
use serde_json::{Value, json};

use crate::fixture::{TAXONOMY, app, app_with_categories, app_with_taxonomy, call, complete, last_decision, request};
use crate::process::{corbie, request as message};
use crate::upstream::{FORMATS, FakeUpstream, ScriptedServer, listing};

/// A provider with the models of the categories, listed or not.
fn provider_settings(upstream: &FakeUpstream) -> Value {
    let models = json!({ "billing-model": {}, "delivery-model": {}, "general-model": {} });
    json!({
        "providers": { "house": upstream.provider_with("openai-compatible", json!({ "models": models })) },
        "defaults": { "provider": "house", "model": "default-model" },
    })
}

async fn answered_by(app: &App, params: Value) -> (String, String) {
    let answered = complete(app, params).await.unwrap();
    let text = |name: &str| answered[name].as_str().unwrap().to_owned();
    (text("provider"), text("model"))
}

#[tokio::test(flavor = "multi_thread")]
async fn p01_p11_a_prompt_without_a_model_gets_its_categorys_model_and_prompt() {
    let upstream = FakeUpstream::start();
    let app = app_with_categories(provider_settings(&upstream));
    let answered = complete(&app, json!({ "prompt": "INV-7 is wrong" })).await.unwrap();
    assert_eq!((&answered["provider"], &answered["model"]), (&json!("house"), &json!("billing-model")));
    let [sent] = &upstream.requests_for("billing-model")[..] else { panic!("one request") };
    assert_eq!(
        sent["body"]["messages"],
        json!([
            { "role": "system", "content": "You know all about bills." },
            { "role": "user", "content": "INV-7 is wrong" },
        ])
    );
    let decision = &answered["_meta"]["corbie/decision"];
    assert_eq!((&decision["reason"], &decision["classified"]["category"]), (&json!("category"), &json!("billing")));
}

#[tokio::test(flavor = "multi_thread")]
async fn p11_p19_the_categorys_prompt_goes_before_the_callers_own() {
    let upstream = FakeUpstream::start();
    let app = app_with_categories(provider_settings(&upstream));
    let messages = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "PARCEL-1 is late" },
    ]);
    let said = call(&app, "chat_completion", json!({ "messages": messages })).await;
    assert_eq!((&said["provider"], &said["model"]), (&json!("house"), &json!("delivery-model")), "{said}");
    assert_eq!(said["message"]["content"], "echo: PARCEL-1 is late");
    let sent = &upstream.requests_for("delivery-model")[0]["body"]["messages"];
    let told: Vec<_> = sent.as_array().unwrap().iter().map(|message| message["content"].clone()).collect();
    assert_eq!(told, [json!("You know all about parcels."), json!("Be brief."), json!("PARCEL-1 is late")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn p11_the_caller_goes_before_advice_before_the_default_before_the_providers_own() {
    let upstream = FakeUpstream::start();
    let prompt = "INV-7 is wrong";
    let app = app_with_categories(provider_settings(&upstream));
    let house_and = |model: &str| ("house".to_owned(), model.to_owned());
    assert_eq!(answered_by(&app, json!({ "prompt": prompt, "model": "mine" })).await, house_and("mine"));
    assert_eq!(answered_by(&app, json!({ "prompt": prompt })).await, house_and("billing-model"));

    let mut off = provider_settings(&upstream);
    off["router"] = json!({ "enabled": false });
    let unrouted = app_with_categories(off.clone());
    assert_eq!(answered_by(&unrouted, json!({ "prompt": prompt })).await, house_and("default-model"));
    let [sent] = &upstream.requests_for("default-model")[..] else { panic!("one request") };
    assert_eq!(sent["body"]["messages"], json!([{ "role": "user", "content": prompt }]));

    off["defaults"] = json!({});
    off["providers"]["house"]["default_model"] = "own-model".into();
    let unnamed = app_with_categories(off.clone());
    assert_eq!(answered_by(&unnamed, json!({ "prompt": prompt })).await, house_and("own-model"));
}

#[tokio::test(flavor = "multi_thread")]
async fn p11_p13_where_nobody_names_a_model_the_operator_is_told_to() {
    let upstream = FakeUpstream::start();
    let of =
        |kind: &str| app(json!({ "providers": { "main": upstream.provider(kind) }, "router": { "enabled": false } }));
    // With several models and no default, the choice is ambiguous.
    let error = complete(&of("openai-compatible"), json!({ "prompt": "Hello" })).await.unwrap_err();
    let error = error.to_object(Era::Legacy);
    assert_eq!((error.code, &error.data.unwrap()["kind"]), (-32005, &json!("no_model")));
    assert!(error.message.contains("DEFAULT_MODEL"), "{}", error.message);
    // For a known company it is a small model.
    let answered = complete(&of("openai"), json!({ "prompt": "Hello" })).await.unwrap();
    assert_eq!(answered["model"], "gpt-5.4-mini");
}

#[tokio::test(flavor = "multi_thread")]
async fn p02_p12_x41_the_provider_is_found_by_prefix_family_list_and_default() {
    let upstream = FakeUpstream::start();
    let local = ScriptedServer::answering(|request| match request.head.starts_with("GET") {
        true => listing(&["llama3", "gpt-oss:20b"]),
        false => {
            json!({ "model": "llama3", "choices": [{ "message": { "role": "assistant", "content": "hi" }, "finish_reason": "stop" }] })
        }
    });
    let app = app(json!({
        "providers": {
            "openai": upstream.provider("openai"),
            "anthropic": upstream.provider("anthropic"),
            "google": upstream.provider("google"),
            "local": { "base_url": format!("http://127.0.0.1:{}/v1", local.port) },
            "try": { "type": "mock" },
        },
        "defaults": { "provider": "anthropic" },
    }));
    request(&app, "models/list", json!({})).await.unwrap();
    for (model, provider, its_own) in [
        ("gpt-4o", "openai", "gpt-4o"),
        ("o4-mini", "openai", "o4-mini"),
        ("claude-sonnet-5", "anthropic", "claude-sonnet-5"),
        ("gemini-3-pro", "google", "gemini-3-pro"),
        ("openai/gpt-oss-20b", "openai", "gpt-oss-20b"),
        ("google/gpt-4o", "google", "gpt-4o"),
        ("llama3", "local", "llama3"),
        ("mock", "try", "mock"),
        ("somebody/unheard-of", "anthropic", "somebody/unheard-of"),
    ] {
        let found = answered_by(&app, json!({ "prompt": "Hello", "model": model })).await;
        assert_eq!(found, (provider.to_owned(), its_own.to_owned()), "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p11_a_category_that_reasons_tells_each_provider_in_its_own_words() {
    let upstream = FakeUpstream::start();
    for format in FORMATS {
        let knows = json!({ "capabilities": { "reasoning": true } });
        let models = json!({ "billing-model": knows, "delivery-model": knows });
        let app = app_with_categories(json!({
            "providers": { "main": upstream.provider_with(format, json!({ "models": models })) },
            "defaults": { "provider": "main" },
        }));
        upstream.clear_requests();
        let thinks = complete(&app, json!({ "prompt": "INV-7 is wrong" })).await.unwrap();
        assert_eq!(thinks["_meta"]["corbie/decision"]["use_reasoning"], true, "{format}");
        let plain = complete(&app, json!({ "prompt": "PARCEL-1 is late" })).await.unwrap();
        assert_eq!(plain["_meta"]["corbie/decision"]["use_reasoning"], false, "{format}");
        let thinking = |model: &str| {
            let body = upstream.requests_for(model)[0]["body"].clone();
            match format {
                "openai" => body["reasoning_effort"].clone(),
                "anthropic" => body["thinking"]["type"].clone(),
                _ => body["generationConfig"]["thinkingConfig"].clone(),
            }
        };
        let (on, off) = (thinking("billing-model"), thinking("delivery-model"));
        match format {
            "openai" => assert_eq!((on, off), (json!("medium"), json!("none"))),
            "anthropic" => {
                assert!(on == "enabled" || on == "adaptive", "{on}");
                assert!(off.is_null() || off == "disabled", "{off}");
            }
            _ => assert!(on.is_object() && on != off, "{on} {off}"),
        }
    }
    // An unknown model gets no reasoning parameter, as it may reject it.
    let app = app_with_categories(provider_settings(&upstream));
    upstream.clear_requests();
    complete(&app, json!({ "prompt": "INV-7 is wrong" })).await.unwrap();
    assert_eq!(upstream.requests_for("billing-model")[0]["body"].get("reasoning_effort"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn p11_a_prompt_that_nobody_is_sure_of_gets_the_fallback_category() {
    let upstream = FakeUpstream::start();
    let app = app_with_categories(provider_settings(&upstream));
    let unsure = "pay on arrival";
    let explained = call(&app, "explain_route", json!({ "prompt": unsure })).await;
    assert!(explained["confidence"].as_f64().unwrap() < 0.6, "{explained}");
    assert_eq!((&explained["used_fallback"], &explained["category"]), (&json!(true), &json!("general")), "{explained}");
    complete(&app, json!({ "prompt": unsure })).await.unwrap();
    let [sent] = &upstream.requests_for("general-model")[..] else { panic!("one request") };
    assert_eq!(sent["body"]["messages"][0]["content"], "You are friendly.");
    assert_eq!(last_decision(&app).await["classified"]["used_fallback"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn p19_explain_route_tells_what_would_be_done_and_asks_nobody() {
    let upstream = FakeUpstream::start();
    let mut settings = provider_settings(&upstream);
    settings["router"] = json!({ "fallbacks": { "billing": ["clerk-model"] } });
    settings["providers"]["house"]["models"] = json!({ "billing-model": { "price": { "input": 2, "output": 8 } } });
    let app = app_with_categories(settings);
    let explained = call(&app, "explain_route", json!({ "prompt": "INV-7 is wrong" })).await;
    assert!(upstream.requests().is_empty());
    let asked: Vec<_> = explained["candidates"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["model"].clone(), one["reason"].clone()))
        .collect();
    assert_eq!(
        json!(asked),
        json!([["billing-model", "category"], ["clerk-model", "fallback"], ["default-model", "default"]])
    );
    assert_eq!(explained["candidates"][0]["price"]["output"], 8.0, "{explained}");
    assert_eq!(explained["system_prompt"], "You know all about bills.");
    assert_eq!(explained["use_reasoning"], true);
    // The actual routing matches the explanation.
    let decision =
        complete(&app, json!({ "prompt": "INV-7 is wrong" })).await.unwrap()["_meta"]["corbie/decision"].clone();
    assert_eq!(decision["candidates"], json!(["house/billing-model", "house/clerk-model", "house/default-model"]));
    assert_eq!(decision["classified"]["category"], explained["category"]);
}

/// No list shows that the model is missing, but the provider reports it when called.
#[tokio::test(flavor = "multi_thread")]
async fn x41_a_model_that_its_provider_does_not_have_is_not_asked_for_again() {
    let upstream = FakeUpstream::start();
    let taxonomy = TAXONOMY.replace("model: billing-model", "model: house/status-404");
    let app = app_with_taxonomy(provider_settings(&upstream), &taxonomy);
    for _ in 0..3 {
        let found = answered_by(&app, json!({ "prompt": "INV-7 is wrong" })).await;
        assert_eq!(found, ("house".to_owned(), "default-model".to_owned()));
    }
    assert_eq!(upstream.requests_for("status-404").len(), 1);
    assert_eq!(last_decision(&app).await["unavailable_models"], json!(["house/status-404"]));

    let mut without_default = provider_settings(&upstream);
    without_default["defaults"] = json!({});
    let app = app_with_taxonomy(without_default, &taxonomy);
    let error = complete(&app, json!({ "prompt": "INV-7 is wrong" })).await.unwrap_err().to_object(Era::Legacy);
    assert_eq!((error.code, &error.data.unwrap()["kind"]), (-32005, &json!("no_model")));
    assert!(error.message.contains("house/status-404"), "{}", error.message);
    // The next prompt fetches the model list; with several models the provider has no default.
    let error = complete(&app, json!({ "prompt": "INV-7 is wrong" })).await.unwrap_err().to_object(Era::Legacy);
    assert_eq!(error.code, -32005);
}

#[tokio::test(flavor = "multi_thread")]
async fn p10_p19_the_tool_gives_whole_answers_and_tool_calls_of_every_wire_format() {
    let upstream = FakeUpstream::start();
    for format in FORMATS {
        let app = app(json!({ "providers": { "main": upstream.provider(format) } }));
        let whole = call(&app, "chat_completion", json!({ "prompt": "Hello", "model": "main/echo-small" }));
        let whole = whole.await;
        assert_eq!(whole["message"]["content"], "echo: Hello", "{format}: {whole}");
        assert_eq!(whole["stop"], "finished", "{format}: {whole}");
        let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
        let weather = json!({ "type": "function", "function": { "name": "weather", "parameters": schema } });
        let asked = call(
            &app,
            "chat_completion",
            json!({ "prompt": "call weather {\"city\":\"Oslo\"}", "model": "main/echo-small", "tools": [weather] }),
        );
        let asked = asked.await;
        let wanted = &asked["message"]["tool_calls"][0];
        assert_eq!(
            (&wanted["name"], &wanted["arguments"]),
            (&json!("weather"), &json!("{\"city\":\"Oslo\"}")),
            "{asked}"
        );
        assert_eq!(asked["stop"], "tools", "{format}: {asked}");
    }
}

#[test]
fn x41_p04_f02_advice_that_nobody_serves_gets_the_default_model_with_one_warning() {
    let upstream = FakeUpstream::start();
    let settings = json!({
        "providers": { "detect_ports": [], "house": { "base_url": upstream.base("openai"), "api_key": "k" } },
        "classification": { "taxonomy": "taxonomy.yaml", "watch": false },
    });
    let mut server = corbie("stdio")
        .file("corbie.json", &settings.to_string())
        .file("taxonomy.yaml", TAXONOMY)
        .variable("DEFAULT_PROVIDER", "house")
        .variable("DEFAULT_MODEL", "echo-small")
        .start();
    // Fetches the model list of the provider.
    server.send_and_receive(&message(1, "models/list", json!({})));
    for id in 2..4 {
        let answer =
            server.send_and_receive(&message(id, "completion/complete", json!({ "prompt": "INV-7 is wrong" })));
        let decision = &answer["result"]["_meta"]["corbie/decision"];
        assert_eq!(
            (&answer["result"]["model"], &decision["reason"]),
            (&json!("echo-small"), &json!("default")),
            "{answer}"
        );
        assert_eq!(decision["unavailable_models"], json!(["billing-model"]), "{answer}");
    }
    // A model named by the caller is requested anyway: a list may be incomplete.
    let named = server.send_and_receive(&message(
        4,
        "completion/complete",
        json!({ "prompt": "Hello", "model": "house/status-404" }),
    ));
    assert_eq!(named["error"]["code"], -32003, "{named}");
    server.close_stdin();
    let ended = server.wait();
    let warnings = ended.stderr.lines().filter(|line| line.contains("no provider serves the recommended model"));
    let warnings: Vec<_> = warnings.collect();
    assert_eq!(warnings.len(), 1, "{}", ended.stderr);
    assert!(warnings[0].contains("WARN") && warnings[0].contains("billing-model"), "{warnings:?}");
    // The system prompt of the category is still sent.
    assert_eq!(upstream.requests_for("echo-small")[0]["body"]["messages"][0]["content"], "You know all about bills.");
}

#[test]
fn p08_p19_the_answer_the_decisions_and_the_metrics_tell_the_same() {
    let upstream = FakeUpstream::start();
    let mut house = upstream.provider("openai-compatible");
    house["models"] = json!({ "echo-small": { "price": { "input": 1000, "output": 3000 } } });
    let settings = json!({ "providers": { "detect_ports": [], "house": house }, "defaults": { "provider": "house" } });
    let mut server = corbie("serve --port 0").file("corbie.json", &settings.to_string()).start();
    let client = server.client();
    let ask = |method: &str, params: Value| client.post(&format!("/mcp/{method}"), &params).json();
    let answered = ask("completion/complete", json!({ "prompt": "one two three", "model": "echo-small" }));
    let failed = ask("completion/complete", json!({ "prompt": "one", "model": "house/status-503" }));
    assert!(failed.to_string().contains("ProviderUnavailable"), "{failed}");

    let decision = &answered["_meta"]["corbie/decision"];
    assert_eq!(decision["usage"]["prompt"], answered["usage"]["promptTokens"]);
    assert_eq!(decision["usage"]["completion"], answered["usage"]["completionTokens"]);
    // Three prompt tokens, and `echo:` makes four completion tokens.
    let cost = (3.0 * 1000.0 + 4.0 * 3000.0) / 1e6;
    assert!((decision["cost"].as_f64().unwrap() - cost).abs() < 1e-12, "{decision}");

    let text = |read: Value| -> Value { serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap() };
    let all = text(ask("resources/read", json!({ "uri": "corbie://decisions" })));
    assert_eq!(&all["decisions"][1], decision, "newest first");
    assert_eq!(
        (&all["decisions"][0]["outcome"], &all["decisions"][0]["error"]),
        (&json!("failed"), &json!("unavailable"))
    );
    let one = text(ask("resources/read", json!({ "uri": format!("corbie://decisions/{}", decision["id"]) })));
    assert_eq!(one, *decision);
    assert!(!all.to_string().contains("one two three"), "a prompt is not kept");

    let metrics = client.get("/metrics").body;
    let value = |name: &str, labels: &[&str]| -> f64 {
        let fits = |line: &&str| line.contains(name) && labels.iter().all(|label| line.contains(label));
        let line = metrics.lines().filter(|line| !line.starts_with('#')).find(fits);
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok())
            .unwrap_or_else(|| panic!("{name} {labels:?}: {metrics}"))
    };
    assert_eq!(value("route_attempts_total", &["provider=\"house\"", "result=\"ok\""]), 1.0);
    assert_eq!(value("route_attempts_total", &["provider=\"house\"", "result=\"unavailable\""]), 1.0);
    assert_eq!(value("route_decisions_total", &["reason=\"requested\"", "outcome=\"answered\""]), 1.0);
    assert_eq!(value("route_decisions_total", &["reason=\"requested\"", "outcome=\"failed\""]), 1.0);
    assert_eq!(value("route_tokens_total", &["direction=\"input\""]), 3.0);
    assert_eq!(value("route_tokens_total", &["direction=\"output\""]), 4.0);
    assert!((value("route_cost_total", &["provider=\"house\""]) - cost).abs() < 1e-12);
}
