//! F-20 to F-32: the classification server, named by either section, in one form.

use std::time::Duration;

use corbie::config::ClassificationPolicy as Policy;
use corbie::external_classifier::{Settings, Transport};

use crate::ConfigMachine;

#[track_caller]
fn settings(yaml: &str) -> Settings {
    let config = ConfigMachine::new().project(yaml).variable("MCP_API_KEY", "sk-1").load();
    config.external_classifier().expect("settings that fit together").expect("a server")
}

#[track_caller]
fn assert_no_server(yaml: &str) {
    assert!(ConfigMachine::new().project(yaml).load().external_classifier().unwrap().is_none(), "{yaml}");
}

#[track_caller]
fn policy(yaml: &str) -> Policy {
    ConfigMachine::new().project(yaml).load().classification_policy()
}

#[track_caller]
fn url(settings: &Settings) -> &str {
    match &settings.transport {
        Transport::Http { url, .. } | Transport::StreamableHttp { url, .. } => url.as_str(),
        Transport::Stdio { .. } => panic!("it has no URL"),
    }
}

#[test]
fn f20_the_server_is_asked_only_when_the_operator_says_so() {
    assert_no_server("{}");
    assert_no_server("classification: {type: builtin}");
    assert_no_server("classification: {mcp_server: {url: 'http://localhost:1/mcp'}}");
    assert_no_server("classifier: {category_model: {model_id: x}}");
    assert_no_server("classifier: {mcp_category_model: {enabled: false}}");
    settings("classification: {type: mcp}");
    settings("classifier: {mcp_category_model: {}}");
}

#[test]
fn f21_f22_f23_f24_f25_f27_the_defaults_are_the_documented_ones() {
    let settings = settings("classification: {type: mcp}");
    assert!(matches!(settings.transport, Transport::Http { .. }));
    assert_eq!(url(&settings), "http://localhost:8090/mcp");
    assert_eq!((&*settings.classify_tool, &*settings.list_tool), ("classify_text", "list_categories"));
    assert_eq!((settings.timeout, settings.max_retries), (Duration::from_secs(5), 3));
    assert_eq!((settings.cache_categories, settings.refresh_interval), (true, Duration::from_secs(300)));
    assert_eq!(settings.num_categories, None);
}

/// The advanced example of the protocol, with other values.
#[test]
fn c60_f20_every_key_of_classification_is_read() {
    let settings = settings(
        "
classification:
  type: mcp
  mcp_server:
    url: https://sort.example/a/mcp
    transport: streamable-http
    tools: {classify: sort, list_categories: drawers}
    timeout: 250ms
    max_retries: 1
    cache_categories: false
    refresh_interval: 1h
    headers: {Authorization: 'Bearer ${MCP_API_KEY}'}
  num_categories: 5
",
    );
    let Transport::StreamableHttp { url, headers } = &settings.transport else { panic!("{settings:?}") };
    assert_eq!(
        (url.as_str(), &headers["authorization"]),
        ("https://sort.example/a/mcp", &"Bearer sk-1".parse().unwrap())
    );
    assert_eq!((&*settings.classify_tool, &*settings.list_tool), ("sort", "drawers"));
    assert_eq!((settings.timeout, settings.max_retries), (Duration::from_millis(250), 1));
    assert_eq!((settings.cache_categories, settings.refresh_interval), (false, Duration::from_secs(3600)));
    assert_eq!(settings.num_categories, Some(5));
    assert!(!format!("{settings:?}").contains("sk-1"));
}

/// The example of the older section.
#[test]
fn c60_f31_x24_the_older_section_is_read_with_its_own_timeout() {
    let yaml = "
classifier:
  category_model: {model_id: ''}
  mcp_category_model: {enabled: true, transport_type: http, url: 'http://localhost:8090/mcp', threshold: 0.7}
";
    assert_eq!((url(&settings(yaml)), settings(yaml).timeout), ("http://localhost:8090/mcp", Duration::from_secs(30)));
    assert_eq!(policy(yaml), Policy { threshold: 0.7, fallback: "general".into(), builtin: false });
    let other = settings("classifier: {mcp_category_model: {timeout_seconds: 2, tool_name: sort}}");
    assert_eq!((other.timeout, &*other.classify_tool), (Duration::from_secs(2), "sort"));
}

#[test]
fn f28_f29_f30_what_counts_as_a_category() {
    assert_eq!(policy("{}"), Policy { threshold: 0.6, fallback: "general".into(), builtin: true });
    let yaml = "classification: {confidence_threshold: 0.25, fallback_category: other}";
    assert_eq!(policy(yaml), Policy { threshold: 0.25, fallback: "other".into(), builtin: true });
    assert!(policy("classifier: {category_model: {model_id: models/x}}").builtin);
}

#[test]
fn x44_a_program_is_started_with_its_arguments_and_variables() {
    let yaml = "
classification:
  type: mcp
  mcp_server: {transport: stdio, command: sorter, args: [--fast], env: {KEY: '${MCP_API_KEY}'}}
";
    let Transport::Stdio { command, args, env } = settings(yaml).transport else { panic!("it is a program") };
    assert_eq!(
        (command.name().to_str(), args, env["KEY"].expose()),
        (Some("sorter"), vec!["--fast".to_owned()], "sk-1")
    );
}

#[test]
fn f32_two_sections_that_agree_are_fine_and_complete_each_other() {
    let settings = settings(
        "
classification:
  type: mcp
  mcp_server: {url: 'http://localhost:1/mcp', timeout: 30s}
classifier:
  mcp_category_model: {url: 'http://localhost:1/mcp', timeout_seconds: 30, tool_name: sort}
",
    );
    assert_eq!((url(&settings), &*settings.classify_tool), ("http://localhost:1/mcp", "sort"));
}

#[test]
fn x24_with_both_sections_the_newer_ones_timeout_counts() {
    let yaml = "classification: {type: mcp}\nclassifier: {mcp_category_model: {enabled: true}}";
    assert_eq!(settings(yaml).timeout, Duration::from_secs(5));
}

#[track_caller]
fn assert_diagnostics(yaml: &str, expected: &[&str]) {
    let mistakes = ConfigMachine::new().project(yaml).diagnostics();
    let bare: Vec<&str> = mistakes.iter().map(|line| line.trim_start_matches("project/corbie.yaml:")).collect();
    assert_eq!(bare, expected);
}

#[test]
fn f32_two_sections_that_disagree_are_a_mistake_that_names_both_keys() {
    let disagree = |place: &str, older: &str, newer: &str| {
        format!(
            "{place}: classifier.mcp_category_model.{older}: conflicts with `classification.{newer}`; remove one of them"
        )
    };
    assert_diagnostics(
        "classification: {type: builtin}\nclassifier: {mcp_category_model: {enabled: true}}",
        &[&disagree("2:35", "enabled", "type")],
    );
    assert_diagnostics(
        "classification: {type: mcp}\nclassifier: {mcp_category_model: {enabled: false}}",
        &[&disagree("2:35", "enabled", "type")],
    );
    assert_diagnostics(
        "
classification: {type: mcp, confidence_threshold: 0.5, mcp_server: {url: 'http://localhost:1/mcp'}}
classifier:
  mcp_category_model:
    url: http://localhost:2/mcp
    threshold: 0.6
",
        &[&disagree("5:5", "url", "mcp_server.url"), &disagree("6:5", "threshold", "confidence_threshold")],
    );
}

#[test]
fn f26_x44_what_cannot_be_sent_or_started_is_a_mistake() {
    let server = |keys: &str| format!("classification: {{type: mcp, mcp_server: {{{keys}}}}}");
    assert_diagnostics(
        &server("headers: {'a b': x}"),
        &["1:52: classification.mcp_server.headers.\"a b\": is not a valid header name; use letters, digits and `-`"],
    );
    assert_diagnostics(
        &server("headers: {Host: x}"),
        &["1:52: classification.mcp_server.headers.Host: is set by the protocol; remove it"],
    );
    assert_diagnostics(
        &server("headers: {X: \"a\\nb\"}"),
        &[
            "1:55: classification.mcp_server.headers.X: must be one line of visible ASCII characters without leading or trailing spaces",
        ],
    );
    assert_diagnostics(
        &server("transport: stdio"),
        &[
            "1:42: classification.mcp_server.transport: is `stdio`, which requires a command; set `classification.mcp_server.command`",
        ],
    );
    for url in ["localhost:8090", "ftp://a.example", "http://a.example/#x"] {
        assert_diagnostics(
            &server(&format!("url: '{url}'")),
            &["1:47: classification.mcp_server.url: must be a URL such as `https://api.example/v1`"],
        );
    }
    assert_diagnostics(
        &server("url: 'http://me:key@a.example/mcp'"),
        &["1:42: classification.mcp_server.url: must not contain credentials; send them in `headers`"],
    );
}

#[test]
fn s01_a_header_is_not_shown() {
    let machine = ConfigMachine::new()
        .project("classification: {mcp_server: {headers: {Authorization: 'Bearer ${KEY}'}}}")
        .variable("KEY", "sk-marker");
    let loaded = machine.try_load().unwrap();
    let shown = serde_json::to_string(&loaded.config).unwrap();
    assert!(shown.contains(r#""Authorization":"***""#), "{shown}");
    assert!(!format!("{loaded:?}{shown}").contains("sk-marker"));
}
