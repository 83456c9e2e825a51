//! Command line parsing, grouped help, and error output.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

use clap::builder::Styles;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, ValueEnum};

use super::exit::{self, EXIT_CODES};
use super::{Cli, json_output, sanitized_stdout};
use crate::colour::{self, Colour};
use crate::util::sanitize::{is_unsafe_char, sanitize};

/// A parsed command line.
pub(super) struct ParsedCommandLine {
    pub(super) cli: Cli,
    /// Whether `--json` is given.
    pub(super) json: bool,
}

/// Command groups of the help. Commands in no group are listed at the end.
const GROUPS: &[(&str, &[&str])] = &[
    ("Get started", &["demo", "init", "connect", "doctor"]),
    ("Server", &["serve", "stdio", "tools", "tokens", "health"]),
    ("Ask models", &["ask", "providers"]),
    ("Documents", &["add", "search", "show", "remove", "clear", "status", "tasks", "knowledge", "extract"]),
    ("Classification and embeddings", &["classify", "taxonomy", "embed"]),
    ("Evaluation", &["eval", "eval-search"]),
    ("Configuration and help", &["config", "models", "licenses", "completions", "man", "help"]),
];
const OTHER_COMMANDS: &str = "Other";

const EXAMPLES: &str = "\
Examples:
  corbie serve
  corbie ask \"Why is the sky blue?\"
  corbie add ~/Documents
  corbie search how many days of holiday do new colleagues get";

/// The complete clap command.
pub fn command() -> Command {
    let command = Cli::command().after_help(EXAMPLES).after_long_help(format!("{EXAMPLES}\n\n{EXIT_CODES}"));
    let template = template(&command);
    command.help_template(template).bin_name("corbie")
}

/// clap has no groups of subcommands, so the template contains them.
fn template(command: &Command) -> String {
    let styles = Styles::styled();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut listed: Vec<(&str, String)> = Vec::new();
    for known in command.get_subcommands().filter(|known| !known.is_hide_set()) {
        listed.push((known.get_name(), known.get_about().map(ToString::to_string).unwrap_or_default()));
    }
    listed.push(("help", "Print help for corbie or a command".into()));
    let width = listed.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut groups = String::new();
    let mut group = |title: &str, commands: &[&(&str, String)]| {
        if commands.is_empty() {
            return;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(groups, "{header}{title}:{header:#}");
        for (name, about) in commands {
            let _ = writeln!(groups, "  {literal}{name}{literal:#}{:1$}  {about}", "", width - name.len());
        }
        groups.push('\n');
    };
    for (title, names) in GROUPS {
        let named = names.iter().filter_map(|name| listed.iter().find(|(known, _)| known == name));
        group(title, &named.collect::<Vec<_>>());
    }
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    group(OTHER_COMMANDS, &listed.iter().filter(|(name, _)| !is_grouped(name)).collect::<Vec<_>>());
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{header}Options:{header:#}\n{{options}}{{after-help}}"
    )
}

/// Parses the command line of this process. On an error, and for help and version, prints the text to the right stream
/// and returns the exit code.
pub(super) fn parse_command_line() -> Result<ParsedCommandLine, ExitCode> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let colour = colour_of(&arguments);
    colour::set_choice(colour);
    let understood = parse_arguments(&arguments, colour).and_then(|matches| {
        let json = wants_json(&matches);
        Ok(ParsedCommandLine { cli: Cli::from_arg_matches(&matches)?, json })
    });
    understood.map_err(|error| {
        print_error(&error, &arguments);
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX))
    })
}

/// Parses the arguments. Adds two things for `help`, which clap does not support: flags after it, and suggestions for a
/// misspelt command.
fn parse_arguments(arguments: &[OsString], colour: Colour) -> Result<ArgMatches, clap::Error> {
    let parse = |arguments: &[OsString]| command().color(colour.into()).try_get_matches_from(arguments);
    let error = match parse(arguments) {
        Ok(matches) => return Ok(matches),
        Err(error) => error,
    };
    let help = arguments.iter().position(|argument| argument == "help");
    let (ErrorKind::InvalidSubcommand, Some(help)) = (error.kind(), help) else { return Err(error) };
    let (before, after) = (&arguments[..help], &arguments[help + 1..]);
    let is_flag = |argument: &&OsString| *argument == "-h" || *argument == "--help";
    if after.iter().any(|argument| is_flag(&argument)) {
        let mut commands: Vec<OsString> = after.iter().filter(|argument| !is_flag(argument)).cloned().collect();
        if commands.is_empty() {
            commands.push("help".into());
        }
        return parse_arguments(&[before, &["help".into()], &commands].concat(), colour);
    }
    match parse(&[before, after].concat()) {
        Err(guess) if guess.kind() == ErrorKind::InvalidSubcommand => Err(guess),
        _ => Err(error),
    }
}

/// The flag for machine-readable output, the same for every command.
const JSON: &str = "--json";

/// Prints an error. It repeats user input, which must not control the terminal.
fn print_error(error: &clap::Error, arguments: &[OsString]) {
    let is_asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    let wants_json = arguments.iter().take_while(|one| *one != "--").any(|one| one == JSON);
    // A command without the flag has no machine-readable output.
    let is_unknown = error.get(ContextKind::InvalidArg) == Some(&ContextValue::String(JSON.to_owned()))
        && error.kind() == ErrorKind::UnknownArgument;
    if wants_json && !is_unknown && !is_asked_for {
        let object = exit::error_object(error_word(error.kind()), &one_line_message(error));
        let _ = json_output::write(&object, &mut *sanitized_stdout::stdout());
        return;
    }
    let is_harmless = arguments.iter().all(|argument| !argument.to_string_lossy().contains(is_unsafe_char));
    // A failed write to stderr cannot be reported.
    let _ = match is_harmless || is_asked_for {
        true => error.print(),
        false => std::io::stderr().write_all(sanitize(&error.to_string()).as_bytes()),
    };
}

/// Stable error code for programs.
fn error_word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => exit::INVALID_VALUE,
        _ => exit::INVALID_COMMAND_LINE,
    }
}

/// The error and its suggestion, on one line.
fn one_line_message(error: &clap::Error) -> String {
    let told = error.to_string();
    let is_reason = |part: &&str| !part.starts_with("Usage:") && !part.starts_with("For more information");
    let reasons = told.trim_start_matches("error: ").split("\n\n").take_while(is_reason);
    reasons.map(|reason| reason.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join("; ")
}

/// Reads `--color` before parsing, because parse errors are coloured too.
fn colour_of(arguments: &[OsString]) -> Colour {
    let mut arguments = arguments.iter().map(|argument| argument.to_string_lossy()).take_while(|one| one != "--");
    let mut chosen = Colour::default();
    while let Some(argument) = arguments.next() {
        let value = match argument.strip_prefix("--color").or_else(|| argument.strip_prefix("--colour")) {
            Some("") => arguments.next(),
            Some(rest) => rest.strip_prefix('=').map(|value| value.to_owned().into()),
            None => None,
        };
        chosen = value.and_then(|value| Colour::from_str(&value, false).ok()).unwrap_or(chosen);
    }
    chosen
}

/// Whether `--json` is set, for the command or its subcommand.
fn wants_json(matches: &ArgMatches) -> bool {
    let here = matches.try_get_one::<bool>("json").ok().flatten().copied().unwrap_or_default();
    here || matches.subcommand().is_some_and(|(_, matches)| wants_json(matches))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn color_flag_is_read_before_parsing() {
        let colour = |line: &str| colour_of(&arguments(line));
        assert_eq!(colour("corbie status"), Colour::Auto);
        assert_eq!(colour("corbie --color never nonsense"), Colour::Never);
        assert_eq!(colour("corbie nonsense --color=always"), Colour::Always);
        assert_eq!(colour("corbie ask -- --color=always"), Colour::Auto);
        assert_eq!(colour("corbie --colour=never"), Colour::Never);
        assert_eq!(colour("corbie --color"), Colour::Auto);
        assert_eq!(colour("corbie --color=pink"), Colour::Auto);
    }

    #[test]
    fn json_flag_of_any_command_is_detected() {
        let json = |line: &str| wants_json(&command().try_get_matches_from(arguments(line)).unwrap());
        assert!(json("corbie tasks --json") && json("corbie tasks cancel x --json") && json("corbie status --json"));
        assert!(!json("corbie tasks") && !json("corbie serve") && !json("corbie"));
    }
}
