//! S-14, S-15: created files are private to the user, and input is never executed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::process::{call, corbie, request, wait_for};

/// Everything below a folder, with its permissions.
fn files_below(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, about) = (entry.path(), entry.metadata().unwrap());
        if about.is_dir() {
            found.extend(files_below(&path));
        }
        found.push((path, about.permissions().mode() & 0o777));
    }
    found
}

/// Runs the program with umask 000.
fn run_with_open_umask(folder: &Path, arguments: &str) {
    let program = env!("CARGO_BIN_EXE_corbie");
    let line = format!("umask 000; exec '{program}' {arguments}");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(folder).env_clear().env("HOME", folder);
    let output = command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).output().unwrap();
    assert!(output.status.success(), "{arguments}: {output:?}");
}

#[test]
fn s14_all_that_the_program_makes_by_itself_is_private_to_the_user() {
    let folder = tempfile::tempdir().unwrap();
    let ours = folder.path().join("note.txt");
    std::fs::write(&ours, "owls hunt at night, and sleep while it is day").unwrap();
    let before = files_below(folder.path());
    run_with_open_umask(folder.path(), "add note.txt");
    run_with_open_umask(folder.path(), "search owls");
    run_with_open_umask(folder.path(), "classify 'what is two plus two'");
    run_with_open_umask(folder.path(), "knowledge backup copy.db");
    let made: Vec<_> = files_below(folder.path()).into_iter().filter(|found| !before.contains(found)).collect();
    assert!(made.iter().any(|(path, _)| path.ends_with("knowledge.db")), "{made:?}");
    assert!(made.iter().any(|(path, _)| path.ends_with("copy.db")), "{made:?}");
    for (path, mode) in made {
        assert_eq!(mode & 0o077, 0, "{} is {mode:o}", path.display());
    }
}

/// Text that a shell would execute, for every input.
const SHELL_INJECTION: &str = "$(touch owned)`touch owned`; touch owned | touch owned & '\"touch owned\n touch owned";

#[test]
fn s15_what_is_given_is_in_no_command_and_not_logged_at_info() {
    let setup = corbie("serve --stdio --port 0");
    let folder = setup.folder().to_owned();
    let name = format!("{SHELL_INJECTION}.txt").replace('/', "");
    std::fs::write(folder.join(&name), format!("mark-4711 {SHELL_INJECTION}")).unwrap();
    let file = folder.join(&name);
    let text = format!("mark-4711 {SHELL_INJECTION}");
    let mut server = setup.start();
    let client = server.client();
    for message in [
        call(1, "classify_text", json!({ "text": text })),
        call(2, "batch_categorize", json!({ "texts": [text, SHELL_INJECTION] })),
        call(3, "knowledge-add", json!({ "file_path": file, "tags": ["mark-4711"] })),
        call(4, "knowledge-search", json!({ "query": text })),
        call(5, "knowledge-ask", json!({ "question": text })),
        call(6, "explain_route", json!({ "prompt": text })),
        call(7, "chat_completion", json!({ "prompt": text, "model": "mark-4711" })),
        call(8, "get_tool_schema", json!({ "name": text })),
        call(9, "knowledge-get", json!({ "document_id": text })),
        request(10, "completion/complete", json!({ "prompt": text })),
        request(11, "prompts/get", json!({ "name": text, "arguments": { "question": text } })),
    ] {
        server.send_and_receive(&message);
        client.post("/mcp", &message);
    }
    client.post("/v1/chat/completions", &json!({ "model": "auto", "messages": [{ "role": "user", "content": text }] }));
    client.post("/v1/embeddings", &json!({ "model": "auto", "input": text }));
    client.get("/mark-4711?q=mark-4711");
    // A worker process reads the document after the call has returned.
    wait_for("the document", || {
        let status = server.send_and_receive(&call(12, "knowledge-status", json!({})));
        let status: Value = serde_json::from_str(status["result"]["content"][0]["text"].as_str()?).ok()?;
        (status["knowledge_base"]["document_count"] == 1).then_some(())
    });
    assert!(!folder.join("owned").exists(), "a text was taken for a command");
    server.terminate();
    let ended = server.wait();
    assert!(ended.stderr.contains("INFO"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("mark-4711") && !ended.stderr.contains("touch owned"), "{}", ended.stderr);
}
