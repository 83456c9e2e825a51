//! `corbie demo`: runs offline and removes all its files, also after signals and failures.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::HttpClient;
use crate::process::{TEST_TIMEOUT, TestCommand, TestProcess, call, report_skip, wait_for};
use crate::terminal::run_in_terminal;

/// Timeout for debug builds on a busy machine.
const DEMO_TIMEOUT: std::time::Duration = TEST_TIMEOUT.saturating_mul(4);

/// Settings of a user with which every command fails.
const BROKEN_SETTINGS: &str = "server:\n  listen: [nowhere]\nno-such-key: true\nknowledge:\n  enabled: false\n";

/// A demo to be started, and its only temporary directory.
struct DemoCommand {
    setup: TestCommand,
    temporary: TempDir,
}

/// Every file below a folder, with its content.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        match entry.path() {
            path if path.is_dir() => {
                found.insert(path.clone(), Vec::new());
                found.extend(files_below(&path));
            }
            path => drop(found.insert(path.clone(), std::fs::read(&path).unwrap_or_default())),
        }
    }
    found
}

impl DemoCommand {
    fn new(setup: TestCommand) -> DemoCommand {
        let temporary = tempfile::tempdir().unwrap();
        let setup = setup.variable("TMPDIR", temporary.path().display());
        DemoCommand { setup, temporary }
    }

    fn demo(arguments: &str) -> DemoCommand {
        DemoCommand::new(TestCommand::new(env!("CARGO_BIN_EXE_corbie").into()).arguments("demo").arguments(arguments))
    }

    /// Without a network, if `unshare` is available.
    fn offline(arguments: &str) -> DemoCommand {
        let alone = Command::new("unshare").args(["-rn", "true"]).output();
        if !alone.is_ok_and(|output| output.status.success()) {
            report_skip("`unshare -rn` does not work here; the network stays");
            return DemoCommand::demo(arguments);
        }
        let program = TestCommand::new("unshare".into()).arguments("-rn --").argument(env!("CARGO_BIN_EXE_corbie"));
        DemoCommand::new(program.arguments("demo").arguments(arguments))
    }

    fn start(self) -> (TestProcess, TempDir) {
        (self.setup.start(), self.temporary)
    }
}

#[track_caller]
fn assert_empty(folder: &Path) {
    let left = files_below(folder);
    assert!(left.is_empty(), "{:?}", left.keys());
}

#[test]
fn every_step_of_the_demo_finds_what_it_should_without_a_network_settings_or_a_trace() {
    let stage = DemoCommand::offline("--json");
    let home = stage.setup.folder().to_owned();
    std::fs::create_dir_all(home.join(".config/corbie")).unwrap();
    std::fs::write(home.join(".config/corbie/corbie.yaml"), BROKEN_SETTINGS).unwrap();
    std::fs::write(home.join("corbie.yaml"), BROKEN_SETTINGS).unwrap();
    let before = files_below(&home);
    let setup = stage.setup.variable("CORBIE_KNOWLEDGE__STORAGE_PATH", home.join("mine").display());
    let mut running = setup.variable("CORBIE_SERVER__NO_SUCH_KEY", "1").variable("OPENAI_API_KEY", "sk-mine").start();
    running.close_stdin();
    let ended = running.wait_timeout(DEMO_TIMEOUT);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(files_below(&home), before, "the user's folder was touched");
    assert_empty(stage.temporary.path());

    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
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
    let (mut running, temporary) = DemoCommand::demo("").start();
    running.close_stdin();
    let ended = running.wait_timeout(DEMO_TIMEOUT);
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
    for told in [
        "temporary folder",
        "$ corbie add gull-rock",
        "7 files added",
        "handbook.pdf, page 2",
        "notice.png",
        "the mock model only repeats the question",
        "$ corbie add ~/Documents",
        "$ corbie serve",
        "$ corbie connect claude-desktop",
    ] {
        assert!(ended.stdout.contains(told), "{told:?} is missing in\n{}", ended.stdout);
    }
    assert!(!ended.stdout.contains('\u{1b}') && !ended.stdout.contains("[y/N]"), "{}", ended.stdout);
    assert_empty(temporary.path());
}

#[test]
fn a_signal_in_the_middle_leaves_nothing_behind() {
    // Before, during and after adding documents.
    for (signal, lines) in [("INT", 1), ("INT", 4), ("TERM", 4), ("HUP", 7), ("INT", 12)] {
        let stage = DemoCommand::demo("");
        let home = stage.setup.folder().to_owned();
        let before = files_below(&home);
        let (mut running, temporary) = stage.start();
        (0..lines).for_each(|_| drop(running.read_line()));
        running.signal(signal);
        let ended = running.wait_timeout(DEMO_TIMEOUT);
        assert_eq!(ended.code, Some(130), "{signal} after {lines} lines: {ended:?}");
        assert_eq!(files_below(&home), before, "{signal} after {lines} lines");
        assert_empty(temporary.path());
    }
}

#[test]
fn a_signal_at_the_very_beginning_leaves_nothing_behind() {
    for _ in 0..5 {
        let (mut running, temporary) = DemoCommand::demo("").start();
        // As soon as there is a folder to remove.
        let _ = wait_for("the folder", || std::fs::read_dir(temporary.path()).unwrap().next());
        running.signal("INT");
        let ended = running.wait_timeout(DEMO_TIMEOUT);
        assert_eq!(ended.code, Some(130), "{ended:?}");
        assert_empty(temporary.path());
    }
}

#[test]
fn somebody_impatient_leaves_nothing_behind_either() {
    let (mut running, temporary) = DemoCommand::demo("").start();
    (0..4).for_each(|_| drop(running.read_line()));
    for _ in 0..3 {
        if !running.has_exited() {
            running.signal("INT");
        }
    }
    let ended = running.wait_timeout(DEMO_TIMEOUT);
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert_empty(temporary.path());
}

#[test]
fn a_reader_who_has_seen_enough_and_a_failure_leave_nothing_behind() {
    let line = format!("'{}' demo | head -n 1", env!("CARGO_BIN_EXE_corbie"));
    let stage = DemoCommand::new(TestCommand::new("sh".into()).argument("-c").argument(line));
    let (mut running, temporary) = stage.start();
    let ended = running.wait_timeout(DEMO_TIMEOUT);
    assert!(ended.stdout.starts_with("Demonstration on sample documents") && ended.stderr.is_empty(), "{ended:?}");
    assert_empty(temporary.path());

    let nowhere =
        TestCommand::new(env!("CARGO_BIN_EXE_corbie").into()).arguments("demo").variable("TMPDIR", "/nowhere/at/all");
    let ended = nowhere.run("");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("/nowhere/at/all"), "{}", ended.stderr);
}

#[test]
fn a_demo_that_is_killed_leaves_something_in_the_temporary_folder_alone() {
    let stage = DemoCommand::demo("");
    let home = stage.setup.folder().to_owned();
    let (mut running, temporary) = stage.start();
    (0..4).for_each(|_| drop(running.read_line()));
    running.signal("KILL");
    running.wait_timeout(DEMO_TIMEOUT);
    assert_empty(&home);
    let left: Vec<_> = std::fs::read_dir(temporary.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name.to_string_lossy().starts_with("corbie-demo-")), "{left:?}");
}

#[test]
fn the_console_is_served_until_it_is_interrupted() {
    for signal in ["INT", "HUP"] {
        let (mut running, temporary) = DemoCommand::demo("--serve --json").start();
        let report = running.receive();
        assert_eq!(report["steps"].as_array().map(Vec::len), Some(8));
        let url = running.receive()["url"].as_str().unwrap().to_owned();
        let port = url.trim_end_matches('/').rsplit(':').next().unwrap().parse().unwrap();
        let client = HttpClient::v4(port);
        wait_for("the server", || client.try_call("GET", "/ready", &[], "").ok().filter(|reply| reply.status == 200));
        let found = client.post("/mcp", &call(1, "knowledge-search", json!({ "query": "fire bell" })));
        assert!(found.body.contains("Ring the brass bell"), "{}", found.body);
        running.signal(signal);
        let ended = running.wait_timeout(DEMO_TIMEOUT);
        assert_eq!(ended.code, Some(0), "{signal}: {ended:?}");
        assert_empty(temporary.path());
    }
}

#[test]
fn the_console_is_served_on_the_port_that_was_named() {
    let port = crate::process::free_port();
    let (mut running, temporary) = DemoCommand::demo(&format!("--serve --json --port {port}")).start();
    running.receive();
    assert_eq!(running.receive()["url"], format!("http://127.0.0.1:{port}/"));
    let client = HttpClient::v4(port);
    wait_for("the server", || client.try_call("GET", "/ready", &[], "").ok().filter(|reply| reply.status == 200));
    running.signal("INT");
    assert_eq!(running.wait_timeout(DEMO_TIMEOUT).code, Some(0));
    assert_empty(temporary.path());
}

#[test]
fn a_port_that_is_taken_is_told_before_anything_is_shown() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let (mut running, temporary) = DemoCommand::demo(&format!("--serve --port {port}")).start();
    let ended = running.wait_timeout(DEMO_TIMEOUT);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.contains("choose another port"), "{ended:?}");
    assert_empty(temporary.path());
}

#[test]
fn in_a_terminal_it_asks_before_it_serves() {
    let temporary = tempfile::tempdir().unwrap();
    let line = format!("TMPDIR='{}' '{}' demo", temporary.path().display(), env!("CARGO_BIN_EXE_corbie"));
    let Some(ended) = run_in_terminal(&line, "n\n") else { return };
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("[y/N]") && ended.stdout.contains("\u{1b}[1m"), "{}", ended.stdout);
    assert_empty(temporary.path());
}
