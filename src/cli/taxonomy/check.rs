//! `corbie taxonomy check`: validates a taxonomy and prints a summary.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::{CommandResult, counted};
use crate::classify::Taxonomy;
use crate::classify::taxonomy::Category;
use crate::classify::training;
use crate::cli::json_output;
use crate::config::Diagnostic;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie taxonomy check mine.yaml
  corbie taxonomy check --json mine.yaml")]
pub(in crate::cli) struct Check {
    /// Taxonomy file: `.yaml`, `.yml`, `.toml` or `.json`
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Check, out: &mut dyn Write) -> CommandResult {
    let file = command.file.display();
    match super::read_taxonomy(&command.file) {
        Ok(taxonomy) if command.json => json_output::write(&to_json(&taxonomy, &file.to_string()), out)?,
        Ok(taxonomy) => {
            let rules: usize = taxonomy.categories.iter().map(|each| pattern_count(each) + each.words.len()).sum();
            let categories = counted(taxonomy.categories.len(), "category", "categories");
            let examples = counted(taxonomy.example_count(), "example", "examples");
            writeln!(
                out,
                "{file}: {categories}, {examples}, {}",
                counted(rules, "pattern or word", "patterns and words")
            )?;
            for remark in warnings(&taxonomy) {
                writeln!(out, "{file}: {remark}")?;
            }
        }
        Err(error) if command.json => {
            let mistakes: Vec<Value> = error.diagnostics.iter().map(diagnostic_to_json).collect();
            let told = json!({
                "success": false,
                "error": "invalid_taxonomy",
                "message": error.to_string(),
                "file": file.to_string(),
                "errors": mistakes,
            });
            json_output::write(&told, out)?;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(taxonomy: &Taxonomy, file: &str) -> Value {
    let category = |each: &Category| {
        let (examples, words) = (each.examples.len(), each.words.len());
        json!({ "name": each.name, "examples": examples, "patterns": pattern_count(each), "words": words })
    };
    json!({
        "file": file,
        "categories": taxonomy.categories.iter().map(category).collect::<Vec<_>>(),
        "examples": taxonomy.example_count(),
        "warnings": warnings(taxonomy),
    })
}

/// Number of `patterns` and `certain` patterns.
fn pattern_count(category: &Category) -> usize {
    category.patterns.len() + category.certain.len()
}

fn warnings(taxonomy: &Taxonomy) -> Vec<String> {
    let mut remarks = taxonomy.warnings();
    if let (Some(path), Some(false)) = (&taxonomy.path, training::saved_is_current(taxonomy)) {
        remarks.push(format!(
            "`{}` does not match these examples and is not used; run `corbie taxonomy train {}`",
            training::saved_path(path).display(),
            path.display()
        ));
    }
    remarks
}

fn diagnostic_to_json(problem: &Diagnostic) -> Value {
    let position = problem.origin.as_ref().and_then(|origin| origin.position);
    // Only the message with its suggestion: the position has separate members.
    let message = Diagnostic { origin: None, path: Default::default(), ..problem.clone() }.to_string();
    json!({
        "line": position.map(|position| position.line),
        "column": position.map(|position| position.column),
        "path": problem.path.to_string(),
        "message": message,
    })
}
