//! `corbie providers`, with the real binary and an HTTP upstream.

use serde_json::{Value, json};

use crate::process::{corbie, free_port};
use crate::upstream::FakeUpstream;

/// Three working providers, one with a rejected key, one unreachable, and one without a key.
fn all_provider_kinds() -> FakeUpstream {
    let upstream = FakeUpstream::start();
    upstream.configure(&format!(
        "acme: {{base_url: 'BASE/v1', api_key: KEY, default_model: echo-large, models: {{echo-small: {{capabilities: {{context: 128000, images: true, tools: true}}}}}}}}\n\
         claude: {{type: anthropic, base_url: 'BASE', api_key: KEY}}\n\
         gemini: {{type: google, base_url: 'BASE', api_key: KEY}}\n\
         locked: {{base_url: 'BASE/v1', api_key: bad-key}}\n\
         gone: {{base_url: 'http://127.0.0.1:{}/v1', api_key: KEY}}\n\
         openai: {{}}",
        free_port()
    ));
    upstream
}

/// The cells of the row of one provider.
fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let line = table.lines().find(|line| line.split_whitespace().next() == Some(name));
    let cells = line.unwrap_or_else(|| panic!("no {name} in {table}")).split("  ");
    cells.map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

#[test]
fn p05_p19_everybody_has_a_row_and_one_that_fails_spoils_nothing() {
    let upstream = all_provider_kinds();
    let ended = upstream.corbie("providers").run("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    let table = &ended.stdout;
    assert_eq!(row(table, "NAME"), ["NAME", "TYPE", "STATUS", "LATENCY", "MODELS", "DEFAULT", "URL"]);
    let acme = row(table, "acme");
    assert_eq!((acme[1], acme[2], acme[4], acme[5]), ("openai-compatible", "up", "3", "echo-large"));
    assert!(acme[3].ends_with(" ms") && acme[6].starts_with("http://127.0.0.1:"), "{acme:?}");
    assert_eq!(row(table, "claude")[1..3], ["anthropic", "up"]);
    assert_eq!(row(table, "gemini")[1..3], ["google", "up"]);
    assert_eq!(row(table, "locked")[2..5], ["failing", "-", "-"]);
    assert_eq!(row(table, "openai")[1..3], ["openai", "no key"]);
    for reason in [
        "  authentication failed",
        "  cannot connect to the provider: connection refused",
        "  has no API key; set `OPENAI_API_KEY`",
    ] {
        assert!(table.lines().any(|line| line.starts_with(reason)), "{reason}: {table}");
    }
}

#[test]
fn p05_models_are_listed_with_what_they_read_and_can_do() {
    let upstream = all_provider_kinds();
    let table = upstream.corbie("providers --models").run("").stdout;
    let lines: Vec<&str> = table.lines().collect();
    let acme = lines.iter().position(|line| line.starts_with("acme")).unwrap();
    assert_eq!(lines[acme + 1].trim_end(), "  echo-large         -");
    assert_eq!(lines[acme + 2], "  echo-small      128k  images, tools");
    assert!(lines.contains(&"  echo-large      200k"), "what the provider tells: {table}");
}

#[test]
fn p05_json_has_the_same_for_programs() {
    let upstream = all_provider_kinds();
    let told: Value = serde_json::from_str(&upstream.corbie("providers --json").run("").stdout).unwrap();
    assert_eq!(told["default_model"], "acme/echo-large");
    assert!(told.get("models").is_none(), "{told}");
    let all = told["providers"].as_array().unwrap();
    let of = |name: &str| all.iter().find(|provider| provider["name"] == name).unwrap();
    assert_eq!((&of("acme")["status"], &of("acme")["models"]), (&json!("up"), &json!(3)));
    assert!(of("acme")["latency_ms"].as_f64().unwrap() > 0.0);
    assert_eq!((&of("gone")["status"], of("gone").get("latency_ms")), (&json!("failing"), None));
    assert_eq!(of("openai")["status"], "no key");

    let told: Value = serde_json::from_str(&upstream.corbie("providers --json --models").run("").stdout).unwrap();
    let models = told["models"].as_array().unwrap();
    assert_eq!(models.len(), 9, "{models:?}");
    assert_eq!(models[0]["full_id"], "acme/echo-large");
}

#[test]
fn p13_without_a_provider_it_says_what_to_set() {
    let nobody = |arguments: &str| {
        let ended = corbie(arguments).run("");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        ended.stdout
    };
    assert!(nobody("providers").starts_with("no provider is configured; set `OPENAI_API_KEY`"));
    assert_eq!(serde_json::from_str::<Value>(&nobody("providers --json")).unwrap(), json!({ "providers": [] }));
}

#[test]
fn it_fails_only_where_nobody_answers() {
    let upstream = FakeUpstream::start();
    upstream.configure("locked: {base_url: 'BASE/v1', api_key: bad-key}\nopenai: {}");
    let ended = upstream.corbie("providers").run("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(1), ""), "{ended:?}");
    assert_eq!(row(&ended.stdout, "locked")[2], "failing");
}
