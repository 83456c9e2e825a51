//! Failing knowledge base commands, for people and for programs.

use serde_json::{Value, json};

use crate::knowledge::{KnowledgeFixture, TAXES, with_and_without_server};
use crate::process::ProcessOutput;

/// The single JSON object printed by a failed command; stderr must be empty.
#[track_caller]
fn error_object(ended: &ProcessOutput) -> Value {
    assert_eq!(ended.stderr, "", "{ended:?}");
    let [reply] = &ended.messages()[..] else { panic!("not one line: {ended:?}") };
    // Usage errors have a separate exit code.
    let code = if reply["error"] == "invalid_parameter" { 2 } else { 1 };
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert_eq!(reply["success"], false, "{reply}");
    assert!(reply["message"].as_str().is_some_and(|message| !message.is_empty()), "{reply}");
    reply.clone()
}

#[test]
fn k03_with_json_every_failure_is_an_object_on_stdout() {
    with_and_without_server(|place, _| {
        for (command, code) in [
            ("show zzz", "document_not_found"),
            ("show 00000000-0000-4000-8000-000000000000", "document_not_found"),
            ("show bees.md --page 9", "page_not_found"),
            ("remove --yes zzz", "document_not_found"),
            ("remove bees.md", "confirmation_required"),
            ("clear", "confirmation_required"),
            ("search queen --top 51", "invalid_parameter"),
            ("search queen --base nmae", "knowledge_base_not_found"),
            ("ask --documents why --base nmae", "knowledge_base_not_found"),
            ("add . --metadata [1]", "invalid_parameter"),
            ("tasks cancel zzz", "task_not_found"),
            ("knowledge backup ./bees.md", "file_exists"),
        ] {
            let reply = error_object(&place.run(&format!("{command} --json")));
            assert_eq!(reply["error"], code, "{command}: {reply}");
        }
        assert_eq!(place.json("show --json")["total_count"], 2, "nothing was done");
        let task = place.json("tasks --json")["tasks"][0]["task_id"].as_str().unwrap().to_owned();
        let ended = error_object(&place.run(&format!("tasks cancel --json {task}")));
        let told = (&ended["error"], &ended["status"], &ended["task_id"]);
        assert_eq!(told, (&json!("task_ended"), &json!("completed"), &json!(task)));
    });
    let place = KnowledgeFixture::new();
    for command in ["status --json", "tasks --json", "knowledge check --json", "ask --documents --json why"] {
        let ended = place.corbie(command).variable("CORBIE_KNOWLEDGE__ENABLED", "false").run("");
        assert_eq!(error_object(&ended)["error"], "knowledge_disabled", "{command}");
    }
    assert_eq!(error_object(&place.run("knowledge check --json"))["error"], "storage_not_found");
}

#[test]
fn unknown_base_lists_the_existing_ones() {
    with_and_without_server(|place, _| {
        let commands = ["search queen", "show", "show bees.md", "remove --yes bees.md", "clear --yes", "status"];
        for command in commands.into_iter().chain(["ask --documents why"]) {
            let ended = place.run(&format!("{command} --base nmae"));
            let expected = "corbie: there is no knowledge base `nmae`; the only one is `default`";
            assert_eq!(ended.startup_error(), expected, "{command}");
        }
        place.write("other/cats.txt", "A cat sleeps sixteen hours a day, mostly in the sun.\n");
        assert_eq!(place.run("add --base pets ./other").code, Some(0));
        let reply = error_object(&place.run("show --base nmae --json"));
        assert_eq!(reply["knowledge_bases"], json!(["default", "pets"]));
        assert_eq!(place.run("clear --yes --base pets").code, Some(0));
        let empty = place.run("show --base pets");
        assert_eq!(empty.code, Some(0), "an empty base is there: {empty:?}");
        assert!(empty.stdout.starts_with("the knowledge base is empty; "), "{empty:?}");
    });
    let nothing = KnowledgeFixture::new().run("search queen --base pets");
    assert!(nothing.startup_error().contains("create it with `corbie add --base pets PATH`"), "{nothing:?}");
}

#[test]
fn unique_file_name_resolves_a_document() {
    with_and_without_server(|place, _| {
        let shown = place.run("show taxes.txt");
        assert!(shown.stdout.starts_with("==> taxes.txt, page 1 of 1"), "{shown:?}");
        place.write("old/taxes.txt", "The taxes of last year were paid in time, and nobody asked for anything.\n");
        assert_eq!(place.run("add ./old").code, Some(0));
        let several = place.run("show taxes.txt");
        assert_eq!(several.code, Some(1), "{several:?}");
        let lines: Vec<&str> = several.stderr.lines().collect();
        assert_eq!(lines[0], "corbie: `taxes.txt` matches 2 documents; specify one by its ID:", "{several:?}");
        assert!(lines[1..].iter().any(|line| line.ends_with("old/taxes.txt")), "{several:?}");
        let reply = error_object(&place.run("remove --yes --json taxes.txt"));
        let documents = reply["documents"].as_array().unwrap();
        assert_eq!((&reply["error"], documents.len()), (&json!("ambiguous_document"), 2), "{reply}");
        assert!(
            documents.iter().all(|document| several.stderr.contains(&document["id"].as_str().unwrap()[..8])),
            "{reply}"
        );

        let removed = place.run("remove --yes ./old/taxes.txt bees.md");
        assert_eq!(removed.code, Some(0), "{removed:?}");
        assert!(place.run("show taxes.txt").stdout.contains(TAXES.trim()), "the other one is left");
        assert_eq!(place.json("show --json")["total_count"], 1);
    });
}

#[cfg(unix)]
#[test]
fn hanging_server_is_skipped() {
    let place = KnowledgeFixture::with_documents();
    let sockets = std::path::Path::new(&place.storage()).join("sockets");
    std::fs::create_dir_all(&sockets).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(sockets.join("1.socket")).unwrap();
    // Accepts connections and never answers.
    std::thread::spawn(move || {
        let mut taken = Vec::new();
        listener.incoming().for_each(|connection| taken.push(connection));
    });
    for command in ["status", "tasks", "search queen"] {
        let ended = place.run(command);
        assert_eq!(ended.code, Some(0), "{command}: {ended:?}");
        assert!(ended.stderr_line().ends_with("does not respond; continuing without it"), "{command}: {ended:?}");
    }
    assert!(place.run("status").stdout.contains("server          not running"));
}

#[cfg(unix)]
#[test]
fn stale_sockets_are_removed_at_start() {
    let place = KnowledgeFixture::with_documents();
    let sockets = std::path::Path::new(&place.storage()).join("sockets");
    std::fs::create_dir_all(&sockets).unwrap();
    let dead = ["1.socket", "2.socket"].map(|name| sockets.join(name));
    for path in &dead {
        drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    }
    let _server = place.serve();
    crate::process::wait_for("the dead to be removed", || dead.iter().all(|path| !path.exists()).then_some(()));
    assert!(!place.run("status").stdout.contains("server          not running"), "its own is there");
}
