//! Help texts: present for every command, equal to the snapshots, with examples that parse.

use std::collections::BTreeMap;

use clap::Command;

use crate::process::corbie;
use crate::snapshots::{compare, shell_words};

/// Commands without `--json`: they have their own output format or serve a protocol.
const NOT_FOR_PROGRAMS: &[&str] = &[
    "corbie serve",
    "corbie stdio",
    "corbie completions",
    "corbie man",
    "corbie config schema",
    "corbie taxonomy schema",
];

/// Every visible command with its full command line. New commands are included automatically.
fn commands() -> Vec<(String, Command)> {
    fn gather(line: String, command: &Command, all: &mut Vec<(String, Command)>) {
        all.push((line.clone(), command.clone()));
        for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help") {
            gather(format!("{line} {}", below.get_name()), below, all);
        }
    }
    let mut whole = corbie::cli::command();
    whole.build();
    let mut all = Vec::new();
    gather("corbie".into(), &whole, &mut all);
    all
}

fn examples(command: &Command) -> Vec<String> {
    let below = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut lines = below.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.by_ref().take_while(|line| !line.is_empty()).map(|line| line.trim().to_owned()).collect()
}

/// See `snapshots.rs` for how to update them.
#[test]
fn every_help_text_is_as_committed() {
    let help = |(line, _): (String, Command)| {
        let arguments = line.strip_prefix("corbie").unwrap();
        let shown = |flag: &str| {
            let ended = corbie(arguments).arguments(flag).run("");
            assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{line}");
            assert!(!ended.stdout.contains('\u{1b}'), "no colours without a terminal: {line}");
            format!("$ {line} {flag}\n{}", ended.stdout)
        };
        (line.replace(' ', "-"), format!("{}\n{}", shown("-h"), shown("--help")))
    };
    compare("help", &commands().into_iter().map(help).collect::<BTreeMap<_, _>>());
}

#[test]
fn every_help_has_one_to_four_examples_that_can_be_typed() {
    for (line, command) in commands() {
        let examples = examples(&command);
        assert!((1..=4).contains(&examples.len()), "{line} has {} examples in its `after_help`", examples.len());
        for example in examples {
            // Ignore other programs before and after the command.
            let from = example.find("corbie ").unwrap_or_else(|| panic!("{line}: {example}"));
            let ours = example[from..].trim_end_matches(')');
            let is_end = |word: &&String| ["|", ">", ">>", "<", "#"].contains(&word.as_str());
            let typed: Vec<String> = shell_words(ours).iter().take_while(|word| !is_end(word)).cloned().collect();
            assert!(typed.join(" ").starts_with(&line) || line == "corbie", "{line}: {example} is of another command");
            let parsed = corbie::cli::command().try_get_matches_from(&typed);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    }
}

#[test]
fn every_command_that_prints_something_prints_it_for_programs_too() {
    for (line, command) in commands() {
        let prints = command.get_subcommands().filter(|below| below.get_name() != "help").count() == 0;
        let for_programs = command.get_arguments().any(|argument| argument.get_id() == "json");
        assert!(!prints || for_programs || NOT_FOR_PROGRAMS.contains(&line.as_str()), "`{line}` has no --json");
    }
}

#[test]
fn help_helps_with_itself_and_with_what_is_mistyped() {
    for line in ["help --help", "help -h", "help help"] {
        let ended = corbie(line).run("");
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{line}: {ended:?}");
        assert!(ended.stdout.contains("Usage: corbie help"), "{line}: {}", ended.stdout);
    }
    for (line, meant) in
        [("help serch", "'search'"), ("help tokens creat", "'create'"), ("help knowledge chekc", "'check'")]
    {
        let ended = corbie(line).run("");
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{line}: {ended:?}");
        assert!(ended.stderr.contains(meant), "{line}: {}", ended.stderr);
    }
    assert_eq!(corbie("help search").run("").stdout, corbie("search --help").run("").stdout);
}

#[test]
fn a_flag_is_followed_by_the_same_everywhere() {
    let mut known: BTreeMap<String, (Vec<String>, String)> = BTreeMap::new();
    for (line, command) in commands() {
        for argument in command.get_arguments() {
            let Some(flag) = argument.get_long() else { continue };
            let values: Vec<String> =
                argument.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
            let (other, elsewhere) = known.entry(flag.to_owned()).or_insert_with(|| (values.clone(), line.clone()));
            assert_eq!(values, *other, "--{flag} of `{line}` and `{elsewhere}`");
        }
    }
}

#[test]
fn the_top_help_lists_every_command_once_under_a_heading() {
    let help = corbie("-h").run("").stdout;
    let listed: Vec<&str> = help
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter_map(|line| line.split_once("  ").map(|(name, _)| name))
        .filter(|name| !name.is_empty() && !name.starts_with([' ', '-']))
        .collect();
    let lines = commands();
    let top = lines.iter().map(|(line, _)| line.as_str()).filter(|line| line.split(' ').count() == 2);
    for line in top {
        let name = line.strip_prefix("corbie ").unwrap();
        assert_eq!(listed.iter().filter(|listed| **listed == name).count(), 1, "{name} in {help}");
    }
    assert!(!help.contains("Others:"), "every command has a group in src/cli/command.rs: {help}");
    assert!(!help.contains("worker"), "{help}");
}
