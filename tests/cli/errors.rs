//! Every class of error: message, stream and exit code. Each message has advice.

use std::collections::BTreeMap;
use std::net::TcpListener;

use crate::process::{Ended, Setup, corbie};
use crate::snapshots::{compare, told, words};
use crate::upstream::Upstream;

/// A failing command line and its environment.
struct Case {
    name: &'static str,
    line: &'static str,
    files: &'static [(&'static str, &'static str)],
    variables: &'static [(&'static str, &'static str)],
    input: &'static [u8],
}

const NOTHING: Case = Case { name: "", line: "", files: &[], variables: &[], input: b"" };
const BROKEN: &[(&str, &str)] = &[("broken.yaml", "server:\n  nmae: x\nlog:\n  level: loud\n")];
const MOCK: &[(&str, &str)] = &[("corbie.yaml", "providers:\n  mock: {}\n")];
const NOT_UTF8: &[u8] = b"\xff\xfe\n";

const fn typed(name: &'static str, line: &'static str) -> Case {
    Case { name, line, ..NOTHING }
}

const CASES: &[Case] = &[
    // The command line.
    typed("wrong-command", "clasify"),
    typed("wrong-subcommand", "knowledge chekc"),
    typed("wrong-flag", "classify --jsno"),
    typed("wrong-value", "classify --method best hello"),
    typed("wrong-number", "serve --port many"),
    typed("value-out-of-range", "search --top 0 hello"),
    typed("value-out-of-range-json", "search --top 99 --json hello"),
    typed("flags-of-another-command", "--port 8090 status"),
    typed("flag-that-needs-another", "demo --port 8099"),
    typed("help-of-a-mistyped-command", "help serch"),
    typed("missing-argument", "extract"),
    typed("missing-subcommand", "config"),
    typed("flags-that-exclude-each-other", "extract --json --markdown a.pdf"),
    typed("wrong-trust", "--trust everybody status"),
    typed("wrong-name-of-a-token", "tokens create 'a b'"),
    typed("wrong-duration", "tokens create laptop --expires-in soon"),
    // The settings.
    Case { files: BROKEN, ..typed("settings-with-mistakes", "--config broken.yaml status") },
    Case { files: BROKEN, ..typed("settings-with-mistakes-json", "--config broken.yaml status --json") },
    Case { files: BROKEN, ..typed("settings-checked", "config validate broken.yaml") },
    Case { files: BROKEN, ..typed("settings-checked-json", "config validate broken.yaml --json") },
    Case { files: &[("odd.yaml", "server: [1,\n")], ..typed("settings-that-are-no-yaml", "--config odd.yaml serve") },
    Case { variables: &[("CORBIE_SERVER__NMAE", "x")], ..typed("wrong-variable", "serve") },
    typed("settings-not-there", "--config missing.yaml serve"),
    // Files.
    typed("missing-file", "extract missing.pdf"),
    typed("missing-file-json", "extract --json missing.pdf"),
    typed("missing-labelled-texts", "eval missing.jsonl"),
    typed("missing-taxonomy", "taxonomy train missing.yaml"),
    typed("missing-backup", "knowledge restore missing.db"),
    Case { files: &[("a.xyz", "a")], ..typed("unsupported-format", "extract a.xyz") },
    Case { files: &[("a.xyz", "a")], ..typed("unsupported-format-added", "add a.xyz") },
    Case { files: &[("a.pdf", "a")], ..typed("damaged-file", "extract a.pdf") },
    Case { files: &[("a.txt", "a")], ..typed("wrong-ending", "taxonomy new --out a.txt") },
    Case { files: &[("a.yaml", "a")], ..typed("file-exists", "taxonomy new --out a.yaml") },
    Case {
        files: &[("a.yaml", "categories:\n  - nmae: x\n")],
        ..typed("taxonomy-with-mistakes", "taxonomy check a.yaml")
    },
    Case { files: &[("a.jsonl", "{\n")], ..typed("labelled-texts-with-mistakes", "eval a.jsonl") },
    // Input on stdin.
    Case { input: NOT_UTF8, ..typed("stdin-not-utf8", "classify") },
    Case { input: NOT_UTF8, ..typed("stdin-not-utf8-json", "embed --json") },
    Case { input: NOT_UTF8, ..typed("prompt-not-utf8", "ask") },
    typed("empty-prompt", "ask ''"),
    typed("no-prompt", "ask"),
    typed("empty-text", "classify ''"),
    typed("empty-text-json", "classify --json ''"),
    typed("empty-query", "search ''"),
    typed("empty-text-to-embed", "embed ''"),
    // The knowledge base.
    typed("no-such-document", "show missing"),
    typed("no-such-document-json", "remove --json --yes missing"),
    typed("no-such-task", "tasks cancel abc"),
    typed("no-such-knowledge-base", "search --base other hello"),
    Case {
        variables: &[("CORBIE_KNOWLEDGE__STORAGE_PATH", "store")],
        ..typed("no-knowledge-base-yet", "knowledge check")
    },
    typed("confirmation-needed", "clear"),
    typed("confirmation-needed-json", "clear --json"),
    Case { variables: &[("CORBIE_KNOWLEDGE__ENABLED", "false")], ..typed("knowledge-base-off", "add a.txt") },
    Case {
        files: &[("taken", "")],
        variables: &[("CORBIE_KNOWLEDGE__STORAGE_PATH", "taken")],
        ..typed("storage-unusable", "add taken")
    },
    typed("wrong-metadata", "add --metadata '[]' a.txt"),
    typed("wrong-date", "search --since yesterday hello"),
    // Tools, tokens, models and providers.
    typed("no-such-tool", "tools call missing"),
    typed("no-such-tool-json", "tools call --json missing"),
    typed("arguments-that-are-no-json", "tools call inspect_server '{'"),
    typed("arguments-that-do-not-fit", "tools call classify_text '{}'"),
    typed("no-such-token", "tokens revoke missing"),
    typed("no-such-token-json", "tokens revoke --json missing"),
    typed("no-such-tool-of-a-token", "tokens create laptop --tool missing"),
    typed("no-provider", "ask hello"),
    typed("no-provider-json", "ask --json hello"),
    Case { files: MOCK, ..typed("no-such-model", "ask --model mok hello") },
    Case { files: MOCK, ..typed("no-such-model-json", "ask --json --model mok hello") },
    Case { files: MOCK, ..typed("no-such-model-explained", "ask --explain --model mok hello") },
    Case {
        files: &[("corbie.yaml", "providers:\n  openai: {}\n")],
        ..typed("no-key", "ask --model openai/gpt-4o hello")
    },
    Case { files: &[("corbie.yaml", "providers:\n  openai: {}\n")], ..typed("no-key-of-any-provider", "providers") },
    Case { variables: &[("CORBIE_INFERENCE__EMBEDDING__PATH", "missing")], ..typed("no-model", "embed hello") },
];

impl Case {
    fn setup(&self) -> Setup {
        let mut setup = corbie("");
        for word in words(self.line) {
            setup = setup.argument(word);
        }
        for (name, content) in self.files {
            setup = setup.file(name, content);
        }
        self.variables.iter().fold(setup, |setup, (name, value)| setup.variable(name, value))
    }

    fn told(&self) -> (String, String) {
        let setup = self.setup();
        let folder = setup.folder().display().to_string();
        let mut running = setup.start();
        if !self.input.is_empty() {
            running.send_bytes(self.input);
        }
        running.close_stdin();
        (self.name.to_owned(), shown(self.line, &running.end(), &[(&folder, "[FOLDER]")]))
    }
}

/// Output with variable parts replaced by placeholders.
fn shown(line: &str, ended: &Ended, names: &[(&str, &str)]) -> String {
    let told = told(&format!("corbie {line}"), ended);
    let told = names.iter().fold(told, |told, (text, name)| told.replace(text, name));
    // OS error numbers differ between systems.
    let mut pieces = told.split("(os error ");
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |told, piece| {
        format!("{told}(os error [NUMBER]{}", piece.trim_start_matches(|c: char| c.is_numeric()))
    })
}

/// A port in use.
fn port_taken() -> String {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let ended = corbie("serve --port").argument(&port).run("");
    shown("serve --port [PORT]", &ended, &[(&port, "[PORT]")])
}

fn no_answer_in_time() -> String {
    let upstream = Upstream::start();
    upstream.configure("acme: {base_url: 'BASE/v1', api_key: KEY, timeout: 1s}");
    let ended = upstream.corbie("ask --model acme/stall hello").run("");
    shown("ask --model acme/stall hello", &ended, &[])
}

#[cfg(unix)]
fn unreadable_file() -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let setup = corbie("extract closed.txt").file("closed.txt", "text");
    let path = setup.folder().join("closed.txt");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    // Root can read everything and does not get this error.
    let is_closed = std::fs::read(&path).is_err();
    is_closed.then(|| shown("extract closed.txt", &setup.run(""), &[]))
}

/// See `snapshots.rs` for how to update them.
#[test]
fn every_class_of_error_is_told_as_committed() {
    let mut texts: BTreeMap<String, String> = CASES.iter().map(Case::told).collect();
    assert_eq!(texts.len(), CASES.len(), "each has a name of its own");
    texts.insert("port-taken".into(), port_taken());
    texts.insert("no-answer-in-time".into(), no_answer_in_time());
    compare("errors", &texts);
}

/// Not part of the snapshots, because root can read everything and does not get this error.
#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_named() {
    let Some(told) = unreadable_file() else { return crate::process::skip("this user may read everything") };
    assert!(told.contains("exit code 1") && told.contains("closed.txt: the file cannot be opened"), "{told}");
}

#[test]
fn for_programs_every_failure_is_one_object_on_stdout_and_nothing_else() {
    for case in CASES.iter().filter(|case| case.line.contains("--json")) {
        let (name, told) = case.told();
        let (_, streams) = told.split_once("--- stdout\n").unwrap();
        let (out, err) = streams.split_once("--- stderr\n").unwrap();
        let object: serde_json::Value =
            serde_json::from_str(out).unwrap_or_else(|error| panic!("{name}: {error}: {told}"));
        assert_eq!(err, "", "{name}");
        assert!(object["error"].is_string() && object["message"].is_string(), "{name}: {object}");
        // With several files, each has an object, which contains the readable part.
        assert!(object["success"] == false || object["file"].is_string(), "{name}: {object}");
    }
}

#[test]
fn what_was_typed_does_not_control_the_terminal_of_whoever_typed_it() {
    for argument in ["\u{1b}[2J", "--\u{1b}]0;mine\u{7}", "\u{202e}fdp"] {
        let ended = corbie("").argument(argument).run("");
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(!ended.err.contains(['\u{1b}', '\u{7}', '\u{202e}']) && ended.err.starts_with("error: "), "{ended:?}");
    }
}
