//! One step of the demo, run with the MCP tool that a client would call.

use serde_json::{Value, json};

use super::place::Place;
use crate::cli::knowledge::peer::Peer;
use crate::cli::knowledge::search::place as stands;
use crate::cli::knowledge::snippet::{Style, snippet};
use crate::cli::knowledge::text;
use crate::cli::one_line;

#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Folder name as shown in the output.
    Add(&'static str),
    Search(&'static str),
    Ask(&'static str),
    Classify(&'static str),
    Explain(&'static str),
}

/// Result of a step.
#[derive(Debug)]
pub(super) struct Done {
    /// For people.
    pub(super) lines: Vec<String>,
    /// For programs: the tool's result.
    pub(super) result: Value,
}

/// Maximum characters of an answer that are shown.
const SHOWN: usize = 160;
/// Maximum number of sources shown.
const SOURCES: usize = 2;

impl Step {
    /// The equivalent command line.
    pub(super) fn command(self) -> String {
        match self {
            Step::Add(folder) => format!("corbie add {folder}"),
            Step::Search(query) => format!("corbie search \"{query}\""),
            Step::Ask(question) => format!("corbie ask --documents \"{question}\""),
            Step::Classify(text) => format!("corbie classify \"{text}\""),
            Step::Explain(prompt) => format!("corbie ask --explain \"{prompt}\""),
        }
    }

    pub(super) async fn take(self, peer: &Peer, place: &Place) -> Result<Done, Box<dyn std::error::Error>> {
        let result = match self {
            Step::Add(_) => {
                peer.call("knowledge-import", json!({ "paths": [place.documents()], "async": false })).await
            }
            Step::Search(query) => peer.call("knowledge-search", json!({ "query": query, "top_k": 1 })).await,
            Step::Ask(question) => peer.call("knowledge-ask", json!({ "question": question })).await,
            Step::Classify(text) => peer.call("classify_text", json!({ "text": text })).await,
            Step::Explain(prompt) => peer.call("explain_route", json!({ "prompt": prompt })).await,
        }?;
        let lines = match self {
            Step::Add(_) => added(&result)?,
            Step::Search(query) => found(&result, query),
            Step::Ask(_) => answered(&result),
            Step::Classify(_) => classified(&result),
            Step::Explain(_) => explained(&result),
        };
        Ok(Done { lines, result })
    }
}

/// Fails unless every file was added, because the next steps need them.
fn added(result: &Value) -> Result<Vec<String>, String> {
    let number = |member: &str| result[member].as_u64().unwrap_or_default();
    let (total, added) = (number("files_total"), number("added"));
    match total == added && total > 0 {
        true => Ok(vec![format!("{added} files added: {}", files(result))]),
        false => {
            Err(format!("of {total} sample documents, {added} could be added; `corbie status` may tell what is wrong"))
        }
    }
}

/// Sorted file names, with a mark on files that needed OCR.
fn files(result: &Value) -> String {
    let mut files: Vec<String> = result["files"].as_array().into_iter().flatten().map(named).collect();
    files.sort_unstable();
    files.join(", ")
}

fn named(file: &Value) -> String {
    let name = one_line(text(file, "filename"));
    if text(file, "processing_method") == "text_extraction" { name } else { format!("{name} (by OCR)") }
}

fn found(result: &Value, query: &str) -> Vec<String> {
    let Some(best) = result["results"].get(0) else { return vec![one_line(text(result, "message"))] };
    let mut lines = vec![stands(best)];
    lines.extend(snippet(text(best, "chunk_text"), query, Style { bold: false, indent: 2 }));
    lines
}

fn answered(result: &Value) -> Vec<String> {
    let answer = one_line(text(result, "answer"));
    let more = if answer.chars().nth(SHOWN).is_some() { "…" } else { "" };
    let mut lines = vec![format!("{}{more}", answer.chars().take(SHOWN).collect::<String>())];
    let of = |member: &str| result[member].as_array().cloned().unwrap_or_default();
    let sources = if of("citations").is_empty() { of("passages") } else { of("citations") };
    lines.extend(sources.iter().take(SOURCES).map(|source| format!("[{}] {}", source["number"], stands(source))));
    lines
}

fn classified(result: &Value) -> Vec<String> {
    let sure = 100.0 * result["confidence"].as_f64().unwrap_or_default();
    vec![format!("{}, {sure:.1} % sure; decided by {}", text(result, "category"), text(result, "method"))]
}

fn explained(result: &Value) -> Vec<String> {
    let mut lines = classified(result);
    let reasons = if result["use_reasoning"] == true { "it should think first" } else { "it need not think first" };
    for (place, candidate) in result["candidates"].as_array().into_iter().flatten().enumerate() {
        let (provider, model, why) = (text(candidate, "provider"), text(candidate, "model"), text(candidate, "reason"));
        lines.push(match place {
            0 => format!("asked: {provider}/{model} ({why}); {reasons}"),
            _ => format!("then: {provider}/{model} ({why})"),
        });
    }
    lines
}
