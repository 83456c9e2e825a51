//! `corbie taxonomy`: create, validate and train taxonomies.

mod check;
mod from_dataset;
mod new;
mod suggest;
mod train;
mod yaml;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

use super::CommandResult;
use crate::classify::Taxonomy;
use crate::config::{ConfigError, Diagnostic, LoadedConfig, ValueSource};
use crate::util::os_error::FILE_NOT_FOUND;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  corbie taxonomy new --out mine.yaml
  corbie taxonomy check mine.yaml
  corbie taxonomy train mine.yaml")]
pub(super) enum TaxonomyCommand {
    /// Validate a taxonomy and print all errors; exits with 1 on errors
    Check(check::Check),
    /// Create a starter taxonomy, or one from labelled texts
    New(new::New),
    /// Train the classifier and store the result with the taxonomy, so that servers start immediately
    Train(train::Train),
    /// Report examples that look wrong or isolated, and weak categories
    Suggest(suggest::Suggest),
    /// Print the JSON Schema of taxonomy files, for editors
    #[command(after_help = "\
Examples:
  corbie taxonomy schema > taxonomy.schema.json")]
    Schema,
}

pub(super) fn run(command: &TaxonomyCommand, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    match command {
        TaxonomyCommand::Check(command) => check::run(command, out),
        TaxonomyCommand::New(command) => new::run(command, out),
        TaxonomyCommand::Train(command) => train::run(command, loaded, out),
        TaxonomyCommand::Suggest(command) => suggest::run(command, loaded, out),
        TaxonomyCommand::Schema => {
            writeln!(out, "{:#}", crate::classify::taxonomy::schema())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reads a taxonomy; if the file is missing, the error explains how to create one.
fn read_taxonomy(path: &Path) -> Result<Taxonomy, ConfigError> {
    if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        let name = path.display();
        let message = format!("{FILE_NOT_FOUND}; create one with `corbie taxonomy new --out {name}`");
        return Err(Diagnostic::with_source(ValueSource::File(path.into()), message).into());
    }
    Taxonomy::read(path)
}

/// `1 category`, `5 categories`.
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Sanitizes a text to one line of at most `most` characters.
fn one_line(text: &str, most: usize) -> String {
    let mut line = super::sanitize_line(text);
    if let Some((end, _)) = line.char_indices().nth(most) {
        line.truncate(end);
        line.pop();
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_sanitized_and_truncated() {
        assert_eq!(one_line("a\nb\u{1b}[31m", 20), "a b [31m");
        assert_eq!(one_line("éééé", 4), "éééé");
        assert_eq!(one_line("ééééé", 4), "ééé…");
    }
}
