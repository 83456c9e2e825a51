//! Colours and progress: only on terminals, and only if wanted.

use crate::process::{ProcessOutput, corbie};
use crate::terminal::run_in_terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_corbie");

/// Runs in a terminal with these variables and arguments.
fn run_with_color_env(variables: &str, arguments: &str) -> Option<ProcessOutput> {
    run_in_terminal(&format!("unset NO_COLOR; TERM=xterm {variables} '{PROGRAM}' {arguments}"), "")
}

fn is_coloured(ended: &ProcessOutput) -> bool {
    ended.stdout.contains("\u{1b}[1m") || ended.stdout.contains("\u{1b}[4m") || ended.stdout.contains("\u{1b}[31m")
}

#[test]
fn at_a_terminal_there_are_colours_unless_somebody_wants_none() {
    for arguments in ["--help", "fly", "serve --help"] {
        let Some(ended) = run_with_color_env("", arguments) else { return };
        assert!(is_coloured(&ended), "{arguments}: {ended:?}");
        assert!(
            is_coloured(&run_with_color_env("NO_COLOR=", arguments).unwrap()),
            "an empty value says nothing: {arguments}"
        );
        for without in ["NO_COLOR=1", "NO_COLOR=0", "TERM=dumb"] {
            let ended = run_with_color_env(without, arguments).unwrap();
            assert!(!ended.stdout.contains('\u{1b}'), "{without} {arguments}: {ended:?}");
        }
        let ended = run_with_color_env("", &format!("--color never {arguments}")).unwrap();
        assert!(!ended.stdout.contains('\u{1b}'), "{arguments}: {ended:?}");
        assert!(
            is_coloured(&run_with_color_env("NO_COLOR=1", &format!("--color=always {arguments}")).unwrap()),
            "{arguments}"
        );
    }
}

#[test]
fn log_lines_have_colours_where_other_lines_have() {
    let log = |variables: &str, flags: &str| {
        let stdin = "printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\\n' |";
        let line = format!("unset NO_COLOR; {stdin} TERM=xterm {variables} '{PROGRAM}' {flags} stdio");
        run_in_terminal(&line, "")
    };
    let Some(ended) = log("", "") else { return };
    assert!(ended.stdout.contains("serving") && ended.stdout.contains('\u{1b}'), "{ended:?}");
    for (variables, flags) in [("NO_COLOR=1", ""), ("TERM=dumb", ""), ("", "--color never")] {
        let ended = log(variables, flags).unwrap();
        assert!(ended.stdout.contains("serving") && !ended.stdout.contains('\u{1b}'), "{variables} {flags}: {ended:?}");
    }
}

#[test]
fn without_a_terminal_there_are_none_unless_asked_for() {
    assert!(!corbie("--help").run("").stdout.contains('\u{1b}'));
    assert!(!corbie("fly").run("").stderr.contains('\u{1b}'));
    assert!(corbie("--help --color always").run("").stdout.contains("\u{1b}["));
    assert!(corbie("--color=pink status").run("").stderr.contains("auto, always, never"));
}

#[test]
fn progress_is_shown_to_people_at_terminals_alone() {
    const CLEARS: &str = "\u{1b}[K";
    let folder = tempfile::tempdir().unwrap();
    let home = format!("HOME='{}'", folder.path().display());
    let Some(ended) = run_with_color_env(&home, "status") else { return };
    assert!(ended.stdout.contains("opening the knowledge base") && ended.stdout.contains(CLEARS), "{ended:?}");
    for (variables, arguments) in [("", "status --json"), ("TERM=dumb", "status")] {
        let ended = run_with_color_env(&format!("{home} {variables}"), arguments).unwrap();
        assert!(!ended.stdout.contains("opening") && !ended.stdout.contains(CLEARS), "{arguments}: {ended:?}");
    }
    let ended = corbie("status").run("");
    assert!(!ended.stderr.contains("opening") && !ended.stdout.contains("opening"), "{ended:?}");
}
