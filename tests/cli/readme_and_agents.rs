//! A-18: README.md and AGENTS.md match the program.

use std::path::Path;

use serde_json::{Value, json};

use crate::process::{corbie, request};

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The fenced blocks of a document: language and content.
fn blocks(document: &str) -> Vec<(&str, &str)> {
    document.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n')).collect()
}

/// The content of the first block in `language` that contains `text`, and the block after it.
#[track_caller]
fn block<'a>(document: &'a str, language: &str, text: &str) -> (&'a str, Option<(&'a str, &'a str)>) {
    let blocks = blocks(document);
    let found = blocks.iter().position(|(kind, content)| *kind == language && content.contains(text));
    let found = found.unwrap_or_else(|| panic!("no `{language}` block with {text:?}"));
    (blocks[found].1, blocks.get(found + 1).copied())
}

/// The text between two markers.
#[track_caller]
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let rest = text.split_once(start).unwrap_or_else(|| panic!("no {start:?} in {text:?}")).1;
    rest.split_once(end).unwrap_or_else(|| panic!("no {end:?} in {rest:?}")).0
}

#[test]
fn a18_there_are_documents_for_people_and_for_agents() {
    for name in ["README.md", "AGENTS.md"] {
        assert!(read(name).len() > 500, "{name}");
    }
}

#[test]
fn a18_the_first_call_of_the_readme_gives_the_reply_it_shows() {
    let readme = read("README.md");
    let (command, next) = block(&readme, "sh", "curl");
    let (language, documented) = next.expect("a reply after the call");
    assert_eq!(language, "json");
    let path = between(command, "http://localhost:8090", " ");
    assert!(command.contains("-H 'Content-Type: application/json'"));
    let body = between(command, "-d '", "'");

    let mut server = corbie("serve --port 0").start();
    let reply = server.client().call("POST", path, &[], body);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.body, documented.trim_end());
}

#[test]
fn a18_the_start_log_is_as_the_readme_shows_it() {
    let readme = read("README.md");
    let (documented, _) = block(&readme, "text", "listening");
    let mut server = corbie("serve --port 0").start();
    let port = server.port().to_string();
    let line = server.wait_for_log("listening");
    let first = documented.lines().next().unwrap().replace("8090", &port);
    assert!(line.trim_end().ends_with(&first), "documented: {first:?}, logged: {line:?}");
}

#[test]
fn a18_the_configuration_for_clients_starts_a_server() {
    let readme = read("README.md");
    let (example, _) = block(&readme, "json", "mcpServers");
    let example: Value = serde_json::from_str(example).unwrap();
    let server = &example["mcpServers"]["corbie"];
    assert!(server["command"].as_str().unwrap().ends_with("corbie"));
    let arguments: Vec<&str> = server["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut server = corbie(&arguments.join(" ")).start();
    assert!(server.send_and_receive(&request(0, "initialize", json!({})))["result"]["serverInfo"].is_object());
}

#[test]
fn a18_every_command_of_the_readme_can_be_typed() {
    let readme = read("README.md");
    let mut commands = Vec::new();
    for row in readme.lines().filter(|line| line.starts_with("| `corbie")) {
        let cell = row.trim_start_matches('|').split('|').next().unwrap();
        let mut whole = Vec::new();
        for span in cell.split('`').skip(1).step_by(2) {
            let words: Vec<&str> = span.split(' ').collect();
            match words.split_first() {
                Some((&"corbie", rest)) => whole = rest.to_vec(),
                // `corbie config show`, `validate`: the last word replaces the one before.
                _ => *whole.last_mut().unwrap() = span,
            }
            commands.push(whole.join(" "));
        }
    }
    assert!(commands.len() >= 10, "{commands:?}");
    for command in commands {
        let ended = corbie(&command).argument("--help").run("");
        assert_eq!(ended.code, Some(0), "corbie {command}: {}", ended.stderr);
    }
}

#[test]
fn a18_a_mistake_is_told_in_the_words_of_the_readme() {
    let readme = read("README.md");
    let documented = readme.lines().find(|line| line.starts_with("corbie: corbie.yaml:")).expect("an example");
    // The error of the example is in line 3, column 5.
    let ended = corbie("").file("corbie.yaml", "server:\n  limits:\n    max_batchs: 10\n").run("");
    let line = ended.startup_error();
    let path = between(line, "corbie: ", "corbie.yaml:");
    assert_eq!(line.replace(path, ""), documented);
}

#[test]
fn a18_the_settings_of_the_readme_are_good() {
    let readme = read("README.md");
    let (yaml, _) = block(&readme, "yaml", "listen");
    let ended = corbie("config validate")
        .file("corbie.yaml", yaml)
        .variable("MCP_API_KEY", "9b16b44d0e0a5cac4f968befb0b5b5eba913f9ef")
        .run("");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "OK\n"));
    // "without one such an address is refused"
    let ended = corbie("serve").file("corbie.yaml", yaml).run("");
    assert!(ended.startup_error().contains("MCP_API_KEY"), "{ended:?}");

    let variable = between(&readme, "environment variable, `", "`");
    let (name, value) = variable.split_once('=').unwrap();
    let ended = corbie("config show --json").variable(name, value).run("");
    let shown: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(shown["server"]["tool_timeout_seconds"].to_string(), value);
}

/// The loop of AGENTS.md, step by step, in REST style.
#[test]
fn a18_m73_the_loop_for_agents_works_with_tools_alone() {
    let agents = read("AGENTS.md");
    let mut server = corbie("serve --port 0").start();
    let client = server.client();
    let tool = |name: &str, arguments: Value| {
        assert!(agents.contains(&format!("`{name}")), "AGENTS.md tells of {name}");
        let result = client.post("/mcp/tools/call", &json!({ "name": name, "arguments": arguments })).json();
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        if result["isError"] == false {
            assert_eq!(result["structuredContent"], text);
        }
        (result["isError"].as_bool().unwrap(), text)
    };
    let (failed, found) = tool("list_registered_tools", json!({ "refresh": true }));
    assert!(!failed);
    assert_eq!(found["count"], found["tools"].as_array().unwrap().len());
    for found in found["tools"].as_array().unwrap() {
        let (failed, schema) = tool("get_tool_schema", json!({ "name": found["name"] }));
        assert!(!failed);
        assert_eq!(schema["inputSchema"], found["inputSchema"]);
    }
    let (failed, error) = tool("get_tool_schema", json!({ "name": 5 }));
    assert!(failed);
    assert_eq!(error["error"]["type"], "SchemaError");
    assert!(error["error"]["message"].is_string() && error["error"].get("details").is_some());

    let (_, learnt) = tool("inspect_server", json!({}));
    let metrics = client.post("/mcp/resources/read", &json!({ "uri": "corbie://metrics/tools" })).json();
    let metrics: Value = serde_json::from_str(metrics["contents"][0]["text"].as_str().unwrap()).unwrap();
    for told in [&learnt["tools"], &metrics["tools"]] {
        assert_eq!(told["get_tool_schema"]["errors_by_kind"]["SchemaError"], 1, "{told}");
        assert_eq!(told["get_tool_schema"]["calls"], found["count"].as_u64().unwrap() + 1, "{told}");
    }
    assert!(agents.contains("`corbie://metrics/tools`"));
}

#[test]
fn a18_the_errors_agents_are_told_of_have_their_numbers() {
    let mut server = corbie("").start();
    let answer = server.send_and_receive(&crate::process::call(1, "inspect_servr", json!({})));
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["data"]["error_type"], "ToolNotFoundError");
    assert!(answer["error"]["message"].as_str().unwrap().contains("did you mean `inspect_server`?"), "{answer}");
    let answer = server.send_and_receive(&crate::process::call(2, "inspect-server", json!({})));
    assert_eq!(answer["result"]["isError"], false, "names may be written with `-` or `_`");
}

#[test]
fn v16_the_tests_of_the_core_run_by_name_with_one_command() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("test");
    let listed = std::process::Command::new(script).arg("--list").output().expect("the script runs");
    let listed = String::from_utf8(listed.stdout).expect("text");
    assert!(listed.lines().any(|line| line.trim_start().starts_with("core")), "{listed}");
}

#[cfg(unix)]
#[test]
fn v11_one_command_measures_every_target_of_the_protocol() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = std::process::Command::new(root.join("bench/run")).arg("--list").output().unwrap();
    assert!(listed.status.success());
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.lines().any(|line| line.starts_with("slo ") && line.contains("pass or fail")), "{listed}");
    let measured = std::fs::read_to_string(root.join("bench/src/slo.rs")).unwrap();
    for row in ["N-01", "N-02", "N-03", "N-04", "N-05", "N-06", "N-07", "N-08", "N-13"] {
        assert!(measured.contains(&format!("\"{row}\"")), "{row} is not measured");
    }
}
