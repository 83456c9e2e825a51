//! `corbie connect`: output for people and scripts, before and after writing.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::connect::{CLIENTS, Home, program};
use crate::process::corbie;

/// Pasting a complete file over existing content would destroy it, so only the entry is shown.
#[test]
fn v13_instructions_extend_an_existing_file() {
    let shown = |client: &str, text: &str| {
        let (home, path) = Home::with("some/file", text);
        let flags = format!("connect {client} --file {}", path.display());
        let shown = home.run(&flags);
        assert!(shown.contains(&format!("\n  {flags} --write\n").replace("connect", "corbie connect")), "{shown}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "it is only shown");
        shown.replace(&path.display().to_string(), "FILE")
    };
    let program = json!(program());
    let entry = format!("\"corbie\": {{\n  \"command\": {program},\n  \"args\": [\"stdio\"]\n}}\n");

    let servers = shown("cursor", r#"{ "mcpServers": { "a": {}, "b": {} } }"#);
    let told = "Add `corbie` under `mcpServers` in FILE, next to 2 other servers\n\n";
    assert!(servers.starts_with(&format!("{told}{entry}")), "{servers}");
    assert!(servers.contains("Or run this command, which changes nothing else in the file:"), "{servers}");

    let one = shown("vscode", r#"{ "servers": { "a": {} } }"#);
    assert!(one.starts_with("Add `corbie` under `servers` in FILE, next to another server\n\n\"corbie\": {"), "{one}");

    let settings = shown("claude-desktop", r#"{ "globalShortcut": "" }"#);
    let told = "Add `mcpServers` to FILE, next to the other settings\n\n\"mcpServers\": {\n  \"";
    assert!(settings.starts_with(told), "{settings}");

    let toml = shown("codex", "[mcp_servers.docs]\ncommand = 'docs'\n");
    let told = "Add `corbie` under `mcp_servers` in FILE, next to another server\n\n[mcp_servers.corbie]\n";
    assert!(toml.starts_with(told), "{toml}");

    let inline = shown("codex", "mcp_servers = { docs = { command = 'docs' } }\n");
    let told = "Add `corbie` under `mcp_servers` in FILE, next to another server\n\ncorbie = { command = ";
    assert!(inline.starts_with(told), "{inline}");

    let replaced = shown("cursor", r#"{ "mcpServers": { "corbie": { "command": "old" }, "a": {} } }"#);
    assert!(
        replaced.starts_with(&format!(
            "Change the entry `corbie` under `mcpServers` in FILE; its other members can stay\n\n{entry}"
        )),
        "{replaced}"
    );

    for nothing in ["", "{}", r#"{ "mcpServers": {} }"#] {
        let whole = shown("cursor", nothing);
        assert!(whole.starts_with("Paste this into FILE\n\n{\n"), "{whole}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn v13_list_has_all_clients_with_their_state() {
    let (home, _) = Home::with(".cursor/mcp.json", "{ broken");
    home.run("connect copilot --write");
    let listed = home.run("connect");
    let line = |client: &str| {
        listed.lines().find(|line| line.starts_with(client)).unwrap().split_whitespace().collect::<Vec<_>>()
    };
    assert_eq!(line("copilot")[1..3], ["yes", "yes"]);
    assert_eq!(line("cursor")[1..3], ["yes", "unreadable"]);
    assert_eq!(line("codex")[1..3], ["no", "no"]);
    let told: Value = serde_json::from_str(&home.run("connect --json")).unwrap();
    let clients = told["clients"].as_array().unwrap();
    let ids: Vec<&str> = clients.iter().map(|client| client["client"].as_str().unwrap()).collect();
    assert_eq!(ids, CLIENTS.map(|(client, _, _)| client));
    for (told, (_, file, _)) in clients.iter().zip(CLIENTS) {
        assert_eq!(Path::new(told["file"].as_str().unwrap()), home.path(file));
    }
    assert_eq!((&clients[4]["installed"], &clients[4]["connected"]), (&json!(true), &json!(true)));
    assert!(clients[2]["problem"].as_str().unwrap().contains("line 1"), "{told}");
}

#[cfg(target_os = "linux")]
#[test]
fn v13_missing_program_is_listed_until_it_is_replaced() {
    let entry = json!({ "mcpServers": { "corbie": { "command": "/nowhere/corbie", "args": ["stdio"] } } });
    let (home, _) = Home::with(".cursor/mcp.json", entry.to_string());
    let listed = home.run("connect");
    let line = listed.lines().find(|line| line.starts_with("cursor ")).unwrap();
    assert!(line.contains(" yes        program missing  "), "{listed}");
    let told = "cursor: its program `/nowhere/corbie` does not exist; `corbie connect cursor --write` ";
    assert!(listed.contains(told), "{listed}");
    let cursor = || serde_json::from_str::<Value>(&home.run("connect --json")).unwrap()["clients"][2].clone();
    assert_eq!(cursor()["connected"], false);
    assert!(cursor()["problem"].as_str().unwrap().contains("corbie connect cursor --write"), "{}", cursor());
    home.run("connect cursor --write");
    assert_eq!((&cursor()["connected"], cursor().get("problem")), (&json!(true), None));
    assert!(!home.run("connect").contains("program missing"));
}

#[test]
fn v13_json_has_the_planned_and_the_made_change() {
    let (home, path) = Home::with(".cursor/mcp.json", "{}");
    let told =
        |flags: &str| serde_json::from_str::<Value>(&home.run(&format!("connect cursor --json {flags}"))).unwrap();
    let shown = told("");
    assert_eq!((&shown["state"], &shown["written"], &shown["backup"]), (&json!("absent"), &json!(false), &Value::Null));
    assert_eq!(shown["entry"], json!({ "command": program(), "args": ["stdio"] }));
    assert!(shown["diff"].as_str().unwrap().contains("+    \"corbie\""), "{shown}");
    let written = told("--write");
    assert_eq!(written["written"], true);
    assert_eq!(written["backup"], json!(path.with_file_name("mcp.json.corbie-backup")));
    assert_eq!((&told("")["state"], &told("--write")["written"]), (&json!("same"), &json!(false)));
    let removed = told("--remove");
    assert_eq!(
        (&removed["state"], &removed["written"], &removed["entry"]),
        (&json!("there"), &json!(true), &Value::Null)
    );
    assert_eq!(told("--remove")["state"], "absent");
}

#[test]
fn help_shows_examples() {
    let ended = corbie("connect --help").run("");
    assert!(ended.stdout.contains("Examples:\n  corbie connect "), "{ended:?}");
}

#[test]
fn v13_unusable_entry_is_not_listed_as_set_up() {
    for (entry, word, why) in [
        ("{}", "incomplete", "neither `command` nor `url`"),
        (r#"{ "command": "corbie", "disabled": true }"#, "disabled", "is disabled in"),
    ] {
        let (home, _) = Home::with(".cursor/mcp.json", format!(r#"{{ "mcpServers": {{ "corbie": {entry} }} }}"#));
        let listed = home.run("connect");
        let line = listed.lines().find(|line| line.starts_with("cursor ")).unwrap();
        assert!(line.contains(word), "{listed}");
        assert!(listed.contains("cursor: its entry") && listed.contains(why), "{listed}");
    }
}
