//! Log output on stderr, and none of it on stdout.

use serde_json::{Value, json};

use crate::process::{call, corbie, request};

/// Every kind of message, valid and invalid, with the number of response lines.
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
fn assert_json_rpc(message: &Value) {
    match message {
        Value::Array(members) => members.iter().for_each(assert_json_rpc),
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
        messages.iter().for_each(assert_json_rpc);
        assert_eq!(messages.len(), answers, "{messages:#?}");
        assert!(ended.stdout.ends_with('\n'));
        assert!(ended.stderr.contains("DEBUG"), "there was something to log: {}", ended.stderr);
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
    let pong = server.send_and_receive(&request(1, "ping", json!({})));
    assert_eq!(pong, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    server.close_stdin();
    server.wait_for_log("ping");
}

/// The levels of the logged lines.
fn levels(log: &str) -> Vec<&str> {
    let mut levels: Vec<&str> = log.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    levels.sort_unstable();
    levels.dedup();
    levels
}

/// Starts with a configuration warning, answers one request, and exits.
fn log_at(level: Option<&str>) -> crate::process::ProcessOutput {
    // Kubernetes sets such a variable. It is not a setting of ours, which causes a warning.
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
        assert_eq!(levels(&ended.stderr), expected, "{level:?}: {}", ended.stderr);
    }
}

#[test]
fn a11_another_word_is_a_configuration_error() {
    for level in ["trace", "verbose", "off", "1", "info,hyper=debug"] {
        let ended = log_at(Some(level));
        let line = ended.startup_error();
        assert!(line.contains("LOG_LEVEL") && line.contains("log.level"), "{line}");
        assert!(line.contains("`debug`, `info`, `warn` or `error`"), "{line}");
    }
}

#[test]
fn a11_the_flag_wins_over_the_variable_and_the_variable_over_the_file() {
    let log = |arguments: &str, variable: &str| {
        let setup = corbie(arguments).file("corbie.yaml", "log: {level: error}").variable("CORBIE_PORT", "x");
        levels(&setup.variable("LOG_LEVEL", variable).run("").stderr).join(" ")
    };
    assert_eq!(log("", ""), "");
    assert_eq!(log("", "warn"), "WARN");
    assert_eq!(log("--log-level info", "warn"), "INFO WARN");
}

/// As the settings schema documents: requests are logged at `debug`, one line each, and not at `info`.
#[test]
fn a11_each_request_has_one_line_at_debug_and_none_at_info() {
    let requests = [call("first", "inspect_server", json!({})), request("second", "tools/list", json!({}))];
    let input = requests.map(|request| format!("{request}\n")).concat();
    for (level, expected) in [("debug", 1), ("info", 0)] {
        let ended = corbie("").variable("LOG_LEVEL", level).run(&input);
        for method in ["tools/call", "tools/list"] {
            let lines: Vec<&str> = ended.stderr.lines().filter(|line| line.contains(method)).collect();
            assert_eq!(lines.len(), expected, "{level} {method}: {}", ended.stderr);
        }
    }
}

#[test]
fn a10_a_log_that_is_not_read_on_a_terminal_has_no_colours() {
    let (input, _) = conversation();
    let ended = corbie("").variable("LOG_LEVEL", "debug").run(&input);
    assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
}

/// Text from a peer that controls a terminal or starts a line: C0 and C1 control characters, line separators, and
/// bidirectional overrides.
const HOSTILE_TEXT: &str =
    "\u{1b}[2J\u{1b}]0;owned\u{7}\r\n2026-01-01T00:00:00Z ERROR forged\u{9b}31m\u{85}\u{2028}\u{202e}\u{2066}";

/// Sends hostile text in every field, over both transports, and returns the complete log.
fn log_of_hostile_client(format: &str) -> String {
    let setup = corbie("serve --stdio --port 0 --log-level debug").variable("LOG_FORMAT", format);
    let file = setup.folder().join(format!("{}.txt", HOSTILE_TEXT.replace('/', "")));
    std::fs::write(&file, format!("hello {HOSTILE_TEXT}")).unwrap();
    let mut server = setup.start();
    let client = server.client();
    let info = json!({ "name": HOSTILE_TEXT, "version": HOSTILE_TEXT });
    for message in [
        request(
            HOSTILE_TEXT,
            "initialize",
            json!({ "protocolVersion": HOSTILE_TEXT, "clientInfo": info, "capabilities": {} }),
        ),
        request(1, HOSTILE_TEXT, json!({})),
        call(2, HOSTILE_TEXT, json!({})),
        call(3, "get_tool_schema", json!({ "name": HOSTILE_TEXT })),
        call(4, "inspect_server", json!({ HOSTILE_TEXT: HOSTILE_TEXT })),
        call(5, "chat_completion", json!({ "prompt": HOSTILE_TEXT, "model": HOSTILE_TEXT })),
        call(6, "classify_text", json!({ "text": HOSTILE_TEXT })),
        call(7, "knowledge-add", json!({ "file_path": file })),
        call(
            8,
            "knowledge-add",
            json!({ "file_path": HOSTILE_TEXT, "knowledge_base": HOSTILE_TEXT, "tags": [HOSTILE_TEXT] }),
        ),
        call(9, "knowledge-search", json!({ "query": HOSTILE_TEXT, "knowledge_base": HOSTILE_TEXT })),
        request(10, "resources/read", json!({ "uri": HOSTILE_TEXT })),
        request(11, "completion/complete", json!({ "prompt": HOSTILE_TEXT, "model": HOSTILE_TEXT })),
    ] {
        server.send_and_receive(&message);
        client.post("/mcp", &message);
    }
    // The subset that a header or a path can contain.
    let bytes = "a\u{9b}31m\u{202e}\t";
    for name in ["User-Agent", "Origin", "Host", "Authorization", "Mcp-Session-Id", "Mcp-Method", "X-Request-Id"] {
        client.call("POST", "/mcp", &[(name, bytes)], &call(1, "inspect_server", json!({})).to_string());
    }
    client.get("/%1b%5b2J%0d%0aforged%c2%9b");
    client.post("/mcp/%1b%5b2J%0a", &json!({}));
    client.post(
        "/v1/chat/completions",
        &json!({ "model": HOSTILE_TEXT, "messages": [{ "role": HOSTILE_TEXT, "content": "" }] }),
    );
    server.terminate();
    server.wait().stderr
}

#[test]
fn a10_nothing_that_a_peer_says_controls_a_terminal_or_begins_a_line() {
    let harmful =
        |letter: char| letter.is_control() || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let text = log_of_hostile_client("text");
    assert!(text.lines().all(|line| line.starts_with("20") && !line.starts_with("2026-01-01")), "{text}");
    assert!(text.contains("\\u{1b}[2J"), "something of it was logged: {text}");
    let json = log_of_hostile_client("json");
    for line in json.lines() {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(object["time"].is_string() && object["level"].is_string() && object["message"].is_string(), "{line}");
    }
    for log in [text, json] {
        let found: Vec<&str> = log.lines().filter(|line| line.contains(harmful)).collect();
        assert!(found.is_empty() && !log.contains('\r'), "{found:?}");
    }
}

#[test]
fn a10_the_format_is_a_setting_and_a_variable_and_text_unless_said() {
    let log = |setup: crate::process::TestCommand| setup.run(&format!("{}\n", request(1, "ping", json!({})))).stderr;
    let is_json = |log: &str| log.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()) && !log.is_empty();
    assert!(!is_json(&log(corbie(""))));
    assert!(is_json(&log(corbie("").file("corbie.yaml", "log: {format: json}"))));
    assert!(is_json(&log(corbie("").variable("LOG_FORMAT", "json"))));
    assert!(!is_json(&log(corbie("").file("corbie.yaml", "log: {format: json}").variable("LOG_FORMAT", "text"))));
    let refused = corbie("").variable("LOG_FORMAT", "xml").run("");
    let line = refused.startup_error();
    assert!(line.contains("LOG_FORMAT") && line.contains("`text` or `json`"), "{line}");
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
    assert!(!ended.stderr.contains(marker), "{}", ended.stderr);
}
