//! Documents, models and file names that try to control the user's terminal.

use crate::process::TestCommand;
use crate::terminal::run_in_terminal;
use crate::upstream::FakeUpstream;

/// Clears the screen, sets the title, rings the bell, colours with a C1 control character, and overrides the text
/// direction.
const ESCAPE_SEQUENCES: &str = "owls\u{1b}[2J\u{1b}]0;mine\u{7}\u{9b}31m\u{202e}\u{2066}\u{8}";

/// Every command that prints text from a document, a model or a file name.
const COMMANDS: &[&str] = &[
    "extract NAMED",
    "extract --json NAMED",
    "extract NAMED missing-NAMED",
    "add NAMED",
    "search owls hunt at night",
    "search --json owls hunt at night",
    "show",
    "show --json",
    "tasks",
    "tasks --json",
    "status",
    "tools call knowledge-search QUERY",
    "tools call --json knowledge-search QUERY",
    "tools call SAID",
    "ask --documents owls hunt at night",
    "ask --model acme/echo-small SAID",
    "ask --model acme/echo-small --json SAID",
    "ask --model acme/SAID hello",
    "ask --explain SAID",
    "classify SAID",
    "providers",
    "config validate NAMED",
    "--config NAMED status",
];

/// The first control sequence in a text that is not one of this program's own (colours and erase line).
fn first_foreign_escape(text: &str) -> Option<String> {
    let ours = ["[0m", "[1m", "[2m", "[31m", "[32m", "[33m", "[34m", "[K"];
    for (at, letter) in text.char_indices() {
        let bad = match letter {
            '\u{1b}' => !ours.iter().any(|known| text[at + 1..].starts_with(known)),
            '\n' | '\r' | '\t' => false,
            letter => letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'),
        };
        if bad {
            return Some(text[at..].chars().take(20).collect());
        }
    }
    None
}

#[test]
fn in_a_terminal_nothing_that_others_wrote_controls_it() {
    let (upstream, folder) = (FakeUpstream::start(), tempfile::tempdir().unwrap());
    upstream.configure(
        "acme: {base_url: 'BASE/v1', api_key: KEY, default_model: echo-small, models: {\"m\\e[2J\": {price: {input: 1}}}}",
    );
    let name = format!("{ESCAPE_SEQUENCES}.txt");
    std::fs::write(
        folder.path().join(&name),
        format!("# {ESCAPE_SEQUENCES}\n\nowls hunt at night {ESCAPE_SEQUENCES}\n"),
    )
    .unwrap();
    let program = env!("CARGO_BIN_EXE_corbie");
    let mut shown = 0;
    for command in COMMANDS {
        let arguments = command
            .replace("NAMED", &format!("'{name}'"))
            .replace("SAID", &format!("'{ESCAPE_SEQUENCES}'"))
            .replace("QUERY", "'{\"query\": \"owls hunt at night\"}'");
        let config =
            if command.contains("--config") { String::new() } else { format!("--config '{}'", upstream.settings()) };
        let line = format!("cd '{0}' && HOME='{0}' '{program}' {config} {arguments}", folder.path().display());
        let Some(ended) = run_in_terminal(&line, "") else { return };
        assert_eq!(first_foreign_escape(&ended.stdout), None, "{command}: {ended:?}");
        shown += usize::from(ended.stdout.contains("[2J"));
    }
    assert!(shown > COMMANDS.len() / 2, "what is harmless of it is shown, but only by {shown}");
}

/// stderr is sanitized even if it is not a terminal, because people read it anyway.
#[test]
fn nothing_that_others_wrote_reaches_stderr_as_it_is() {
    let setup = |arguments: &str| -> TestCommand {
        let setup = crate::process::corbie(arguments);
        std::fs::write(setup.folder().join(format!("{ESCAPE_SEQUENCES}.txt")), "").unwrap();
        setup
    };
    for (arguments, last) in [
        ("extract", format!("{ESCAPE_SEQUENCES}.txt")),
        ("extract", format!("missing {ESCAPE_SEQUENCES}.txt")),
        ("add", format!("missing {ESCAPE_SEQUENCES}.txt")),
        ("show", ESCAPE_SEQUENCES.to_owned()),
        ("remove --yes", ESCAPE_SEQUENCES.to_owned()),
        ("ask --model", format!("nobody/{ESCAPE_SEQUENCES}")),
        ("tools call", ESCAPE_SEQUENCES.to_owned()),
        ("--config", format!("{ESCAPE_SEQUENCES}.txt")),
        ("taxonomy check", format!("{ESCAPE_SEQUENCES}.txt")),
        ("eval", format!("{ESCAPE_SEQUENCES}.txt")),
    ] {
        let ended = setup(arguments).argument(last).run("hello");
        assert_eq!(first_foreign_escape(&ended.stderr), None, "{arguments}: {ended:?}");
        assert!(!ended.stderr.is_empty(), "{arguments}: {ended:?}");
    }
}
