//! One step of the demo, run with the MCP tool that a client would call.

use serde_json::{Value, json};

use super::workdir::Workdir;
use crate::cli::knowledge::backend::Backend;
use crate::cli::knowledge::search::source_line as stands;
use crate::cli::knowledge::snippet::{SnippetStyle, passage_text, snippet};
use crate::cli::knowledge::text;
use crate::cli::sanitize_line;

#[derive(Debug, Clone, Copy)]
pub(super) enum DemoStep {
    /// Folder name as shown in the output.
    Add(&'static str),
    Search(&'static str),
    Ask(&'static str),
    Classify(&'static str),
    Explain(&'static str),
}

/// Result of a step.
#[derive(Debug)]
pub(super) struct StepResult {
    /// For people.
    pub(super) lines: Vec<String>,
    /// For programs: the tool's result.
    pub(super) result: Value,
}

/// Indentation of all output of a step.
const OUTPUT_INDENT: usize = 5;
/// Maximum characters of an answer that are shown.
const MAX_ANSWER_CHARS: usize = 160;
/// Maximum number of sources shown.
const MAX_SOURCES: usize = 2;

impl DemoStep {
    /// The equivalent command line.
    pub(super) fn command(self) -> String {
        match self {
            DemoStep::Add(folder) => format!("corbie add {folder}"),
            DemoStep::Search(query) => format!("corbie search \"{query}\""),
            DemoStep::Ask(question) => format!("corbie ask --documents \"{question}\""),
            DemoStep::Classify(text) => format!("corbie classify \"{text}\""),
            DemoStep::Explain(prompt) => format!("corbie ask --explain \"{prompt}\""),
        }
    }

    pub(super) async fn run(self, peer: &Backend, place: &Workdir) -> Result<StepResult, Box<dyn std::error::Error>> {
        let result = match self {
            DemoStep::Add(_) => {
                peer.call("knowledge-import", json!({ "paths": [place.documents()], "async": false })).await
            }
            DemoStep::Search(query) => peer.call("knowledge-search", json!({ "query": query, "top_k": 1 })).await,
            DemoStep::Ask(question) => peer.call("knowledge-ask", json!({ "question": question })).await,
            DemoStep::Classify(text) => peer.call("classify_text", json!({ "text": text })).await,
            DemoStep::Explain(prompt) => peer.call("explain_route", json!({ "prompt": prompt })).await,
        }?;
        let lines = match self {
            DemoStep::Add(_) => added_lines(&result)?,
            DemoStep::Search(query) => search_lines(&result, query),
            DemoStep::Ask(_) => answer_lines(&result),
            DemoStep::Classify(_) => classification_lines(&result),
            DemoStep::Explain(_) => explanation_lines(&result),
        };
        Ok(StepResult { lines, result })
    }
}

/// Fails unless every file was added, because the next steps need them.
fn added_lines(result: &Value) -> Result<Vec<String>, String> {
    let number = |member: &str| result[member].as_u64().unwrap_or_default();
    let (total, added) = (number("files_total"), number("added"));
    match total == added && total > 0 {
        true => Ok(vec![format!("{added} files added: {}", files(result))]),
        false => Err(format!("only {added} of {total} sample documents were added; run `corbie doctor`")),
    }
}

/// Sorted file names, with a mark on files that needed OCR.
fn files(result: &Value) -> String {
    let mut files: Vec<String> = result["files"].as_array().into_iter().flatten().map(file_label).collect();
    files.sort_unstable();
    files.join(", ")
}

fn file_label(file: &Value) -> String {
    let name = sanitize_line(text(file, "filename"));
    if text(file, "processing_method") == "text_extraction" { name } else { format!("{name} (OCR)") }
}

fn search_lines(result: &Value, query: &str) -> Vec<String> {
    let Some(best) = result["results"].get(0) else { return vec![sanitize_line(text(result, "message"))] };
    let mut lines = vec![stands(best)];
    lines.extend(snippet(&passage_text(best), query, SnippetStyle::new(false, 2).within(OUTPUT_INDENT)));
    lines
}

fn answer_lines(result: &Value) -> Vec<String> {
    let answer = sanitize_line(text(result, "answer"));
    let more = if answer.chars().nth(MAX_ANSWER_CHARS).is_some() { "…" } else { "" };
    let mut lines = vec![format!("{}{more}", answer.chars().take(MAX_ANSWER_CHARS).collect::<String>())];
    let of = |member: &str| result[member].as_array().cloned().unwrap_or_default();
    let sources = if of("citations").is_empty() { of("passages") } else { of("citations") };
    lines.extend(sources.iter().take(MAX_SOURCES).map(|source| format!("[{}] {}", source["number"], stands(source))));
    lines
}

fn classification_lines(result: &Value) -> Vec<String> {
    let sure = 100.0 * result["confidence"].as_f64().unwrap_or_default();
    vec![format!("{} (confidence {sure:.1} %, method {})", text(result, "category"), text(result, "method"))]
}

fn explanation_lines(result: &Value) -> Vec<String> {
    let mut lines = classification_lines(result);
    let reasons = if result["use_reasoning"] == true { "with reasoning" } else { "without reasoning" };
    for (place, candidate) in result["candidates"].as_array().into_iter().flatten().enumerate() {
        let (provider, model, why) = (text(candidate, "provider"), text(candidate, "model"), text(candidate, "reason"));
        lines.push(match place {
            0 => format!("model: {provider}/{model} ({why}), {reasons}"),
            _ => format!("failover: {provider}/{model} ({why})"),
        });
    }
    lines
}
