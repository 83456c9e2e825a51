//! What goes to stderr, and that nothing of it goes to stdout.

use serde_json::{Value, json};

use crate::process::{call, corbie, request};

/// Every sort of message, good and bad, and how many lines answer it.
fn conversation() -> (String, usize) {
    let modern = json!({ "_meta": crate::process::modern_meta() });
    let lines = [
        (request(1, "initialize", json!({ "protocolVersion": "2025-11-25" })).to_string(), 1),
        (json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string(), 0),
        (String::new(), 0),
        ("this is no JSON".into(), 1),
        ("\u{1b}[31m{}".into(), 1),
        ("[]".into(), 1),
        (json!({ "id": 2, "method": "ping" }).to_string(), 1),
        (request(3, "no/such/method", json!({})).to_string(), 1),
        (call(4, "no_such_tool", json!({})).to_string(), 1),
        (call(5, "get_tool_schema", json!({ "name": "two\nlines" })).to_string(), 1),
        (call(6, "inspect_server", json!({})).to_string(), 1),
        (json!([request(7, "ping", json!({})), request(8, "tools/list", json!({}))]).to_string(), 1),
        (json!({ "jsonrpc": "2.0", "method": "no/such/notification", "params": [1] }).to_string(), 0),
        (request(9, "server/discover", modern).to_string(), 1),
        (request(10, "resources/read", json!({ "uri": "corbie://metrics/tools" })).to_string(), 1),
        (json!({ "jsonrpc": "2.0", "id": 99, "result": {} }).to_string(), 0),
    ];
    let text: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
    (text, lines.iter().map(|(_, answers)| answers).sum())
}

#[track_caller]
fn is_json_rpc(message: &Value) {
    match message {
        Value::Array(members) => members.iter().for_each(is_json_rpc),
        message => {
            assert_eq!(message["jsonrpc"], "2.0", "{message}");
            let forms = ["result", "error", "method"].map(|member| message.get(member).is_some());
            assert_eq!(forms.iter().filter(|form| **form).count(), 1, "{message}");
        }
    }
}

#[test]
fn a10_z14_stdout_carries_nothing_but_json_rpc_lines() {
    for arguments in ["", "stdio", "--log-level debug stdio"] {
        let (input, answers) = conversation();
        let ended = corbie(arguments).variable("LOG_LEVEL", "debug").variable("RUST_BACKTRACE", 1).run(&input);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let messages = ended.messages();
        messages.iter().for_each(is_json_rpc);
        assert_eq!(messages.len(), answers, "{messages:#?}");
        assert!(ended.out.ends_with('\n'));
        assert!(ended.err.contains("DEBUG"), "there was something to log: {}", ended.err);
    }
}

#[test]
fn a10_traffic_on_other_listeners_does_not_reach_stdout() {
    let mut server = corbie("serve --stdio --port 0").variable("LOG_LEVEL", "debug").start();
    let client = server.client();
    client.get("/health");
    client.get("/metrics");
    client.post("/mcp/tools/call", &json!({ "name": "no_such_tool" }));
    client.call("POST", "/mcp", &[("Origin", "http://evil.example")], "{}");
    let pong = server.ask(&request(1, "ping", json!({})));
    assert_eq!(pong, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    server.close_stdin();
    server.logged("ping");
}

/// The levels of the lines that were logged.
fn levels(log: &str) -> Vec<&str> {
    let mut levels: Vec<&str> = log.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

/// Starts with something to warn of, is asked once, and ends.
fn log_at(level: Option<&str>) -> crate::process::Ended {
    // Kubernetes sets such a variable; it is no setting of ours, which is worth a warning.
    let setup = corbie("").variable("CORBIE_PORT", "tcp://10.0.0.1:80");
    let setup = match level {
        Some(level) => setup.variable("LOG_LEVEL", level),
        None => setup,
    };
    setup.run(&format!("{}\n", request(1, "ping", json!({}))))
}

#[test]
fn a11_log_level_takes_four_words() {
    for (level, expected) in [
        (Some("debug"), vec!["DEBUG", "INFO", "WARN"]),
        (Some("info"), vec!["INFO", "WARN"]),
        (Some("warn"), vec!["WARN"]),
        (Some("error"), vec![]),
        (None, vec!["INFO", "WARN"]),
        (Some(""), vec!["INFO", "WARN"]),
    ] {
        let ended = log_at(level);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(levels(&ended.err), expected, "{level:?}: {}", ended.err);
    }
}

#[test]
fn a11_another_word_is_a_configuration_error() {
    for level in ["trace", "verbose", "off", "1", "info,hyper=debug"] {
        let ended = log_at(Some(level));
        let line = ended.refusal();
        assert!(line.contains("LOG_LEVEL") && line.contains("log.level"), "{line}");
        assert!(line.contains("`debug`, `info`, `warn` or `error`"), "{line}");
    }
}

#[test]
fn a11_the_flag_wins_over_the_variable_and_the_variable_over_the_file() {
    let log = |arguments: &str, variable: &str| {
        let setup = corbie(arguments).file("corbie.yaml", "log: {level: error}").variable("CORBIE_PORT", "x");
        levels(&setup.variable("LOG_LEVEL", variable).run("").err).join(" ")
    };
    assert_eq!(log("", ""), "");
    assert_eq!(log("", "warn"), "WARN");
    assert_eq!(log("--log-level info", "warn"), "INFO WARN");
}

/// The schema of the settings says so: requests are told at `debug`, one line each, and not before.
#[test]
fn a11_each_request_has_one_line_at_debug_and_none_at_info() {
    let requests = [call("first", "inspect_server", json!({})), request("second", "tools/list", json!({}))];
    let input = requests.map(|request| format!("{request}\n")).concat();
    for (level, expected) in [("debug", 1), ("info", 0)] {
        let ended = corbie("").variable("LOG_LEVEL", level).run(&input);
        for method in ["tools/call", "tools/list"] {
            let lines: Vec<&str> = ended.err.lines().filter(|line| line.contains(method)).collect();
            assert_eq!(lines.len(), expected, "{level} {method}: {}", ended.err);
        }
    }
}

#[test]
fn a10_a_log_that_is_not_read_on_a_terminal_has_no_colours() {
    let (input, _) = conversation();
    let ended = corbie("").variable("LOG_LEVEL", "debug").run(&input);
    assert!(!ended.err.contains('\u{1b}'), "{}", ended.err);
}

#[test]
fn s15_what_a_tool_is_given_is_not_logged_at_info() {
    let marker = "mark-4711";
    let input = [
        call(1, "get_tool_schema", json!({ "name": marker })),
        call(2, "get_tool_schema", json!({ "name": [marker] })),
        call(3, "inspect_server", json!({ marker: marker })),
    ];
    let ended = corbie("").run(&input.map(|message| format!("{message}\n")).concat());
    assert_eq!(ended.messages().len(), 3);
    assert!(!ended.err.contains(marker), "{}", ended.err);
}
