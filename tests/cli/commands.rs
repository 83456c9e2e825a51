//! Command line: start without arguments, `--version`, `tools`, `config`, and errors.

use serde_json::{Value, json};

use crate::process::{call, corbie, request};
#[cfg(unix)]
use crate::terminal::run_in_terminal;

const LIST: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";

fn names(listing: &Value) -> Vec<&str> {
    listing["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

// === starting ===

#[test]
fn a02_without_arguments_it_speaks_on_stdin_and_stdout() {
    let mut server = corbie("").start();
    let opened = server.send_and_receive(&request(1, "initialize", json!({ "protocolVersion": "2025-06-18" })));
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let pong = server.send_and_receive(&request("two", "ping", json!({})));
    assert_eq!(pong, json!({ "jsonrpc": "2.0", "id": "two", "result": {} }));
    server.close_stdin();
    let ended = server.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""));
}

#[test]
fn a02_the_stdio_command_does_the_same() {
    let ended = corbie("stdio").run(LIST);
    assert_eq!(ended.code, Some(0));
    assert_eq!(ended.messages()[0]["id"], 1);
}

#[cfg(unix)]
#[test]
fn a02_in_a_terminal_it_prints_help() {
    let Some(ended) = run_in_terminal(&format!("'{}'", env!("CARGO_BIN_EXE_corbie")), "") else { return };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // On a terminal, colour sequences are between the words.
    assert!(ended.stdout.contains("Usage:") && ended.stdout.contains("serve"), "{ended:?}");
    assert!(!ended.stdout.contains("serving"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn a02_the_stdio_command_speaks_in_a_terminal_too() {
    let line = format!("'{}' stdio", env!("CARGO_BIN_EXE_corbie"));
    let Some(ended) = run_in_terminal(&line, "{\"jsonrpc\":\"2.0\",\"id\":\"typed\",\"method\":\"ping\"}\n") else {
        return;
    };
    assert!(ended.stdout.contains(r#"{"jsonrpc":"2.0","id":"typed","result":{}}"#), "{ended:?}");
    assert!(!ended.stdout.contains("Usage:"), "{ended:?}");
}

#[test]
fn a05_the_first_message_already_finds_every_tool() {
    let listed: Value = serde_json::from_str(&corbie("tools list --json").run("").stdout).unwrap();
    let first = corbie("").run(LIST).messages().remove(0);
    assert_eq!(names(&first["result"]), names(&listed));
    for builtin in ["list_registered_tools", "get_tool_schema", "inspect_server"] {
        assert!(names(&listed).contains(&builtin), "{listed}");
    }

    let mut server = corbie("serve --port 0").start();
    let first = server.client().post("/mcp/tools/list", &json!({})).json();
    assert_eq!(names(&first), names(&listed));
}

#[test]
fn a14_the_version_is_the_same_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let ended = corbie("--version").run("");
    assert_eq!((ended.code, ended.stdout), (Some(0), format!("corbie {version}\n")));

    let mut server = corbie("serve --stdio --port 0").start();
    let client = server.client();
    let opened = server.send_and_receive(&request(1, "initialize", json!({})))["result"].clone();
    assert_eq!(opened["serverInfo"], json!({ "name": "corbie", "version": version }));
    assert_eq!(client.post("/mcp/initialize", &json!({})).json()["serverInfo"]["version"], version);
    assert_eq!(client.get("/health").json()["version"], version);
}

// === mistakes ===

#[test]
fn a06_a_mistake_in_the_file_ends_the_start_with_one_line_that_names_key_and_file() {
    for arguments in ["", "stdio", "serve --port 0", "--http --port 0", "tools list", "config show"] {
        let ended = corbie(arguments).file("corbie.yaml", "server:\n  nmae: x\n").run(LIST);
        let line = ended.startup_error();
        assert!(line.starts_with("corbie: "), "{line}");
        assert!(line.contains("corbie.yaml:2:3: server.nmae: "), "{line}");
        assert!(line.ends_with("did you mean `name`?"), "{line}");
    }
}

#[test]
fn a06_a_mistake_in_a_variable_or_a_flag_is_named_too() {
    let ended = corbie("").variable("CORBIE_SERVER__LIMITS__MAX_BATCH", "many").run(LIST);
    let line = ended.startup_error();
    assert!(line.contains("CORBIE_SERVER__LIMITS__MAX_BATCH") && line.contains("server.limits.max_batch"), "{line}");

    let ended = corbie("--config missing.yaml").run(LIST);
    assert!(ended.startup_error().contains("missing.yaml: file not found"), "{ended:?}");

    let ended = corbie("--log-level loud").run(LIST);
    assert!(ended.startup_error().contains("log.level"), "{ended:?}");
}

#[test]
fn a06_a_file_that_is_not_yaml_at_all_is_told_with_its_place() {
    let ended = corbie("").file("corbie.yaml", "server: [1,\n").run(LIST);
    assert!(ended.startup_error().contains("corbie.yaml:"), "{ended:?}");
}

#[test]
fn a06_an_address_that_cannot_be_served_names_the_key_and_the_file_that_asked_for_it() {
    let ended = corbie("serve").file("corbie.yaml", "server:\n  listen: [\"0.0.0.0:0\"]\n").run("");
    let line = ended.startup_error();
    assert!(line.contains("server."), "{line}");
    assert!(line.contains("corbie.yaml"), "{line}");
}

#[test]
fn a06_nothing_is_served_before_the_whole_configuration_was_found_good() {
    let listen = "server:\n  listen: [\"127.0.0.1:0\", \"0.0.0.0:0\"]\n";
    let ended = corbie("serve").file("corbie.yaml", listen).run("");
    // One line: no listener may be logged before the error.
    ended.startup_error();
}

#[test]
fn a06_what_cannot_be_typed_is_told_on_stderr() {
    for arguments in
        ["--trust everybody", "--port 65536 --http", "serve --port x", "fly", "--nonsense", "stdio --port 1"]
    {
        let ended = corbie(arguments).run(LIST);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments}");
        assert!(ended.stderr.starts_with("error: "), "{arguments}: {}", ended.stderr);
    }
}

// === config ===

#[test]
fn a17_config_show_masks_the_token() {
    let yaml = "server:\n  auth: bearer\n  token: s3cr3t-3b9c358f36f0a31b6ad3e14f309c7cf198ac9246\n";
    for arguments in ["config show", "config show --json"] {
        let ended = corbie(arguments).file("corbie.yaml", yaml).run("");
        assert_eq!(ended.code, Some(0));
        assert!(ended.stdout.contains("\"***\"") && !ended.stdout.contains("s3cr3t"), "{}", ended.stdout);
        let ended = corbie(arguments).variable("MCP_API_KEY", "s3cr3t-in-variable").run("");
        assert!(ended.stdout.contains("\"***\"") && !ended.stdout.contains("s3cr3t"), "{}", ended.stdout);
    }
}

#[test]
fn a17_config_validate_checks_the_files_found_or_the_one_given() {
    let ended = corbie("config validate").run("");
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (Some(0), "OK\n", ""));

    let bad = "log: {level: loud}\nserver: {nmae: x}\n";
    let ended = corbie("config validate other.yaml").file("other.yaml", bad).run("");
    assert_eq!(ended.code, Some(1));
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "every mistake has its line: {lines:?}");
    assert!(lines[0].contains("other.yaml:1:14: log.level: "), "{lines:?}");
    assert!(lines[1].contains("other.yaml:2:10: server.nmae: "), "{lines:?}");

    let ended = corbie("config validate").file("other.yaml", bad).run("");
    assert_eq!(ended.code, Some(0), "a file of another name is nobody's configuration");
}

#[test]
fn a17_config_list_tells_which_file_is_active() {
    let setup = corbie("config list").file("corbie.toml", "").file("corbie.json", "{}");
    let home = setup.folder().join(".config/corbie/corbie.yaml").display().to_string();
    let ended = setup.run("");
    assert_eq!(ended.code, Some(0));
    let states: Vec<(&str, &str)> = ended
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("project"))
        .filter_map(|line| line.trim().split_once("  "))
        .map(|(state, path)| (state, path.rsplit('/').next().unwrap()))
        .collect();
    assert_eq!(
        states,
        [
            ("absent", "corbie.yaml"),
            ("absent", "corbie.yml"),
            ("active", "corbie.toml (approved)"),
            ("shadowed", "corbie.json")
        ]
    );
    assert!(ended.stdout.contains(&home), "the user's folder follows HOME: {}", ended.stdout);
}

#[test]
fn a17_config_schema_prints_the_committed_schema() {
    let ended = corbie("config schema").run("");
    let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
    let committed = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/schema/config.schema.json")).unwrap();
    assert_eq!(printed, serde_json::from_str::<Value>(&committed).unwrap());
}

// === tools ===

#[test]
fn a17_tools_list_shows_one_line_per_tool() {
    let ended = corbie("tools list").run("");
    let json: Value = serde_json::from_str(&corbie("tools list --json").run("").stdout).unwrap();
    assert_eq!(ended.code, Some(0));
    let first_words: Vec<&str> = ended.stdout.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(first_words, names(&json));
    for tool in json["tools"].as_array().unwrap() {
        assert!(tool["inputSchema"]["type"] == "object" && tool["metadata"]["destructive"].is_boolean(), "{tool}");
    }
}

#[test]
fn a17_tools_call_prints_what_the_tool_gives() {
    let ended = corbie("tools call get_tool_schema").argument(r#"{"name": "inspect_server"}"#).run("");
    assert_eq!(ended.code, Some(0));
    let told = ended.stdout.strip_suffix('\n').unwrap();
    let beginning =
        r#"{"name":"inspect_server","inputSchema":{"type":"object","properties":{"audit":{"type":"integer""#;
    assert!(told.starts_with(beginning) && told.ends_with("}}}}"), "{told}");
    let ended = corbie("tools call --json get_tool_schema").argument(r#"{"name": "inspect_server"}"#).run("");
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["isError"], false);
    assert_eq!(result["structuredContent"]["name"], "inspect_server");

    let ended = corbie("tools call inspect_server").run("");
    assert_eq!(serde_json::from_str::<Value>(&ended.stdout).unwrap()["name"], "corbie");
}

#[test]
fn a17_tools_call_exits_with_1_when_the_tool_failed() {
    let ended = corbie("tools call get_tool_schema").argument(r#"{"name": "no_such_tool"}"#).run("");
    assert_eq!(ended.code, Some(1));
    let printed: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(printed["error"]["type"], "ToolNotFoundError");

    let ended = corbie("tools call --json get_tool_schema").argument(r#"{"name": 5}"#).run("");
    assert_eq!(ended.code, Some(1));
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(result["isError"], true);
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text["error"]["type"], "SchemaError");
}

#[test]
fn a17_a_call_that_cannot_be_made_is_one_line_on_stderr() {
    let ended = corbie("tools call get_tool_shema").run("");
    assert_eq!(ended.code, Some(1));
    assert!(ended.startup_error().contains("did you mean `get_tool_schema`?"), "{ended:?}");
}

#[test]
fn a17_arguments_that_are_no_object_are_a_mistake_of_the_command_line() {
    for arguments in ["not json", "[1]", "\"text\"", "{"] {
        let ended = corbie("tools call get_tool_schema").argument(arguments).run("");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains("JSON") && ended.stderr.contains("use the form"), "{ended:?}");
    }
}

#[test]
fn a17_the_command_line_and_a_client_get_the_same_result() {
    let arguments = json!({ "name": "list_registered_tools" });
    let printed = corbie("tools call --json get_tool_schema").argument(arguments.to_string()).run("").stdout;
    let answered = corbie("").start().send_and_receive(&call(1, "get_tool_schema", arguments));
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), answered["result"]);
}
