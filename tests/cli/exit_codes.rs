//! The exit codes documented in the long help, the man page and `docs/exit-codes.md`.

use serde_json::Value;

use crate::process::{TestCommand, corbie};
use crate::snapshots::shell_words;

/// Usage errors, detected by clap or by the command itself: invalid or missing values.
const WRONG_VALUES: &[&str] = &[
    "search hello --top 99",
    "search hello --top 0",
    "search hello --since yesterday",
    "search hello --until 2026-02-30",
    "search hello --min-relevance 1.1",
    "search hello --format xyz",
    "search hello --base a/b",
    "search ''",
    "show --limit 0",
    "show --limit 1001",
    "show --offset 4294967296",
    "tasks --limit 0",
    "add ''",
    "add a.txt --metadata []",
    "add a.txt --metadata {",
    "status --base a/b",
    "ask",
    "ask ''",
    "ask -",
    "ask hello --max-tokens 0",
    "ask --documents hello --base a/b",
    "tools call inspect_server {",
    "tools call inspect_server []",
    "eval --typos 2 a.jsonl",
    "taxonomy new --out a.txt",
    "taxonomy suggest --limit 0 a.yaml",
    "health nowhere",
    "health https://127.0.0.1:1",
    "extract --ocr force",
];
/// Arguments in a combination that is not allowed.
const WRONG_LINES: &[&str] = &["demo --port 8099", "--port 0 status", "--http status"];

fn corbie_with(line: &str) -> TestCommand {
    shell_words(line).into_iter().fold(corbie(""), |setup, word| setup.argument(word))
}

#[test]
fn the_codes_stand_in_the_long_help_and_in_the_documentation() {
    let long = corbie("--help").run("").stdout;
    let short = corbie("-h").run("").stdout;
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/exit-codes.md")).unwrap();
    assert!(!short.contains("Exit codes:"), "short help is short");
    for code in ["0", "1", "2", "130"] {
        assert!(long.contains(&format!("\n  {code:<3}  ")), "{code}: {long}");
        assert!(page.contains(&format!("| {code} |")), "{code}: {page}");
    }
}

#[test]
fn zero_is_for_what_was_done() {
    for line in ["--version", "--help", "config validate", "tools list", "status", "tokens list", "show"] {
        assert_eq!(corbie(line).run("").code, Some(0), "{line}");
    }
}

#[test]
fn one_is_for_what_failed_and_for_what_was_found() {
    for line in
        ["extract missing.pdf", "show missing", "config validate broken.yaml", "ask hello", "tools call missing"]
    {
        assert_eq!(corbie(line).file("broken.yaml", "nonsense: 1\n").run("").code, Some(1), "{line}");
    }
}

#[test]
fn two_is_for_a_wrong_command_line_and_for_wrong_settings() {
    for line in ["fly", "status --nonsense", "serve --port x", "extract"] {
        assert_eq!(corbie(line).run("").code, Some(2), "{line}");
    }
    for line in
        ["", "serve --port 0", "status", "status --json", "config show", "tools list", "models", "tokens create a"]
    {
        let ended = corbie(line).file("corbie.yaml", "nonsense: 1\n").run("");
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
    }
}

#[test]
fn what_is_typed_wrongly_ends_with_two_whoever_finds_it() {
    for line in WRONG_VALUES.iter().chain(WRONG_LINES) {
        let ended = corbie_with(line).run("");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line}: {ended:?}");
        assert!(ended.stderr.starts_with("error: ") || ended.stderr.starts_with("corbie: "), "{line}: {ended:?}");
    }
}

#[test]
fn programs_are_told_of_it_in_one_object() {
    let values = WRONG_VALUES.iter().map(|line| (line, "invalid_parameter"));
    let lines = WRONG_LINES.iter().chain(&["status --nonsense", "extract", "fly"]);
    for (line, wanted) in values.chain(lines.map(|line| (line, "invalid_command_line"))) {
        let ended = corbie_with(line).argument("--json").run("");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(2), ""), "{line}: {ended:?}");
        let told: Value =
            serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{line}: {error}: {ended:?}"));
        let word = told["error"].as_str().unwrap();
        assert_eq!(word, wanted, "{line}: {told}");
        let message = told["message"].as_str().unwrap();
        assert!(told["success"] == false && !message.is_empty() && !message.contains("Usage:"), "{line}: {told}");
    }
    // Without that flag, the error is an unknown flag like any other.
    for line in ["stdio --json", "serve --json"] {
        let ended = corbie_with(line).run("");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line}: {ended:?}");
    }
    // After `--` it is an ordinary word.
    let ended = corbie_with("ask --nonsense -- --json").run("");
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn exit_code_130_is_for_an_interruption() {
    let mut classifying = corbie("classify --method rules").start();
    classifying.send_bytes(b"what is 2 + 2?\n");
    assert!(classifying.read_line().starts_with("math"));
    classifying.signal("INT");
    let ended = classifying.wait();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(130), ""));
}

#[test]
fn zero_is_for_a_reader_who_has_seen_enough() {
    for flags in ["", "--json"] {
        let mut classifying = corbie("classify --method rules").arguments(flags).start();
        classifying.close_stdout();
        classifying.send_bytes(b"what is 2 + 2?\n");
        let ended = classifying.wait();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{flags}");
    }
}
