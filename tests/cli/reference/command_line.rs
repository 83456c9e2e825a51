//! `docs/reference/cli.md`: every command with its arguments, generated from clap.

use clap::{Arg, Command, CommandFactory};
use corbie::cli::Cli;

use super::{anchor, cell, check, prose};

#[test]
fn the_reference_has_every_command_and_option() {
    let mut program = Cli::command();
    program.build();
    check("cli.md", &page(&program));
}

fn page(program: &Command) -> String {
    let mut page = String::from("# Command line\n\n");
    page += "The `--help` of every command. For exit statuses see [Exit codes](../exit-codes.md).\n\n";
    page += &about(program);
    page += "| command | description |\n|---|---|\n";
    let commands = commands(program);
    for (name, command) in &commands {
        let short = command.get_about().map(ToString::to_string).unwrap_or_default();
        page += &format!("| [`{name}`](#{}) | {} |\n", anchor(name), cell(&short));
    }
    page += "\n## Options of every command\n\n";
    page += &arguments(program, |option| option.is_global_set());
    page += "\n## Without a command\n\n";
    page += &usage(program);
    page += &arguments(program, |option| !option.is_global_set());
    for (name, command) in &commands {
        page += &format!("\n## `{name}`\n\n");
        page += &about(command);
        page += &usage(command);
        page += &arguments(command, |argument| !argument.is_global_set());
        page += &examples(command);
    }
    // A command without arguments leaves an empty paragraph.
    page.replace("\n\n\n", "\n\n")
}

/// Every visible command with its full command line, in the order of the help.
fn commands(program: &Command) -> Vec<(String, &Command)> {
    fn collect<'a>(before: &str, command: &'a Command, found: &mut Vec<(String, &'a Command)>) {
        for command in command.get_subcommands() {
            if command.is_hide_set() || command.get_name() == "help" {
                continue;
            }
            let name = format!("{before} {}", command.get_name());
            found.push((name.clone(), command));
            collect(&name, command, found);
        }
    }
    let mut found = Vec::new();
    collect(program.get_name(), program, &mut found);
    found
}

fn about(command: &Command) -> String {
    let text = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    // A single-line text is a title, without a full stop.
    let stop = if text.contains('\n') || text.ends_with(['.', ':', '!']) || text.is_empty() { "" } else { "." };
    format!("{}{stop}\n\n", prose(&text))
}

fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    let lines: Vec<&str> = usage.trim_start_matches("Usage:").lines().map(str::trim).collect();
    format!("```text\n{}\n```\n\n", lines.join("\n"))
}

/// Positional arguments in order, then options.
fn arguments(command: &Command, wanted: impl Fn(&Arg) -> bool) -> String {
    let by_itself =
        |argument: &Arg| argument.is_hide_set() || ["help", "version"].contains(&argument.get_id().as_str());
    let shown = command.get_arguments().filter(|argument| !by_itself(argument) && wanted(argument));
    let (positional, options): (Vec<_>, Vec<_>) = shown.partition(|argument| argument.is_positional());
    positional.into_iter().chain(options).map(|argument| format!("- {}\n", describe_argument(argument))).collect()
}

fn describe_argument(argument: &Arg) -> String {
    let short = argument.get_short().filter(|_| argument.get_long().is_some());
    let short = short.map(|letter| format!("-{letter}, ")).unwrap_or_default();
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = format!("`{short}{argument}`: {}", prose(&help).replace("\n\n", " "));
    let values = argument.get_possible_values();
    let is_switch = !argument.get_action().takes_values();
    if !values.is_empty() && !is_switch {
        let values = values.iter().filter(|value| !value.is_hide_set()).map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({})", value.get_name(), prose(&help.to_string())),
            None => format!("`{}`", value.get_name()),
        });
        text += &format!(". One of {}", values.collect::<Vec<_>>().join(", "));
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && !is_switch {
        text += &format!(". Default: `{}`", defaults.join(" "));
    }
    if let Some(aliases) = argument.get_visible_aliases() {
        let aliases: Vec<_> = aliases.iter().map(|alias| format!("`--{alias}`")).collect();
        if !aliases.is_empty() {
            text += &format!(". Also {}", aliases.join(", "));
        }
    }
    text + "."
}

/// The text at the end of the help, mostly examples.
fn examples(command: &Command) -> String {
    let text = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string);
    match text.as_deref().map(str::trim_end) {
        Some(text) if !text.is_empty() => format!("\n```text\n{text}\n```\n"),
        _ => String::new(),
    }
}

#[test]
fn a_command_is_told_with_its_arguments_values_and_examples() {
    let example = Command::new("paint")
        .about("Paint it")
        .arg(Arg::new("what").required(true).help("What to paint"))
        .arg(
            Arg::new("colour")
                .long("colour")
                .short('c')
                .value_parser(["red", "blue"])
                .default_value("red")
                .help("Which"),
        )
        .after_help("Examples:\n  paint door");
    let mut program = Command::new("house").about("A house.").subcommand(example);
    program.build();
    let page = page(&program);
    assert!(page.contains("| [`house paint`](#house-paint) | Paint it |"), "{page}");
    assert!(page.contains("## `house paint`\n\nPaint it.\n\n```text\nhouse paint [OPTIONS] <what>\n```\n"), "{page}");
    assert!(page.contains("- `<what>`: What to paint.\n"), "{page}");
    assert!(page.contains("- `-c, --colour <colour>`: Which. One of `red`, `blue`. Default: `red`.\n"), "{page}");
    assert!(page.contains("```text\nExamples:\n  paint door\n```"), "{page}");
}
