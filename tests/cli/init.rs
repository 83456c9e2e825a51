//! `corbie init`: a new configuration file.

use std::path::Path;

use crate::process::{TestCommand, corbie};
#[cfg(unix)]
use crate::terminal::run_in_terminal;

fn in_folder(arguments: &str, folder: &Path) -> TestCommand {
    // The test's own folder is the home, so the project folder is another one.
    corbie(arguments).argument(folder.join("corbie.yaml").display().to_string())
}

#[test]
fn init_writes_an_approved_file_once() {
    let setup = corbie("init --yes");
    let (folder, home) = (setup.folder().to_owned(), tempfile::tempdir().unwrap());
    let command = |arguments: &str| {
        let line = format!("cd '{}' && '{}' {arguments}", folder.display(), env!("CARGO_BIN_EXE_corbie"));
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line]).env("HOME", home.path()).env_remove("XDG_CONFIG_HOME").output().unwrap()
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let first = command("init --yes");
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains("run `corbie config trust` to approve it again"), "{}", text(&first.stdout));
    let list = text(&command("config list").stdout);
    assert!(list.lines().any(|line| line.contains("corbie.yaml") && line.ends_with("(approved)")), "{list}");
    assert_eq!(text(&command("config validate").stdout), "OK\n");
    let again = command("init --yes");
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again.stderr).contains("already exists") && text(&again.stderr).contains("--force"));
    std::fs::write(folder.join("corbie.yaml"), "log: {level: debug}\n").unwrap();
    let replaced = command("init --force --json --yes");
    let told: serde_json::Value = serde_json::from_slice(&replaced.stdout).unwrap();
    assert_eq!(told["approved"], true, "{told}");
    assert!(std::fs::read_to_string(folder.join("corbie.yaml")).unwrap().contains("# Providers of language models"));
}

#[test]
fn init_needs_a_terminal_for_its_questions_and_a_name_for_yaml() {
    let ended = corbie("init").run("");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("use --yes"), "{ended:?}");
    let ended = corbie("init --yes settings.toml").run("");
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let folder = tempfile::tempdir().unwrap();
    let ended = in_folder("init --yes", &folder.path().join("missing")).run("");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("file not found") && !ended.stderr.contains("os error"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn init_asks_three_questions_in_a_terminal() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let line = format!(
        "cd '{}' && HOME='{}' '{}' init",
        folder.path().display(),
        home.path().display(),
        env!("CARGO_BIN_EXE_corbie")
    );
    let Some(ended) = run_in_terminal(&line, "openai\n~/papers\nn\n") else { return };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for asked in ["Model provider", "Folder of documents to watch", "Accept connections from other machines?"] {
        assert!(ended.stdout.contains(asked), "{ended:?}");
    }
    let yaml = std::fs::read_to_string(folder.path().join("corbie.yaml")).unwrap();
    assert!(yaml.contains("\n  openai: {}\n") && yaml.contains("path: \"~/papers\""), "{yaml}");
}
