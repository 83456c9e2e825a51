//! Compares output for people with committed snapshots.
//!
//! After a change, or with a new command, update them and review the diff:
//!
//! `CORBIE_BLESS=1 cargo nextest run -p corbie --test cli -E 'test(/^(help|errors)::/)'`

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::process::ProcessOutput;

/// Compares texts with the files of a folder; texts and files must correspond one to one.
#[track_caller]
pub(crate) fn compare(folder: &str, texts: &BTreeMap<String, String>) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots").join(folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let blesses = std::env::var_os("CORBIE_BLESS").is_some();
    let mut wrong = String::new();
    for entry in folder.read_dir().expect("the folder").flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match texts.contains_key(&name) {
            true => {}
            false if blesses => std::fs::remove_file(&path).expect("a file less"),
            false => wrong += &format!("{name}: there is a file, and nothing that it is compared with\n"),
        }
    }
    for (name, text) in texts {
        let path = folder.join(format!("{name}.txt"));
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        if committed == *text {
            continue;
        }
        match blesses {
            true => std::fs::write(&path, text).expect("a file"),
            false => wrong += &format!("=== {name} was\n{committed}=== {name} is\n{text}"),
        }
    }
    assert!(wrong.is_empty(), "{wrong}look at tests/cli/snapshots.rs for how to write the files anew");
}

/// Command line, exit code and output.
pub(crate) fn transcript(line: &str, ended: &ProcessOutput) -> String {
    let code = ended.code.map_or("none".to_owned(), |code| code.to_string());
    format!("$ {line}\nexit code {code}\n--- stdout\n{}--- stderr\n{}", ended.stdout, ended.stderr)
}

/// Splits a line as a shell does.
pub(crate) fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars() {
        match (quote, letter) {
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == letter => quote = None,
            (None, ' ') => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
