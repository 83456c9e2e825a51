//! Output in terminals of 80 and 120 columns: progress never wraps, and lists are wrapped by display width.

use std::path::Path;

use crate::terminal::run_in_terminal;

/// Columns of a text, without corbie's own escape sequences.
fn columns(text: &str) -> usize {
    let mut rest = text;
    let mut count = 0;
    while let Some(letter) = rest.chars().next() {
        rest = match rest.strip_prefix('\u{1b}') {
            Some(sequence) => {
                sequence.split_once(|letter: char| letter.is_ascii_alphabetic()).map_or("", |(_, rest)| rest)
            }
            None => {
                count += if ('\u{2e80}'..'\u{fb00}').contains(&letter) { 2 } else { 1 };
                &rest[letter.len_utf8()..]
            }
        };
    }
    count
}

/// Runs a command in a terminal of this width, with a folder as working directory and home.
fn run(width: usize, arguments: &str, folder: &Path) -> Option<String> {
    let program = env!("CARGO_BIN_EXE_corbie");
    let line = format!(
        "stty cols {width} rows 24; cd '{0}' && HOME='{0}' CORBIE_PROVIDERS__DETECT_PORTS='[]' '{program}' {arguments}",
        folder.display()
    );
    let ended = run_in_terminal(&line, "")?;
    Some(ended.stdout)
}

/// Every part of the output that ends with a line feed or is overwritten after a carriage return.
fn parts(output: &str) -> impl Iterator<Item = &str> {
    output.split(['\n', '\r'])
}

#[test]
fn progress_and_lists_fit_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let documents = folder.path().join("documents");
    std::fs::create_dir(&documents).unwrap();
    let sentence = "The lighthouse keeper of the northern harbour writes a report about every ship that passes. ";
    for number in 0..30 {
        let name =
            format!("report-{number}-of-the-harbour-with-a-very-long-name-港湾の非常に長い名前-{}.txt", "x".repeat(60));
        std::fs::write(documents.join(name), format!("{}{number}\n", sentence.repeat(20))).unwrap();
    }
    std::fs::write(documents.join("日本語.txt"), "灯台守は北の港を通るすべての船について報告書を書きます。".repeat(10))
        .unwrap();
    let mut has_progress = false;
    for width in [80, 120] {
        let base = format!("--base b{width}");
        let Some(added) = run(width, &format!("add documents {base}"), folder.path()) else { return };
        assert!(added.contains("31 files: 31 added"), "{added}");
        has_progress |= added.contains("\r[");
        for part in parts(&added) {
            assert!(columns(part) < width, "{width}: {part:?}");
        }
        for command in [
            format!("search {base} --top 5 lighthouse keeper report"),
            format!("search {base} --top 3 灯台守 報告書"),
            format!("show {base}"),
            "tasks".to_owned(),
            "connect".to_owned(),
            "tools list".to_owned(),
            "doctor".to_owned(),
        ] {
            let shown = run(width, &command, folder.path()).unwrap();
            assert!(shown.lines().count() > 1, "{command}: {shown}");
            for part in parts(&shown) {
                assert!(columns(part) <= width, "{width}, {command}: {part:?}");
            }
        }
    }
    assert!(has_progress, "no progress was shown");
}

#[test]
fn lists_have_short_ids_that_commands_accept() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "one text").unwrap();
    if run(80, "add a.txt", folder.path()).is_none() {
        return;
    }
    let shown = run(80, "show", folder.path()).unwrap();
    let row = shown.lines().nth(1).unwrap();
    let id = row.split_whitespace().rev().nth(1).unwrap();
    assert_eq!(id.len(), 8, "{shown}");
    assert!(run(80, &format!("show {id}"), folder.path()).unwrap().contains("one text"));
}

#[test]
fn json_is_indented_on_a_terminal_and_one_line_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    for command in [
        "config list --json",
        "config show --json",
        "models --json",
        "tokens list --json",
        "tools list --json",
        "connect --json",
    ] {
        let Some(shown) = run(80, command, folder.path()) else { return };
        assert!(shown.starts_with("{\r\n  \""), "{command}: {shown}");
        let piped = crate::process::corbie(command).run("");
        assert_eq!(piped.stdout.lines().count(), 1, "{command}: {piped:?}");
        assert!(serde_json::from_str::<serde_json::Value>(&piped.stdout).is_ok(), "{command}");
    }
}
