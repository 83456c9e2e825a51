//! `corbie connect`: client entries, the files they are written to, and what stays unchanged. `connect_told.rs` tests
//! the output.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{ProcessOutput, TestCommand, call, corbie, request};

/// Home folder of a user with all clients.
pub(crate) struct Home(TempDir);

/// Every client, its file below the home folder, and the member with its servers.
pub(crate) const CLIENTS: [(&str, &str, &str); 7] = [
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
    ("claude-code", ".claude.json", "mcpServers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("vscode", ".config/Code/User/mcp.json", "servers"),
    ("copilot", ".copilot/mcp-config.json", "mcpServers"),
    ("amazon-q", ".aws/amazonq/mcp.json", "mcpServers"),
    ("codex", ".codex/config.toml", "mcp_servers"),
];

impl Home {
    pub(crate) fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    pub(crate) fn with(file: &str, text: impl AsRef<[u8]>) -> (Home, PathBuf) {
        let home = Home::new();
        let path = home.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        (home, path)
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn corbie(&self, arguments: &str) -> TestCommand {
        let home = self.0.path().display();
        corbie(arguments).variable("HOME", home).variable("XDG_CONFIG_HOME", self.path(".config").display())
    }

    #[track_caller]
    pub(crate) fn run(&self, arguments: &str) -> String {
        let ended = self.corbie(arguments).run("");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{arguments}: {ended:?}");
        ended.stdout
    }

    fn run_refused(&self, arguments: &str) -> ProcessOutput {
        self.run_expecting(arguments, 1)
    }

    fn run_expecting(&self, arguments: &str, code: i32) -> ProcessOutput {
        let ended = self.corbie(arguments).run("");
        assert_eq!(ended.code, Some(code), "{arguments}: {ended:?}");
        ended
    }
}

/// Content of a file, as JSON.
fn read_as_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap();
    match path.extension().is_some_and(|ending| ending == "toml") {
        true => json!(toml::from_str::<toml::Table>(&text).unwrap()),
        false => serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")),
    }
}

pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_corbie")
}

#[cfg(target_os = "linux")]
#[test]
fn v13_each_client_gets_its_own_format() {
    let home = Home::new();
    let stdio = |kind: Option<&str>| {
        let mut entry = json!({ "command": program(), "args": ["stdio"] });
        kind.into_iter().for_each(|kind| entry["type"] = kind.into());
        entry
    };
    let expected = |client: &str| match client {
        "claude-code" | "vscode" => stdio(Some("stdio")),
        "copilot" => {
            let mut entry = stdio(Some("local"));
            entry["tools"] = json!(["*"]);
            entry
        }
        _ => stdio(None),
    };
    for (client, file, section) in CLIENTS {
        let path = home.path(file);
        let shown = home.run(&format!("connect {client}"));
        assert!(shown.contains(&path.display().to_string()), "{shown}");
        assert!(shown.contains(&format!("corbie connect {client} --write")), "{shown}");
        assert!(!path.exists(), "{client} is only shown");
        let written = home.run(&format!("connect {client} --write"));
        assert!(written.contains("\n+++ ") && written.contains("Wrote "), "{written}");
        assert_eq!(read_as_json(&path)[section]["corbie"], expected(client), "{client}");
        // The snippet shown for copying equals the written file.
        let copied = fs::read_to_string(&path).unwrap();
        assert!(shown.contains(copied.trim_end()), "{shown}\n{copied}");
        assert!(home.run(&format!("connect {client} --write")).contains("already set up"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn v13_clients_with_url_support_get_a_url() {
    let home = Home::new();
    for (client, file, section) in CLIENTS {
        if client == "claude-desktop" {
            assert!(
                home.run_expecting("connect claude-desktop --url", 2).startup_error().contains("does not support URLs")
            );
            continue;
        }
        home.run(&format!("connect {client} --write --url"));
        let entry = read_as_json(&home.path(file))[section]["corbie"].clone();
        assert_eq!(entry["url"], "http://localhost:8090/mcp", "{client}");
        let kind = if matches!(client, "cursor" | "codex") { Value::Null } else { json!("http") };
        assert_eq!((&entry["type"], &entry["command"]), (&kind, &Value::Null), "{client}");
        // And back to a command.
        home.run(&format!("connect {client} --write"));
        let entry = read_as_json(&home.path(file))[section]["corbie"].clone();
        assert_eq!((&entry["command"], &entry["url"]), (&json!(program()), &Value::Null), "{client}");
    }
    let wrong = home.corbie("connect --url cursor").run("");
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.stderr.contains("use one such as"), "{wrong:?}");
}

/// Starts the program of the written entry with its arguments and checks that it answers as a server.
#[cfg(target_os = "linux")]
#[test]
fn v13_written_entry_starts_a_working_server() {
    for (client, file, section) in CLIENTS {
        let home = Home::new();
        let config = home.path("my settings.yaml");
        fs::write(&config, "server: { name: connected }\nproviders: { detect_ports: [] }\n").unwrap();
        let connected =
            home.corbie("connect").argument(client).arguments("--write --config").argument(config.to_str().unwrap());
        assert_eq!(connected.run("").code, Some(0));
        let entry = read_as_json(&home.path(file))[section]["corbie"].clone();
        let mut server = TestCommand::new(entry["command"].as_str().unwrap().into());
        for argument in entry["args"].as_array().unwrap() {
            server = server.argument(argument.as_str().unwrap());
        }
        let mut server = server.start();
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": client, "version": "1" } });
        let answer = server.send_and_receive(&request(1, "initialize", hello));
        assert_eq!(answer["result"]["serverInfo"]["name"], "connected", "{client}: {answer}");
        let called = server.send_and_receive(&call(2, "list_categories", json!({})));
        assert_eq!(called["result"]["isError"], false, "{client}: {called}");
    }
}

#[test]
fn m22_a_profile_of_tools_is_written_and_shortens_the_list() {
    let home = Home::new();
    let told = home.run("connect cursor --tools knowledge");
    assert!(told.contains("\"--tools\"") && told.contains("connect cursor --tools knowledge --write"), "{told}");
    home.run("connect cursor --tools knowledge --write");
    let entry = read_as_json(&home.path(".cursor/mcp.json"))["mcpServers"]["corbie"].take();
    assert_eq!(entry["args"], json!(["stdio", "--tools", "knowledge"]), "{entry}");
    let wrong = home.run_expecting("connect cursor --tools knowlege", 2);
    assert!(wrong.stderr.contains("did you mean `knowledge`?"), "{wrong:?}");

    let mut server = home.corbie("stdio --tools knowledge").start();
    let listed = server.send_and_receive(&request(1, "tools/list", json!({})));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 11, "{listed}");
    assert!(tools.iter().all(|tool| tool["name"].as_str().unwrap().starts_with("knowledge-")));
    let begun = server.send_and_receive(&request(2, "initialize", json!({})));
    assert_eq!(begun["result"]["tools_count"], 11, "m48");
    // A01, M73: a tool that is not listed can be found and called.
    let all = server.send_and_receive(&call(3, "list_registered_tools", json!({})));
    let all = all["result"]["structuredContent"]["tools"].as_array().unwrap();
    let registered: BTreeSet<&str> = all.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let known: BTreeSet<&str> = corbie::config::tool_selection::TOOLS.iter().map(|(name, _)| *name).collect();
    assert_eq!(registered, known, "`server.tools` knows every tool");
    let classified = server.send_and_receive(&call(4, "classify_text", json!({ "text": "What is 2 + 2?" })));
    assert_eq!(classified["result"]["isError"], false, "{classified}");
}

#[test]
fn v13_other_content_of_a_file_is_preserved() {
    let files = [
        (
            "claude-desktop",
            "{\n  \"globalShortcut\": \"\",\n  \"mcpServers\": {\n    \"files\": { \"command\": \"npx\", \"args\": [\"-y\", \"x\"], \"env\": {\"A\": \"b\"} }\n  }\n}",
        ),
        (
            "claude-code",
            "{\"numStartups\":12,\"projects\":{\"/a\":{\"mcpServers\":{\"corbie\":{\"command\":\"local\"}}}},\"mcpServers\":{}}",
        ),
        (
            "cursor",
            "{\n\t// mine\n\t\"mcpServers\": {\n\t\t\"a\": { \"url\": \"https://example.com\" }, // last\n\t},\n}\n",
        ),
        (
            "vscode",
            "{\r\n    \"inputs\": [],\r\n    \"servers\": {\r\n        /* of the project */\r\n        \"a\": { \"type\": \"stdio\", \"command\": \"a\" }\r\n    }\r\n}\r\n",
        ),
        (
            "copilot",
            "\u{feff}{ \"mcpServers\": { \"a\": { \"type\": \"local\", \"command\": \"a\", \"args\": [], \"tools\": [\"*\"] } } }\n",
        ),
        ("amazon-q", ""),
        ("amazon-q", "{}\n"),
        (
            "codex",
            "# mine\nmodel = \"x\"\n\n[mcp_servers.docs]\ncommand = 'docs' # which\nargs = [\n  \"a\", # one\n]\n\n[tui]\ntheme = \"dark\"\n# end\n",
        ),
        ("codex", "model = 'x'\r\n[profiles.a]\r\nb = 1\r\n"),
    ];
    for (client, before) in files {
        let home = Home::new();
        let path = home.path("some/file");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, before).unwrap();
        let flags = format!("connect {client} --file {}", path.display());
        let dry = home.run(&format!("{flags} --dry-run"));
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{client}: a dry run");
        let written = home.run(&format!("{flags} --write"));
        let diff = |text: &str| text.split("\n\n").next().unwrap().to_owned();
        assert_eq!(diff(&dry), diff(&written), "{client}: the diff tells what is written");
        let after = fs::read_to_string(&path).unwrap();
        assert!(after.contains("corbie"), "{after}");
        for line in before.lines().filter(|line| line.trim().len() > 1) {
            // The line before an entry may get a comma.
            assert!(after.contains(line.trim_end()) || before.lines().count() == 1, "{client} lost {line:?}: {after}");
        }
        let backup = path.with_file_name("file.corbie-backup");
        assert_eq!(fs::read_to_string(&backup).unwrap(), before, "{client}");
        home.run(&format!("{flags} --remove"));
        assert_eq!(fs::read_to_string(&path).unwrap(), before, "{client}: gone without a trace");
        assert!(home.run(&format!("{flags} --remove")).contains("Nothing changed"));
        assert_eq!(fs::read_to_string(path.with_file_name("file.corbie-backup.2")).unwrap(), after);
        assert_eq!(path.parent().unwrap().read_dir().unwrap().count(), 3, "{client}: the file and two backups");
    }
}

/// Only the entry is removed; changes by other programs in between are kept.
#[test]
fn v13_entry_is_removed_from_a_changed_file() {
    let (home, path) = Home::with(".cursor/mcp.json", "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n");
    home.run("connect cursor --write");
    let written = fs::read_to_string(&path).unwrap();
    fs::write(&path, written.replace("\"a\": {}", "\"a\": {}, // one\n    \"b\": {}")).unwrap();
    home.run("connect cursor --remove");
    let after = fs::read_to_string(&path).unwrap();
    assert_eq!(after, "{\n  \"mcpServers\": {\n    \"a\": {}, // one\n    \"b\": {}\n  }\n}\n");
}

#[test]
fn v13_different_entry_is_updated() {
    let before =
        "{\"mcpServers\": {\"corbie\": {\"command\": \"/old/corbie\", \"args\": [], \"env\": {\"A\": \"1\"}}}}";
    let (home, path) = Home::with(".cursor/mcp.json", before);
    let shown = home.run("connect cursor");
    assert!(shown.starts_with("Change the entry `corbie` under `mcpServers` in "), "{shown}");
    let written = home.run("connect cursor --write");
    assert!(written.contains("-{\"mcpServers\"") && written.contains("/old/corbie"), "{written}");
    assert_eq!(
        read_as_json(&path)["mcpServers"]["corbie"],
        json!({ "command": program(), "args": ["stdio"], "env": { "A": "1" } })
    );
    assert_eq!(fs::read_to_string(path.with_file_name("mcp.json.corbie-backup")).unwrap(), before);
    home.run("connect cursor --write");
    assert!(!path.with_file_name("mcp.json.corbie-backup.2").exists(), "nothing changed, so nothing is put aside");
}

#[test]
fn v13_invalid_files_are_rejected_and_unchanged() {
    let deep = "[".repeat(200_000);
    let broken: [(&str, &[u8], &str); 11] = [
        ("cursor", b"{\n  \"mcpServers\": {\n    \"a\": { \"command\": }\n  }\n}", "line 3, column "),
        ("cursor", b"{ \"mcpServers\": {} ", "line 1, column "),
        ("cursor", b"[1, 2]", "contains a list instead of an object"),
        ("cursor", b"\"text\"", "contains a string instead of an object"),
        ("cursor", b"{ \"mcpServers\": [] }", "`mcpServers` is a list instead of an object"),
        ("cursor", b"{ \"mcpServers\": {}, \"mcpServers\": {} }", "duplicate key `mcpServers`"),
        ("cursor", b"{ \"mcpServers\": { \"corbie\": {}, \"corbie\": {} } }", "duplicate key `corbie`"),
        ("cursor", b"{ \"a\": \"\xff\" }", "is not UTF-8"),
        ("cursor", deep.as_bytes(), "line 1, column "),
        ("codex", b"model = \"x\"\nmodel = \"y\"\n", "line 2, column 1"),
        ("codex", b"mcp_servers = 1\n", "`mcp_servers` is a number instead of an object"),
    ];
    for (client, bytes, why) in broken {
        let home = Home::new();
        let path = home.path("file");
        fs::write(&path, bytes).unwrap();
        for flag in ["--write", "--remove", "--dry-run", ""] {
            let ended = home.run_refused(&format!("connect {client} --file {} {flag}", path.display()));
            assert!(ended.stderr_line().contains(why), "{ended:?}");
            assert!(ended.stderr_line().contains(&path.display().to_string()), "{ended:?}");
            assert_eq!(fs::read(&path).unwrap(), bytes);
            // The snippet is shown anyway.
            let (key, snippet) = match client {
                "codex" => ("`mcp_servers`", "\n[mcp_servers.corbie]\ncommand = "),
                _ => ("`mcpServers`", "\n\"corbie\": {\n  \"command\": "),
            };
            let shown = ended.stdout.contains(&format!("add `corbie` under {key}:"))
                && ended.stdout.contains(snippet)
                && ended.stdout.contains(program());
            assert_eq!(shown, flag != "--remove", "{flag}: {ended:?}");
            assert!(shown || ended.stdout.is_empty(), "{ended:?}");
        }
        let told = home.run_refused(&format!("connect {client} --file {} --write --json", path.display()));
        let told: Value = serde_json::from_str(&told.stdout).unwrap();
        assert_eq!((&told["success"], &told["entry"]["command"]), (&json!(false), &json!(program())), "{told}");
        assert!(told["message"].as_str().unwrap().contains(why), "{told}");
        assert!(told["snippet"].as_str().unwrap().contains("corbie"), "{told}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
        assert_eq!(home.0.path().read_dir().unwrap().count(), 1, "nothing was put beside it");
    }
}

#[test]
fn v13_unwritable_files_are_rejected() {
    let (home, path) = Home::with("folder/inside", "");
    let folder = path.parent().unwrap().display();
    assert!(
        home.run_refused(&format!("connect cursor --write --file {folder}")).startup_error().contains("is not a file")
    );
    let below = path.join("mcp.json");
    let ended = home.run_refused(&format!("connect cursor --write --file {}", below.display()));
    assert!(ended.stderr.contains("cannot be"), "{ended:?}");
    let huge = home.path("huge");
    fs::File::create(&huge).unwrap().set_len(64 * 1024 * 1024).unwrap();
    let ended = home.run_refused(&format!("connect cursor --write --file {}", huge.display()));
    assert!(ended.startup_error().contains("too large for a client configuration"), "{ended:?}");
    let ended = home.run_refused("connect cursor --write --config missing.yaml");
    assert!(ended.startup_error().contains("missing.yaml`: file not found"), "{ended:?}");
    assert!(
        home.run_expecting("connect codex --project", 2).startup_error().contains("has no project configuration file")
    );
    assert_eq!(home.corbie("connect cursor --name no/slash").run("").code, Some(2));
}

#[cfg(unix)]
#[test]
fn v13_links_and_permissions_are_preserved() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let (home, target) = Home::with("dotfiles/cursor.json", "{}");
    fs::set_permissions(&target, PermissionsExt::from_mode(0o640)).unwrap();
    fs::create_dir(home.path(".cursor")).unwrap();
    let link = home.path(".cursor/mcp.json");
    symlink("../dotfiles/cursor.json", &link).unwrap();
    home.run("connect cursor --write");
    assert!(link.symlink_metadata().unwrap().is_symlink(), "the link is still one");
    assert_eq!(read_as_json(&target)["mcpServers"]["corbie"]["command"], program());
    let backup = home.path("dotfiles/cursor.json.corbie-backup");
    assert_eq!((mode(&target), mode(&backup)), (0o640, 0o640));
    // A new file is private to its user, because such files often hold keys.
    home.run("connect amazon-q --write");
    assert_eq!(mode(&home.path(".aws/amazonq/mcp.json")), 0o600);
    // A read-only file is not replaced, and a cycle of links is an error.
    fs::set_permissions(&target, PermissionsExt::from_mode(0o444)).unwrap();
    assert!(home.run_refused("connect cursor --remove").stderr.contains("is read-only"));
    let circle = home.path("circle");
    symlink("circle", &circle).unwrap();
    let ended = home.run_refused(&format!("connect cursor --write --file {}", circle.display()));
    assert!(ended.startup_error().contains("is a cycle of symbolic links"), "{ended:?}");
}

#[test]
fn v13_project_files_are_supported() {
    for (client, file, section) in [
        ("claude-code", ".mcp.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
    ] {
        let setup = corbie(&format!("connect {client} --project --write --json --name other"));
        let folder = setup.folder().canonicalize().unwrap();
        let ended = setup.run("");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((&told["written"], &told["name"]), (&json!(true), &json!("other")));
        assert_eq!(Path::new(told["file"].as_str().unwrap()), folder.join(file));
        assert!(told["diff"].as_str().unwrap().contains(section), "{told}");
    }
}
