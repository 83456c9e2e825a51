//! `corbie licenses`: lists bundled third-party software and its licenses.
//!
//! `tests/cli/licenses.rs` generates `list.json` and `texts.json.gz` from cargo metadata; both are committed. A test
//! fails if they do not match `Cargo.lock`.

mod texts;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::texts::{Texts, texts};
use super::table::{Align, write_table};
use super::{CommandResult, json_output};

/// Lists third-party software of all features and platforms; a build may contain less.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Licenses {
    /// Also print the license texts, each text once
    #[arg(long)]
    full: bool,
    /// Only components whose name contains this text
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  corbie licenses                 # components and their licenses
  corbie licenses --full tokio    # with the license texts of one component
  corbie licenses --full > THIRD-PARTY.txt
  corbie licenses --json";

/// A bundled component, with every feature and on any platform.
#[derive(Debug, Clone, Deserialize, Serialize)]
struct Component {
    kind: ComponentKind,
    name: String,
    version: String,
    /// An SPDX expression, or a short description if there is none.
    license: String,
    /// The component ships no license text, so the standard text of the license is used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    standard_text: bool,
    /// Keys of its license texts in `Texts`.
    texts: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum ComponentKind {
    /// This program.
    Program,
    Crate,
    /// Code in another language that a crate bundles.
    Library,
    Model,
    Font,
    Documents,
}

const LIST: &str = include_str!("list.json");

pub(super) fn run(command: &Licenses, out: &mut dyn Write) -> CommandResult {
    let mut parts: Vec<Component> = serde_json::from_str(LIST)?;
    if let Some(name) = &command.name {
        parts.retain(|part| part.name.contains(name.as_str()));
        if parts.is_empty() {
            return Err(format!("no component is named `{name}`; `corbie licenses` lists all components").into());
        }
    }
    match (command.json, command.full) {
        (true, false) => json_output::write(&json!({ "parts": parts }), out)?,
        (true, true) => {
            let mut texts = texts()?;
            texts.retain(|name, _| parts.iter().any(|part| part.texts.contains(name)));
            json_output::write(&json!({ "parts": parts, "texts": texts }), out)?;
        }
        (false, false) => write_list(&parts, out)?,
        (false, true) => {
            write_list(&parts, out)?;
            write_texts(&parts, &texts()?, out)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn write_list(parts: &[Component], out: &mut dyn Write) -> io::Result<()> {
    let heading = [("NAME", Align::Left), ("VERSION", Align::Left), ("KIND", Align::Left), ("LICENSE", Align::Wrap)];
    let rows: Vec<Vec<String>> = parts.iter().map(row).collect();
    write_table(&heading, &rows, out)?;
    match parts.iter().any(|part| part.standard_text) {
        true => writeln!(out, "\n* includes no license text; the standard text of the license is used"),
        false => Ok(()),
    }
}

fn row(part: &Component) -> Vec<String> {
    let mark = if part.standard_text { " *" } else { "" };
    vec![part.name.clone(), part.version.clone(), part.kind.as_str().into(), format!("{}{mark}", part.license)]
}

/// Prints each text once, under the names of all components that use it.
fn write_texts(parts: &[Component], texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    for (name, text) in texts {
        let bring = |part: &&Component| part.texts.contains(name);
        let of: Vec<String> =
            parts.iter().filter(bring).map(|part| format!("{} {}", part.name, part.version)).collect();
        if !of.is_empty() {
            writeln!(out, "\n{}\n{}\n\n{}", "=".repeat(80), of.join(", "), text.trim_end())?;
        }
    }
    Ok(())
}

impl ComponentKind {
    fn as_str(self) -> &'static str {
        match self {
            ComponentKind::Program => "program",
            ComponentKind::Crate => "crate",
            ComponentKind::Library => "library",
            ComponentKind::Model => "model",
            ComponentKind::Font => "font",
            ComponentKind::Documents => "documents",
        }
    }
}
