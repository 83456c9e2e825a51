//! Colours and progress: only on terminals, and only if wanted.

use crate::process::{Ended, corbie};
use crate::terminal::in_a_terminal;

const PROGRAM: &str = env!("CARGO_BIN_EXE_corbie");

/// Runs in a terminal with these variables and arguments.
fn shown(variables: &str, arguments: &str) -> Option<Ended> {
    in_a_terminal(&format!("unset NO_COLOR; TERM=xterm {variables} '{PROGRAM}' {arguments}"), "")
}

fn is_coloured(ended: &Ended) -> bool {
    ended.out.contains("\u{1b}[1m") || ended.out.contains("\u{1b}[4m") || ended.out.contains("\u{1b}[31m")
}

#[test]
fn at_a_terminal_there_are_colours_unless_somebody_wants_none() {
    for arguments in ["--help", "fly", "serve --help"] {
        let Some(ended) = shown("", arguments) else { return };
        assert!(is_coloured(&ended), "{arguments}: {ended:?}");
        assert!(is_coloured(&shown("NO_COLOR=", arguments).unwrap()), "an empty value says nothing: {arguments}");
        for without in ["NO_COLOR=1", "NO_COLOR=0", "TERM=dumb"] {
            let ended = shown(without, arguments).unwrap();
            assert!(!ended.out.contains('\u{1b}'), "{without} {arguments}: {ended:?}");
        }
        let ended = shown("", &format!("--color never {arguments}")).unwrap();
        assert!(!ended.out.contains('\u{1b}'), "{arguments}: {ended:?}");
        assert!(is_coloured(&shown("NO_COLOR=1", &format!("--color=always {arguments}")).unwrap()), "{arguments}");
    }
}

#[test]
fn log_lines_have_colours_where_other_lines_have() {
    let log = |variables: &str, flags: &str| {
        let stdin = "printf '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\\n' |";
        let line = format!("unset NO_COLOR; {stdin} TERM=xterm {variables} '{PROGRAM}' {flags} stdio");
        in_a_terminal(&line, "")
    };
    let Some(ended) = log("", "") else { return };
    assert!(ended.out.contains("serving") && ended.out.contains('\u{1b}'), "{ended:?}");
    for (variables, flags) in [("NO_COLOR=1", ""), ("TERM=dumb", ""), ("", "--color never")] {
        let ended = log(variables, flags).unwrap();
        assert!(ended.out.contains("serving") && !ended.out.contains('\u{1b}'), "{variables} {flags}: {ended:?}");
    }
}

#[test]
fn without_a_terminal_there_are_none_unless_asked_for() {
    assert!(!corbie("--help").run("").out.contains('\u{1b}'));
    assert!(!corbie("fly").run("").err.contains('\u{1b}'));
    assert!(corbie("--help --color always").run("").out.contains("\u{1b}["));
    assert!(corbie("--color=pink status").run("").err.contains("auto, always, never"));
}

#[test]
fn progress_is_shown_to_people_at_terminals_alone() {
    const CLEARS: &str = "\u{1b}[K";
    let folder = tempfile::tempdir().unwrap();
    let home = format!("HOME='{}'", folder.path().display());
    let Some(ended) = shown(&home, "status") else { return };
    assert!(ended.out.contains("opening the knowledge base") && ended.out.contains(CLEARS), "{ended:?}");
    for (variables, arguments) in [("", "status --json"), ("TERM=dumb", "status")] {
        let ended = shown(&format!("{home} {variables}"), arguments).unwrap();
        assert!(!ended.out.contains("opening") && !ended.out.contains(CLEARS), "{arguments}: {ended:?}");
    }
    let ended = corbie("status").run("");
    assert!(!ended.err.contains("opening") && !ended.out.contains("opening"), "{ended:?}");
}
