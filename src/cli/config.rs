//! `corbie config`: shows, checks and explains the configuration.

mod trust;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

pub use self::trust::{Trust, Untrust};
use super::{json_output, startup_check};
use crate::config::{self, Approval, ApprovalError, Config, ConfigError, Diagnostic, Layer, Sources, State};
use crate::util::sanitize::sanitize_line;

/// Show, check and explain the configuration.
#[derive(Debug, Clone, Subcommand)]
#[command(after_help = "\
Examples:
  corbie config validate
  corbie config show
  corbie config list")]
pub enum ConfigCommand {
    /// Print the settings in effect; secrets are masked
    Show(Show),
    /// Check a configuration and print everything that `corbie serve` would refuse
    Validate(Validate),
    /// List the searched configuration files and their status
    List(List),
    /// Approve the configuration file in a project folder, so that all of its settings take effect
    ///
    /// Only harmless settings of a file in the working directory take effect until you approve its content. The
    /// approval is stored in the user's configuration folder, and ends when the file changes. It does not cover files
    /// that the settings refer to, such as programs.
    Trust(Trust),
    /// Withdraw the approval of the configuration file in a folder
    Untrust(Untrust),
    /// Print the JSON Schema of configuration files
    #[command(after_help = "\
Examples:
  corbie config schema > corbie.schema.json")]
    Schema,
}

#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  corbie config show
  corbie config show --json")]
pub struct Show {
    /// Print JSON instead of YAML
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  corbie config validate
  corbie config validate --json corbie.yaml")]
pub struct Validate {
    /// File to check, instead of the files in effect
    #[arg(value_name = "FILE")]
    pub path: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Default, Args)]
#[command(after_help = "\
Examples:
  corbie config list
  corbie config list --json")]
pub struct List {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("cannot write: {0}")]
    Output(#[from] io::Error),
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    #[error(
        "the environment names no configuration folder of the user to keep approvals in; set HOME, or name the file with `--config`"
    )]
    NoUserFolder,
    #[error(
        "{approved} is approved and may restrict callers; it would no longer take effect, because {candidate} comes first. Remove \
         one of the files, or approve this one with `--replace`",
        approved = approved.display(),
        candidate = candidate.display()
    )]
    Superseded { candidate: PathBuf, approved: PathBuf },
}

/// Runs one command, with its output on `out`.
pub fn run(command: &ConfigCommand, sources: Sources, out: &mut dyn Write) -> Result<ExitCode, Error> {
    match command {
        ConfigCommand::Show(options) => show(options, sources, out).map(|()| ExitCode::SUCCESS),
        ConfigCommand::Validate(options) => Ok(validate(options, sources, out)?),
        ConfigCommand::List(options) => Ok(list(options, &sources, out).map(|()| ExitCode::SUCCESS)?),
        ConfigCommand::Trust(options) => trust::trust(options, &sources, out),
        ConfigCommand::Untrust(options) => trust::untrust(options, &sources, out),
        ConfigCommand::Schema => Ok(schema(out).map(|()| ExitCode::SUCCESS)?),
    }
}

pub fn show(options: &Show, sources: Sources, out: &mut dyn Write) -> Result<(), Error> {
    let loaded = Config::load(sources)?;
    let settings = serde_json::to_value(&loaded.config).map_err(io::Error::from)?;
    if options.json {
        json_output::write(&settings, out)?;
    } else {
        for warning in unapproved_layers(&loaded.layers).flat_map(|layer| loaded.warnings_about(&layer.path)) {
            writeln!(out, "# {}", sanitize_line(&warning.to_string()))?;
        }
        yaml(&settings, 0, out)?;
    }
    Ok(())
}

/// Prints warnings and `OK`, or all errors and returns exit code 1.
pub fn validate(options: &Validate, sources: Sources, out: &mut dyn Write) -> io::Result<ExitCode> {
    let file = options.path.clone().or(sources.file.clone());
    let sources = Sources { file, ..sources };
    let (loaded, mut mistakes) = startup_check::check(sources.clone());
    // Validates unapproved files completely, so that their author sees all errors before the approval.
    for layer in loaded.iter().flat_map(|loaded| unapproved_layers(&loaded.layers)) {
        let (_, found) = startup_check::check(Sources { file: Some(layer.path.clone()), ..sources.clone() });
        mistakes.extend(found.into_iter().filter(|mistake| !mistakes.contains(mistake)).collect::<Vec<_>>());
    }
    let checked = match loaded {
        Some(loaded) if mistakes.is_empty() => Ok(loaded),
        _ => Err(ConfigError::sorted(mistakes)),
    };
    if options.json {
        let texts = |problems: &[Diagnostic]| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        let told = match &checked {
            Ok(loaded) => json!({
                "success": true,
                "errors": [],
                "warnings": texts(&loaded.warnings),
                "files": loaded.layers.iter().filter(|layer| layer.state == State::Active).map(layer_to_json).collect::<Vec<_>>(),
            }),
            Err(error) => json!({
                "success": false,
                "error": "invalid_settings",
                "message": error.to_string(),
                "errors": texts(&error.diagnostics),
            }),
        };
        json_output::write(&told, out)?;
        return Ok(if checked.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    match checked {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                writeln!(out, "warning: {warning}")?;
            }
            writeln!(out, "OK")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            writeln!(out, "{error}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

pub fn list(options: &List, sources: &Sources, out: &mut dyn Write) -> io::Result<()> {
    let mut layers = config::layers(sources);
    for layer in layers.iter_mut().filter(|layer| layer.state == State::Active && !layer.path.exists()) {
        layer.state = State::Absent;
    }
    if options.json {
        return json_output::write(&json!({ "files": layers.iter().map(layer_to_json).collect::<Vec<_>>() }), out);
    }
    writeln!(out, "flags and environment variables win over files; the first of these wins over the next:")?;
    for Layer { scope, path, state, approval } in layers {
        write!(out, "{scope:<8}  {state:<8}  {}", path.display())?;
        match (state, approval) {
            (State::Active, Approval::Approved | Approval::Outdated | Approval::Unapproved) => {
                writeln!(out, " ({approval})")?;
            }
            _ => writeln!(out)?,
        }
    }
    Ok(())
}

/// A file as JSON. The approval is only included for files that were read.
fn layer_to_json(Layer { scope, path, state, approval }: &Layer) -> Value {
    let mut told = json!({ "scope": scope.to_string(), "state": state.to_string(), "path": path });
    if *state == State::Active {
        told["approved"] = json!(*approval != Approval::Unapproved);
    }
    told
}

/// Files of which only harmless settings take effect.
fn unapproved_layers(layers: &[Layer]) -> impl Iterator<Item = &Layer> {
    layers.iter().filter(|layer| layer.is_unapproved())
}

pub fn schema(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{:#}", config::schema())
}

/// Writes a map as YAML. Empty maps and lists are written in flow style.
fn yaml(value: &Value, indent: usize, out: &mut dyn Write) -> io::Result<()> {
    let space = " ".repeat(indent);
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                write!(out, "{space}{}:", yaml_scalar(key))?;
                child(value, indent + 2, out)?;
            }
        }
        Value::Array(items) => {
            for item in items {
                write!(out, "{space}-")?;
                child(item, indent + 2, out)?;
            }
        }
        scalar => writeln!(out, "{space}{}", scalar_text(scalar))?,
    }
    Ok(())
}

fn child(value: &Value, indent: usize, out: &mut dyn Write) -> io::Result<()> {
    match value {
        Value::Object(members) if !members.is_empty() => {
            writeln!(out)?;
            yaml(value, indent, out)
        }
        Value::Array(items) if !items.is_empty() => {
            writeln!(out)?;
            yaml(value, indent, out)
        }
        scalar => writeln!(out, " {}", scalar_text(scalar)),
    }
}

fn scalar_text(scalar: &Value) -> String {
    match scalar {
        // In a file, an unescaped `${` would be expanded as a variable.
        Value::String(text) => yaml_scalar(&text.replace("${", "$${")),
        other => other.to_string(),
    }
}

/// Omits quotes if the text is unambiguous without them. A JSON string is also a YAML string.
fn yaml_scalar(text: &str) -> String {
    const NOT_WORDS: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];
    let begins = text.starts_with(|first: char| first.is_ascii_alphabetic());
    let simple = text.chars().all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c));
    if begins && simple && !NOT_WORDS.contains(&text.to_ascii_lowercase().as_str()) {
        return text.into();
    }
    // `4MiB` and `100ms`; not `0x1f` or `1e5`, which are numbers.
    let is_amount = text.starts_with(|first: char| ('1'..='9').contains(&first))
        && text.ends_with(|last: char| last.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() && !c.eq_ignore_ascii_case(&'e'));
    if is_amount { text.into() } else { Value::from(text).to_string() }
}
