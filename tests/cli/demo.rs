//! `corbie demo`: runs offline and removes all its files, also after signals and failures.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Client;
use crate::process::{PATIENCE, Running, Setup, call, skip, wait_for};
use crate::terminal::in_a_terminal;

/// Timeout for debug builds on a busy machine.
const LONG: std::time::Duration = PATIENCE.saturating_mul(4);

/// Settings of a user with which every command fails.
const HOSTILE: &str = "server:\n  listen: [nowhere]\nno-such-key: true\nknowledge:\n  enabled: false\n";

/// A demo to be started, and its only temporary directory.
struct Stage {
    setup: Setup,
    temporary: TempDir,
}

/// Every file below a folder, with its content.
fn everything(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => {
                found.insert(path.clone(), Vec::new());
                found.extend(everything(&path));
            }
            path => drop(found.insert(path.clone(), std::fs::read(&path).unwrap_or_default())),
        }
    }
    found
}

impl Stage {
    fn new(setup: Setup) -> Stage {
        let temporary = tempfile::tempdir().unwrap();
        let setup = setup.variable("TMPDIR", temporary.path().display());
        Stage { setup, temporary }
    }

    fn demo(arguments: &str) -> Stage {
        Stage::new(Setup::new(env!("CARGO_BIN_EXE_corbie").into()).arguments("demo").arguments(arguments))
    }

    /// Without a network, if `unshare` is available.
    fn offline(arguments: &str) -> Stage {
        let alone = Command::new("unshare").args(["-rn", "true"]).output();
        if !alone.is_ok_and(|output| output.status.success()) {
            skip("`unshare -rn` does not work here; the network stays");
            return Stage::demo(arguments);
        }
        let program = Setup::new("unshare".into()).arguments("-rn --").argument(env!("CARGO_BIN_EXE_corbie"));
        Stage::new(program.arguments("demo").arguments(arguments))
    }

    fn start(self) -> (Running, TempDir) {
        (self.setup.start(), self.temporary)
    }
}

#[track_caller]
fn assert_empty(folder: &Path) {
    let left = everything(folder);
    assert!(left.is_empty(), "{:?}", left.keys());
}

#[test]
fn every_step_of_the_demo_finds_what_it_should_without_a_network_settings_or_a_trace() {
    let stage = Stage::offline("--json");
    let home = stage.setup.folder().to_owned();
    std::fs::create_dir_all(home.join(".config/corbie")).unwrap();
    std::fs::write(home.join(".config/corbie/corbie.yaml"), HOSTILE).unwrap();
    std::fs::write(home.join("corbie.yaml"), HOSTILE).unwrap();
    let before = everything(&home);
    let setup = stage.setup.variable("CORBIE_KNOWLEDGE__STORAGE_PATH", home.join("mine").display());
    let mut running = setup.variable("CORBIE_SERVER__NO_SUCH_KEY", "1").variable("OPENAI_API_KEY", "sk-mine").start();
    running.close_stdin();
    let ended = running.end_within(LONG);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(everything(&home), before, "the user's folder was touched");
    assert_empty(stage.temporary.path());

    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let steps = report["steps"].as_array().unwrap();
    let of = |command: &str| -> &Value {
        let found = steps.iter().find(|step| step["command"].as_str().unwrap().contains(command));
        &found.unwrap_or_else(|| panic!("no step with {command}: {report:#}"))["result"]
    };
    let added = of("corbie add");
    assert_eq!((&added["files_total"], &added["added"]), (&json!(7), &json!(7)), "{added:#}");
    let best = |query: &str| &of(query)["results"][0];
    let lamp_room = best("lamp room");
    assert_eq!((&lamp_room["filename"], &lamp_room["metadata"]["page_num"]), (&json!("handbook.pdf"), &json!(2)));
    assert!(lamp_room["chunk_text"].as_str().unwrap().contains("No more than eight people"), "{lamp_room:#}");
    assert_eq!(best("borrow the big lens")["filename"], "loans.docx");
    let notice = best("foghorn");
    assert_eq!(notice["filename"], "notice.png");
    assert!(notice["chunk_text"].as_str().unwrap().contains("every Thursday at half past two"), "{notice:#}");
    let answer = of("ask --documents");
    assert!(answer["answer"].is_string(), "{answer:#}");
    assert_eq!(answer["passages"][0]["filename"], "history.html", "{answer:#}");
    assert_eq!(of("prism")["category"], "science");
    assert_eq!(of("Augustus")["category"], "history");
    let route = of("--explain");
    assert_eq!((&route["category"], &route["use_reasoning"]), (&json!("math"), &json!(true)), "{route:#}");
    assert_eq!(route["candidates"][0]["model"], "mock-reasoner", "{route:#}");
}

#[test]
fn people_are_told_what_to_type_what_came_of_it_and_what_next() {
    let (mut running, temporary) = Stage::demo("").start();
    running.close_stdin();
    let ended = running.end_within(LONG);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{ended:?}");
    for told in [
        "temporary folder",
        "$ corbie add gull-rock",
        "7 files added",
        "handbook.pdf, page 2",
        "notice.png",
        "by a mock",
        "$ corbie add ~/Documents",
        "$ corbie serve",
        "$ corbie connect claude-desktop",
    ] {
        assert!(ended.out.contains(told), "{told:?} is missing in\n{}", ended.out);
    }
    assert!(!ended.out.contains('\u{1b}') && !ended.out.contains("[y/N]"), "{}", ended.out);
    assert_empty(temporary.path());
}

#[test]
fn a_signal_in_the_middle_leaves_nothing_behind() {
    // Before, during and after adding documents.
    for (signal, lines) in [("INT", 1), ("INT", 4), ("TERM", 4), ("HUP", 7), ("INT", 12)] {
        let stage = Stage::demo("");
        let home = stage.setup.folder().to_owned();
        let before = everything(&home);
        let (mut running, temporary) = stage.start();
        (0..lines).for_each(|_| drop(running.line()));
        running.signal(signal);
        let ended = running.end_within(LONG);
        assert_eq!(ended.code, Some(130), "{signal} after {lines} lines: {ended:?}");
        assert_eq!(everything(&home), before, "{signal} after {lines} lines");
        assert_empty(temporary.path());
    }
}

#[test]
fn a_signal_at_the_very_beginning_leaves_nothing_behind() {
    for _ in 0..5 {
        let (mut running, temporary) = Stage::demo("").start();
        // As soon as there is a folder to remove.
        let _ = wait_for("the folder", || std::fs::read_dir(temporary.path()).unwrap().next());
        running.signal("INT");
        let ended = running.end_within(LONG);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert_empty(temporary.path());
    }
}

#[test]
fn somebody_impatient_leaves_nothing_behind_either() {
    let (mut running, temporary) = Stage::demo("").start();
    (0..4).for_each(|_| drop(running.line()));
    for _ in 0..3 {
        if !running.is_over() {
            running.signal("INT");
        }
    }
    let ended = running.end_within(LONG);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_empty(temporary.path());
}

#[test]
fn a_reader_who_has_seen_enough_and_a_failure_leave_nothing_behind() {
    let line = format!("'{}' demo | head -n 1", env!("CARGO_BIN_EXE_corbie"));
    let stage = Stage::new(Setup::new("sh".into()).argument("-c").argument(line));
    let (mut running, temporary) = stage.start();
    let ended = running.end_within(LONG);
    assert!(ended.out.starts_with("A look at corbie") && ended.err.is_empty(), "{ended:?}");
    assert_empty(temporary.path());

    let nowhere =
        Setup::new(env!("CARGO_BIN_EXE_corbie").into()).arguments("demo").variable("TMPDIR", "/nowhere/at/all");
    let ended = nowhere.run("");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("/nowhere/at/all"), "{}", ended.err);
}

#[test]
fn a_demo_that_is_killed_leaves_something_in_the_temporary_folder_alone() {
    let stage = Stage::demo("");
    let home = stage.setup.folder().to_owned();
    let (mut running, temporary) = stage.start();
    (0..4).for_each(|_| drop(running.line()));
    running.signal("KILL");
    running.end_within(LONG);
    assert_empty(&home);
    let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with("corbie-demo-")), "{left:?}");
}

#[test]
fn the_console_is_served_until_it_is_interrupted() {
    for signal in ["INT", "HUP"] {
        let (mut running, temporary) = Stage::demo("--serve --json").start();
        let report = running.receive();
        assert_eq!(report["steps"].as_array().map(Vec::len), Some(8));
        let url = running.receive()["url"].as_str().unwrap().to_owned();
        let port = url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        let client = Client::v4(port);
        wait_for("the server", || client.try_call("GET", "/ready", &[], "").ok().filter(|reply| reply.status == 200));
        let found = client.post("/mcp", &call(1, "knowledge-search", json!({ "query": "fire bell" })));
        assert!(found.body.contains("Ring the brass bell"), "{}", found.body);
        running.signal(signal);
        let ended = running.end_within(LONG);
        assert_eq!(ended.code, Some(0), "{signal}: {ended:?}");
        assert_empty(temporary.path());
    }
}

#[test]
fn the_console_is_served_on_the_port_that_was_named() {
    let port = crate::process::free_port();
    let (mut running, temporary) = Stage::demo(&format!("--serve --json --port {port}")).start();
    running.receive();
    assert_eq!(running.receive()["url"], format!("http://127.0.0.1:{port}/"));
    let client = Client::v4(port);
    wait_for("the server", || client.try_call("GET", "/ready", &[], "").ok().filter(|reply| reply.status == 200));
    running.signal("INT");
    assert_eq!(running.end_within(LONG).code, Some(0));
    assert_empty(temporary.path());
}

#[test]
fn a_port_that_is_taken_is_told_before_anything_is_shown() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (mut running, temporary) = Stage::demo(&format!("--serve --port {port}")).start();
    let ended = running.end_within(LONG);
    assert_eq!((ended.code, ended.out.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.err.contains("choose another port"), "{ended:?}");
    assert_empty(temporary.path());
}

#[test]
fn in_a_terminal_it_asks_before_it_serves() {
    let temporary = tempfile::tempdir().unwrap();
    let line = format!("TMPDIR='{}' '{}' demo", temporary.path().display(), env!("CARGO_BIN_EXE_corbie"));
    let Some(ended) = in_a_terminal(&line, "n\n") else { return };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("[y/N]") && ended.out.contains("\u{1b}[1m"), "{}", ended.out);
    assert_empty(temporary.path());
}
