//! Every class of error: message, stream and exit code. Each message has advice.

use std::collections::BTreeMap;
use std::net::TcpListener;

use crate::process::{ProcessOutput, TestCommand, corbie};
use crate::snapshots::{compare, shell_words, transcript};
use crate::upstream::FakeUpstream;

/// A failing command line and its environment.
struct Case {
    name: &'static str,
    line: &'static str,
    files: &'static [(&'static str, &'static str)],
    variables: &'static [(&'static str, &'static str)],
    input: &'static [u8],
}

const EMPTY_CASE: Case = Case { name: "", line: "", files: &[], variables: &[], input: b"" };
const BROKEN: &[(&str, &str)] = &[("broken.yaml", "server:\n  nmae: x\nlog:\n  level: loud\n")];
const MOCK: &[(&str, &str)] = &[("corbie.yaml", "providers:\n  mock: {}\n")];
const NOT_UTF8: &[u8] = b"\xff\xfe\n";

const fn new_case(name: &'static str, line: &'static str) -> Case {
    Case { name, line, ..EMPTY_CASE }
}

const CASES: &[Case] = &[
    // The command line.
    new_case("wrong-command", "clasify"),
    new_case("wrong-subcommand", "knowledge chekc"),
    new_case("wrong-flag", "classify --jsno"),
    new_case("wrong-value", "classify --method best hello"),
    new_case("wrong-number", "serve --port many"),
    new_case("value-out-of-range", "search --top 0 hello"),
    new_case("value-out-of-range-json", "search --top 99 --json hello"),
    new_case("flags-of-another-command", "--port 8090 status"),
    new_case("flag-that-needs-another", "demo --port 8099"),
    new_case("help-of-a-mistyped-command", "help serch"),
    new_case("missing-argument", "extract"),
    new_case("missing-subcommand", "config"),
    new_case("flags-that-exclude-each-other", "extract --json --markdown a.pdf"),
    new_case("wrong-trust", "--trust everybody status"),
    new_case("wrong-name-of-a-token", "tokens create 'a b'"),
    new_case("wrong-duration", "tokens create laptop --expires-in soon"),
    // The settings.
    Case { files: BROKEN, ..new_case("settings-with-mistakes", "--config broken.yaml status") },
    Case { files: BROKEN, ..new_case("settings-with-mistakes-json", "--config broken.yaml status --json") },
    Case { files: BROKEN, ..new_case("settings-checked", "config validate broken.yaml") },
    Case { files: BROKEN, ..new_case("settings-checked-json", "config validate broken.yaml --json") },
    Case {
        files: &[("odd.yaml", "server: [1,\n")],
        ..new_case("settings-that-are-no-yaml", "--config odd.yaml serve")
    },
    Case { variables: &[("CORBIE_SERVER__NMAE", "x")], ..new_case("wrong-variable", "serve") },
    new_case("settings-not-there", "--config missing.yaml serve"),
    // Files.
    new_case("missing-file", "extract missing.pdf"),
    new_case("missing-file-json", "extract --json missing.pdf"),
    new_case("missing-labelled-texts", "eval missing.jsonl"),
    new_case("missing-taxonomy", "taxonomy train missing.yaml"),
    new_case("missing-backup", "knowledge restore missing.db"),
    Case { files: &[("a.xyz", "a")], ..new_case("unsupported-format", "extract a.xyz") },
    Case { files: &[("a.xyz", "a")], ..new_case("unsupported-format-added", "add a.xyz") },
    Case { files: &[("a.pdf", "a")], ..new_case("damaged-file", "extract a.pdf") },
    Case { files: &[("a.txt", "a")], ..new_case("wrong-ending", "taxonomy new --out a.txt") },
    Case { files: &[("a.yaml", "a")], ..new_case("file-exists", "taxonomy new --out a.yaml") },
    Case {
        files: &[("a.yaml", "categories:\n  - nmae: x\n")],
        ..new_case("taxonomy-with-mistakes", "taxonomy check a.yaml")
    },
    Case { files: &[("a.jsonl", "{\n")], ..new_case("labelled-texts-with-mistakes", "eval a.jsonl") },
    // Input on stdin.
    Case { input: NOT_UTF8, ..new_case("stdin-not-utf8", "classify") },
    Case { input: NOT_UTF8, ..new_case("stdin-not-utf8-json", "embed --json") },
    Case { input: NOT_UTF8, ..new_case("prompt-not-utf8", "ask") },
    new_case("empty-prompt", "ask ''"),
    new_case("no-prompt", "ask"),
    new_case("empty-text", "classify ''"),
    new_case("empty-text-json", "classify --json ''"),
    new_case("empty-query", "search ''"),
    new_case("empty-text-to-embed", "embed ''"),
    // The knowledge base.
    new_case("no-such-document", "show missing"),
    new_case("no-such-document-json", "remove --json --yes missing"),
    new_case("no-such-task", "tasks cancel abc"),
    new_case("no-such-knowledge-base", "search --base other hello"),
    Case {
        variables: &[("CORBIE_KNOWLEDGE__STORAGE_PATH", "store")],
        ..new_case("no-knowledge-base-yet", "knowledge check")
    },
    new_case("confirmation-needed", "clear"),
    new_case("confirmation-needed-json", "clear --json"),
    Case { variables: &[("CORBIE_KNOWLEDGE__ENABLED", "false")], ..new_case("knowledge-base-off", "add a.txt") },
    Case {
        files: &[("taken", "")],
        variables: &[("CORBIE_KNOWLEDGE__STORAGE_PATH", "taken")],
        ..new_case("storage-unusable", "add taken")
    },
    new_case("wrong-metadata", "add --metadata '[]' a.txt"),
    new_case("wrong-date", "search --since yesterday hello"),
    // Tools, tokens, models and providers.
    new_case("no-such-tool", "tools call missing"),
    new_case("no-such-tool-json", "tools call --json missing"),
    new_case("arguments-that-are-no-json", "tools call inspect_server '{'"),
    new_case("arguments-that-do-not-fit", "tools call classify_text '{}'"),
    new_case("no-such-token", "tokens revoke missing"),
    new_case("no-such-token-json", "tokens revoke --json missing"),
    new_case("no-such-tool-of-a-token", "tokens create laptop --tool missing"),
    new_case("no-provider", "ask hello"),
    new_case("no-provider-json", "ask --json hello"),
    Case { files: MOCK, ..new_case("no-such-model", "ask --model mok hello") },
    Case { files: MOCK, ..new_case("no-such-model-json", "ask --json --model mok hello") },
    Case { files: MOCK, ..new_case("no-such-model-explained", "ask --explain --model mok hello") },
    Case {
        files: &[("corbie.yaml", "providers:\n  openai: {}\n")],
        ..new_case("no-key", "ask --model openai/gpt-4o hello")
    },
    Case { files: &[("corbie.yaml", "providers:\n  openai: {}\n")], ..new_case("no-key-of-any-provider", "providers") },
    Case { variables: &[("CORBIE_INFERENCE__EMBEDDING__PATH", "missing")], ..new_case("no-model", "embed hello") },
];

impl Case {
    fn setup(&self) -> TestCommand {
        let mut setup = corbie("");
        for word in shell_words(self.line) {
            setup = setup.argument(word);
        }
        for (name, content) in self.files {
            setup = setup.file(name, content);
        }
        self.variables.iter().fold(setup, |setup, (name, value)| setup.variable(name, value))
    }

    fn snapshot(&self) -> (String, String) {
        let setup = self.setup();
        let folder = setup.folder().display().to_string();
        let mut running = setup.start();
        if !self.input.is_empty() {
            running.send_bytes(self.input);
        }
        running.close_stdin();
        (self.name.to_owned(), normalized_output(self.line, &running.wait(), &[(&folder, "[FOLDER]")]))
    }
}

/// Output with variable parts replaced by placeholders.
fn normalized_output(line: &str, ended: &ProcessOutput, names: &[(&str, &str)]) -> String {
    let told = transcript(&format!("corbie {line}"), ended);
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
    normalized_output("serve --port [PORT]", &ended, &[(&port, "[PORT]")])
}

fn no_answer_in_time() -> String {
    let upstream = FakeUpstream::start();
    upstream.configure("acme: {base_url: 'BASE/v1', api_key: KEY, timeout: 1s}");
    let ended = upstream.corbie("ask --model acme/stall hello").run("");
    normalized_output("ask --model acme/stall hello", &ended, &[])
}

#[cfg(unix)]
fn unreadable_file() -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let setup = corbie("extract closed.txt").file("closed.txt", "text");
    let path = setup.folder().join("closed.txt");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o000)).unwrap();
    // Root can read everything and does not get this error.
    let is_closed = std::fs::read(&path).is_err();
    is_closed.then(|| normalized_output("extract closed.txt", &setup.run(""), &[]))
}

/// See `snapshots.rs` for how to update them.
#[test]
fn errors_match_their_snapshots() {
    let mut texts: BTreeMap<String, String> = CASES.iter().map(Case::snapshot).collect();
    assert_eq!(texts.len(), CASES.len(), "each has a name of its own");
    texts.insert("port-taken".into(), port_taken());
    texts.insert("no-answer-in-time".into(), no_answer_in_time());
    compare("errors", &texts);
}

/// Not part of the snapshots, because root can read everything and does not get this error.
#[cfg(unix)]
#[test]
fn unreadable_file_is_named() {
    let Some(told) = unreadable_file() else { return crate::process::report_skip("this user may read everything") };
    assert!(told.contains("exit code 1") && told.contains("closed.txt: the file cannot be opened"), "{told}");
}

#[test]
fn json_failure_is_one_object_on_stdout() {
    for case in CASES.iter().filter(|case| case.line.contains("--json")) {
        let (name, told) = case.snapshot();
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
fn typed_text_is_sanitized_in_errors() {
    for argument in ["\u{1b}[2J", "--\u{1b}]0;mine\u{7}", "\u{202e}fdp"] {
        let ended = corbie("").argument(argument).run("");
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            !ended.stderr.contains(['\u{1b}', '\u{7}', '\u{202e}']) && ended.stderr.starts_with("error: "),
            "{ended:?}"
        );
    }
}
