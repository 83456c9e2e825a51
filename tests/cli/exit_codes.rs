//! The exit codes that the long help, the man page and `docs/exit-codes.md` promise.

use crate::process::corbie;

#[test]
fn the_codes_stand_in_the_long_help_and_in_the_documentation() {
    let long = corbie("--help").run("").out;
    let short = corbie("-h").run("").out;
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

#[cfg(unix)]
#[test]
fn a130_is_for_an_interruption_wherever_it_comes() {
    let mut classifying = corbie("classify --method rules").start();
    classifying.send_bytes(b"what is 2 + 2?\n");
    assert!(classifying.line().starts_with("math"));
    classifying.signal("INT");
    let ended = classifying.end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(130), ""));
}

#[test]
fn zero_is_for_a_reader_who_has_seen_enough() {
    for flags in ["", "--json"] {
        let mut classifying = corbie("classify --method rules").arguments(flags).start();
        classifying.close_stdout();
        classifying.send_bytes(b"what is 2 + 2?\n");
        let ended = classifying.end();
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{flags}");
    }
}
