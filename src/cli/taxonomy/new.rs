//! `corbie taxonomy new`: creates a starter taxonomy, or one from labelled texts.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use clap::builder::{PathBufValueParser, TypedValueParser};
use serde_json::json;

use super::from_dataset::{Contradiction, DatasetCategories, categories_from};
use super::{CommandResult, counted, one_line, yaml};
use crate::classify::Taxonomy;
use crate::classify::taxonomy::MAX_FILE_BYTES;
use crate::cli::{json_output, must_exist, output_file, value_parsers};
use crate::config::{ConfigError, Diagnostic, Segment};
use crate::evaluate::dataset;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie taxonomy new --out mine.yaml
  corbie taxonomy new tickets.csv --out mine.yaml --limit 200")]
pub(in crate::cli) struct New {
    /// Labelled texts: `.jsonl` with `{"text": …, "label": …}` per line, or `.csv` with a header such as `text,label`
    data: Option<PathBuf>,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE.yaml", value_parser = PathBufValueParser::new().try_map(value_parsers::yaml_file))]
    out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, requires = "out")]
    force: bool,
    /// Maximum number of examples per category
    #[arg(long = "limit", alias = "most", value_name = "N", default_value_t = 1000, requires = "data", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print JSON about the written file
    #[arg(long, requires = "out")]
    json: bool,
}

/// Three categories that demonstrate every key.
const STARTER: &str = include_str!("starter.yaml");
/// Maximum contradictions logged individually; the rest are counted.
const MAX_CONTRADICTIONS_SHOWN: usize = 20;
/// Maximum characters of a text that are shown.
const MAX_TEXT_CHARS: usize = 80;

pub(super) fn run(command: &New, out: &mut dyn Write) -> CommandResult {
    // Checked before reading the data, so that the user does not wait for this error.
    if let Some(path) = command.out.as_ref().filter(|path| !command.force && path.symlink_metadata().is_ok()) {
        return Err(output_file::exists_message(path).into());
    }
    let (yaml, taxonomy) = match &command.data {
        Some(data) => from_labelled_texts(data, command.limit as usize)?,
        None => (STARTER.to_owned(), Taxonomy::parse(STARTER)?),
    };
    let Some(path) = &command.out else {
        out.write_all(yaml.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    };
    if command.force {
        output_file::replace(path, yaml.as_bytes())?;
    } else {
        output_file::create(path, yaml.as_bytes())?;
    }
    if command.json {
        let (categories, examples) = (taxonomy.categories.len(), taxonomy.example_count());
        let told = json!({ "file": path.display().to_string(), "categories": categories, "examples": examples });
        json_output::write(&told, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let categories = counted(taxonomy.categories.len(), "category", "categories");
    let examples = counted(taxonomy.example_count(), "example", "examples");
    writeln!(out, "{}: {categories}, {examples}", path.display())?;
    Ok(ExitCode::SUCCESS)
}

/// The YAML for labelled texts, and the taxonomy parsed from it: the YAML is validated before it is written.
fn from_labelled_texts(data: &Path, most: usize) -> Result<(String, Taxonomy), Box<dyn std::error::Error>> {
    let name = data.display();
    let extension = data.extension().unwrap_or_default();
    if !["jsonl", "ndjson", "csv"].iter().any(|known| extension.eq_ignore_ascii_case(known)) {
        return Err(format!("`{name}` is not a file of labelled texts; use `.jsonl` or `.csv`").into());
    }
    must_exist(data)?;
    let gathered = categories_from(&dataset::read(data)?, most);
    report_omissions(&gathered, data);
    if gathered.categories.is_empty() {
        return Err(format!(
            "`{name}` has no labelled text; each line of a `.jsonl` file must be {{\"text\": …, \"label\": …}}, and a \
             `.csv` file must begin with `text,label`"
        )
        .into());
    }
    let yaml = yaml::taxonomy(&gathered.categories);
    if yaml.len() > MAX_FILE_BYTES {
        let (megabytes, limit) = (yaml.len() >> 20, MAX_FILE_BYTES >> 20);
        return Err(format!(
            "the taxonomy would have {megabytes} MiB, more than the limit of {limit} MiB; set `--limit` below {most}"
        )
        .into());
    }
    match Taxonomy::parse(&yaml) {
        Ok(taxonomy) => Ok((yaml, taxonomy)),
        Err(error) => Err(diagnostics_text(&error, &gathered, data).into()),
    }
}

/// Logs how many texts were left out, and why.
fn report_omissions(gathered: &DatasetCategories, data: &Path) {
    let name = data.display();
    let DatasetCategories { contradictions, unlabelled, empty, too_long, repeated, surplus, .. } = gathered;
    for Contradiction { text, first, then } in contradictions.iter().take(MAX_CONTRADICTIONS_SHOWN) {
        let text = one_line(text, MAX_TEXT_CHARS);
        let (line, label) = then;
        let (first, other) = first;
        tracing::warn!("{name}:{line}: \"{text}\" is `{label}` here and `{other}` in line {first}; skipped");
    }
    if let more @ 1.. = contradictions.len().saturating_sub(MAX_CONTRADICTIONS_SHOWN) {
        tracing::warn!("{name}: {more} more texts with several labels skipped");
    }
    let reasons = [
        (unlabelled, "without a label"),
        (empty, "empty"),
        (too_long, "longer than an example may be"),
        (repeated, "duplicates"),
        (surplus, "more than `--limit` per category"),
    ];
    for (count, why) in reasons.into_iter().filter(|(count, _)| **count > 0) {
        tracing::warn!("{name}: {} skipped: {why}", counted(*count, "text", "texts"));
    }
}

/// Validation errors, with line numbers of the data if they concern labels.
fn diagnostics_text(error: &ConfigError, gathered: &DatasetCategories, data: &Path) -> String {
    let name = data.display();
    let line = |problem: &Diagnostic| match &problem.path.0[..] {
        [_, Segment::Index(class), Segment::Key(key)] if key == "name" => {
            let line = gathered.categories.get(*class).map_or(0, |category| category.line);
            format!("{name}:{line}: the label {}", problem.message)
        }
        _ => format!("{name}: {}: {}", problem.path, problem.message),
    };
    error.diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::taxonomy::schema;
    use serde_json::Value;

    /// Enables the commented-out settings: lines that begin with `#` and no space.
    fn switched_on() -> String {
        let line = |line: &str| match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with(' ') => format!("{setting}\n"),
            _ => format!("{line}\n"),
        };
        STARTER.lines().map(line).collect()
    }

    #[test]
    fn starter_taxonomy_has_no_errors_or_warnings() {
        for yaml in [STARTER.to_owned(), switched_on()] {
            let taxonomy = Taxonomy::parse(&yaml).unwrap();
            assert_eq!(taxonomy.categories.len(), 3);
            assert_eq!(taxonomy.warnings(), [""; 0]);
        }
    }

    #[test]
    fn starter_taxonomy_shows_every_key() {
        fn keys(schema: &Value, found: &mut Vec<String>) {
            let Value::Object(members) = schema else { return };
            if let Some(Value::Object(properties)) = members.get("properties") {
                found.extend(properties.keys().cloned());
            }
            members.values().for_each(|member| keys(member, found));
        }
        let mut all = Vec::new();
        keys(schema(), &mut all);
        assert!(all.len() > 15, "{all:?}");
        for key in all {
            assert!(
                switched_on().contains(&format!("{key}: ")) || switched_on().contains(&format!("{key}:\n")),
                "{key}"
            );
        }
    }
}
