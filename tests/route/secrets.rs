//! S-01, S-02, V-12: keys in every configurable place, failures of every kind, and no key in any output.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::http::HttpClient;
use crate::process::{TestCommand, TestProcess, call, corbie, free_port, request};
use crate::upstream::{FORMATS, FakeUpstream};

/// Part of every secret but one.
const MARK: &str = "sk-marker";
/// A key that resembles an error code that corbie passes through.
const WORD: &str = "correct_horse_battery_staple";

/// A secret for each place: variables, settings, headers, passwords.
fn with_secrets(arguments: &str, upstream: &FakeUpstream, closed: u16) -> TestCommand {
    let base = |format: &str| upstream.base(format);
    let with_password = base("openai").replace("http://", "http://user:sk-marker-password@");
    let settings = json!({
        "providers": {
            "detect_ports": [],
            "openai": {
                "base_url": base("openai"),
                "headers": { "x-gateway": "Bearer ${GATEWAY_KEY}" },
            },
            "anthropic": { "base_url": base("anthropic") },
            "google": { "base_url": base("google") },
            "several": {
                "type": "openai",
                "base_url": base("openai"),
                "api_keys": ["sk-marker-second", "${THIRD_KEY}"],
            },
            "password": { "type": "openai-compatible", "base_url": with_password },
            "lost": { "base_url": "http://user:sk-marker-lost@nobody.invalid/v1", "api_key": "sk-marker-lost" },
            "proxied": {
                "base_url": base("openai"),
                "api_key": "sk-marker-proxied",
                "proxy": format!("http://user:sk-marker-proxy@127.0.0.1:{closed}"),
            },
            "queried": { "base_url": format!("{}?key=sk-marker-query", base("openai")), "api_key": WORD },
            "secure": { "base_url": base("openai").replace("http://", "https://"), "api_key": "sk-marker-secure" },
        },
        "router": { "timeout": "900ms" },
    });
    corbie(arguments)
        .file("corbie.json", &settings.to_string())
        .variable("OPENAI_API_KEY", "sk-marker-openai")
        .variable("ANTHROPIC_API_KEY", "sk-marker-anthropic")
        .variable("GOOGLE_API_KEY", "sk-marker-google")
        .variable("THIRD_KEY", "sk-marker-third")
        .variable("GATEWAY_KEY", "sk-marker-gateway")
}

/// Every failing model of every provider.
fn models() -> Vec<String> {
    let faults = [
        "leak",
        "leak-401",
        "leak-404",
        "leak-429",
        "status-401",
        "quota",
        // A success in between, so that no circuit breaker opens after five failures.
        "leak-500",
        "echo-small",
        "reset",
        "html",
        "echo-small",
        "not-json",
        "error-mid",
    ];
    let of_formats = FORMATS.iter().flat_map(|format| faults.map(|fault| format!("{format}/{fault}")));
    let elsewhere = [
        "password/leak",
        "password/echo-small",
        "several/leak-401",
        "several/leak-429",
        "queried/leak",
        "queried/leak-422",
        "queried/echo-small",
        "lost/model",
        "proxied/model",
        "secure/model",
        "nobody/model",
        "sk-mark",
    ];
    of_formats.chain(elsewhere.map(str::to_owned)).collect()
}

/// Everything readable from a running server.
fn server_outputs(server: &mut TestProcess, client: &HttpClient) -> Vec<String> {
    let mut read = Vec::new();
    for (tool, arguments) in [
        ("list_models", json!({})),
        ("list_providers", json!({})),
        ("explain_route", json!({ "prompt": "Hello", "model": "openai/leak" })),
        ("inspect_server", json!({})),
        ("check_setup", json!({})),
        ("list_registered_tools", json!({})),
        ("chat_completion", json!({ "prompt": "Hello", "model": "openai/leak" })),
    ] {
        read.push(server.send_and_receive(&call(tool, tool, arguments)).to_string());
    }
    for (method, params) in [
        ("models/list", json!({})),
        ("resources/list", json!({})),
        ("resources/read", json!({ "uri": "corbie://decisions" })),
        ("resources/read", json!({ "uri": "corbie://decisions/1" })),
    ] {
        read.push(server.send_and_receive(&request(method, method, params)).to_string());
    }
    read.extend(["/metrics", "/health", "/ready"].map(|path| client.get(path).body));
    read
}

#[test]
fn v12_s01_s02_no_key_header_or_password_is_in_any_output_whatever_goes_wrong() {
    let (upstream, closed) = (FakeUpstream::start(), free_port());
    let mut server = with_secrets("serve --stdio --port 0 --log-level debug", &upstream, closed).start();
    let client = server.client();
    let mut read = Vec::new();
    let mut sent = String::new();
    for model in models() {
        let params = json!({ "prompt": "Hello", "model": model });
        read.push(server.send_and_receive(&request(1, "completion/complete", params.clone())).to_string());
        read.push(client.post("/mcp/completion/complete", &params).body);
        // The upstream keeps the last hundred requests.
        sent += &Value::from(upstream.requests()).to_string();
    }
    read.extend(server_outputs(&mut server, &client));
    server.terminate();
    let ended = server.wait();
    read.extend([ended.stdout, ended.stderr.clone()]);
    for arguments in ["config show", "config show --json", "config validate"] {
        let ended = with_secrets(arguments, &upstream, closed).run("");
        assert_eq!(ended.code, Some(0), "{arguments}: {ended:?}");
        read.extend([ended.stdout, ended.stderr]);
    }
    for arguments in ["doctor", "doctor --json"] {
        let ended = with_secrets(arguments, &upstream, closed).run("");
        assert!(ended.stdout.contains("does not respond"), "some of them are asked in vain: {ended:?}");
        read.extend([ended.stdout, ended.stderr]);
    }

    // Guards against a vacuous test: each secret that is sent upstream arrived there, and the log has debug output.
    assert!(sent.contains(WORD), "the plain key was not sent");
    for secret in ["openai", "second", "third", "gateway", "anthropic", "google", "query"] {
        assert!(sent.contains(&format!("{MARK}-{secret}")), "{secret} was not sent");
    }
    let encoded = |secret: &str| STANDARD.encode(format!("user:{MARK}-{secret}"));
    assert!(sent.contains(&encoded("password")));
    assert!(ended.stderr.contains("DEBUG") && ended.stderr.contains("attempt failed"), "{}", ended.stderr);

    for text in &read {
        assert!(!text.contains(MARK) && !text.contains(WORD), "{text}");
        assert!(!text.contains("circuit open"), "a fault was not met: {text}");
        for secret in ["password", "lost", "proxy"] {
            assert!(!text.contains(&encoded(secret)), "{text}");
        }
        // Internal details in upstream errors are not passed on.
        assert!(!text.contains("billing.py"), "{text}");
    }
}

/// Prompts are private: neither the most verbose log nor a decision record contains them.
#[test]
fn s01_no_prompt_and_no_answer_is_logged_or_kept() {
    let upstream = FakeUpstream::start();
    let settings = json!({
        "providers": { "detect_ports": [], "house": upstream.provider("openai-compatible") },
        "defaults": { "provider": "house", "model": "echo-small" },
    });
    let mut server =
        corbie("serve --stdio --port 0 --log-level debug").file("corbie.json", &settings.to_string()).start();
    let client = server.client();
    for model in [json!("house/echo-small"), json!("house/status-500"), json!("house/leak"), Value::Null] {
        let params = json!({ "prompt": "my diary of violets", "model": model });
        server.send_and_receive(&request(1, "completion/complete", params.clone()));
        server.send_and_receive(&call(
            2,
            "chat_completion",
            json!({ "prompt": "my diary of violets", "model": "house/echo-small" }),
        ));
        client.post("/mcp/completion/complete", &params);
    }
    let decisions =
        server.send_and_receive(&request(3, "resources/read", json!({ "uri": "corbie://decisions" }))).to_string();
    let metrics = client.get("/metrics").body;
    server.terminate();
    let ended = server.wait();
    assert!(upstream.requests().iter().any(|sent| sent.to_string().contains("violets")));
    assert!(ended.stderr.contains("routed") && decisions.contains("house/echo-small"));
    for text in [decisions, metrics, ended.stderr] {
        assert!(!text.contains("violets"), "{text}");
    }
}

#[test]
fn v12_s01_a_mistake_in_the_settings_does_not_repeat_a_key() {
    for settings in [
        json!({ "providers": { "openai": { "api_key": ["sk-marker-list"] } } }),
        json!({ "providers": { "openai": { "api_keys": "sk-marker-text" } } }),
        json!({ "providers": { "openai": { "api_key": "sk-marker with spaces\n" } } }),
        json!({ "providers": { "openai": { "headers": { "x": ["sk-marker-header"] } } } }),
        json!({ "providers": { "openai": { "headers": { "x": "sk-marker\nheader" } } } }),
        json!({ "providers": { "openai": { "base_url": "ftp://user:sk-marker-password@host" } } }),
        json!({ "providers": { "openai": { "base_url": "user:sk-marker-password@host" } } }),
        json!({ "providers": { "openai": { "proxy": "socks5://user:sk-marker-password@host" } } }),
        json!({ "providers": { "openai": "sk-marker-instead" } }),
        json!({ "providers": { "openai": { "timeout": "sk-marker-elsewhere" } } }),
        json!({ "defaults": { "provider": { "openai": "sk-marker-elsewhere" } } }),
    ] {
        for arguments in ["config show", "config validate", "stdio"] {
            let ended = corbie(arguments).file("corbie.json", &settings.to_string()).run("");
            for text in [&ended.stdout, &ended.stderr] {
                assert!(!text.contains(MARK), "{settings}: {text}");
            }
        }
    }
}
