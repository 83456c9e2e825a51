//! `corbie search`: searches passages, best first.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Args;
use corbie_extract::Format;
use serde_json::{Map, Value, json};

use super::backend::Backend;
use super::error::KnowledgeError;
use super::snippet::{SnippetStyle, passage_text, snippet};
use super::{CommonOptions, resolve_base, text};
use crate::cli::{CommandResult, json_output, sanitize_line, terminal, value_parsers};
use crate::colour;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie search how many days of holiday do new colleagues get
  corbie search --top 3 --format pdf \"notice period\"
  corbie search --json --since 2026-01-31 invoices")]
pub(in crate::cli) struct Search {
    /// Query in natural language
    #[arg(required = true, value_name = "QUERY", allow_negative_numbers = true)]
    words: Vec<String>,
    /// Maximum number of passages, up to 50
    #[arg(long, value_name = "N", default_value_t = DEFAULT_TOP, value_parser = clap::value_parser!(u64).range(1..=MAX_TOP))]
    top: u64,
    /// Minimum relevance of a passage, from 0 to 1
    #[arg(long, value_name = "SHARE", value_parser = value_parsers::share)]
    min_relevance: Option<f64>,
    /// Only documents of this format, such as pdf; can be repeated
    #[arg(long, value_name = "FORMAT", value_parser = value_parsers::format)]
    format: Vec<Format>,
    /// Only documents with this tag; can be repeated, and one match is sufficient
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Only documents added on or after this day, such as 2026-01-31
    #[arg(long, value_name = "DATE", value_parser = value_parsers::day)]
    since: Option<String>,
    /// Only documents added on or before this day
    #[arg(long, value_name = "DATE", value_parser = value_parsers::day)]
    until: Option<String>,
    #[command(flatten)]
    pub(super) common: CommonOptions,
}

/// Default and maximum number of passages, as in the tool.
const DEFAULT_TOP: u64 = 10;
const MAX_TOP: u64 = 50;

pub(super) async fn run(command: &Search, peer: &Backend, out: &mut dyn Write) -> CommandResult {
    resolve_base::must_exist(peer, command.common.base()).await?;
    let query = command.words.join(" ");
    let reply = peer.call("knowledge-search", command.common.arguments(command.arguments(&query))).await?;
    if command.common.json {
        json_output::write(&reply, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    match reply["results"].as_array().map(Vec::as_slice) {
        Some(results @ [_, ..]) => write_passages(results, &query, out)?,
        _ => writeln!(out, "{}", sanitize_line(text(&reply, "message")))?,
    }
    Ok(ExitCode::SUCCESS)
}

impl Search {
    /// Validates the arguments before the knowledge base is opened.
    pub(super) fn check(&self) -> Result<(), KnowledgeError> {
        match self.words.iter().all(|word| word.trim().is_empty()) {
            true => Err(KnowledgeError::argument("query", "the query is empty; usage: corbie search QUERY")),
            false => Ok(()),
        }
    }

    fn arguments(&self, query: &str) -> Value {
        let mut question = json!({ "query": query, "top_k": self.top });
        if let Some(least) = self.min_relevance {
            question["min_relevance"] = least.into();
        }
        let mut filters = Map::new();
        if !self.format.is_empty() {
            filters.insert("format".into(), json!(self.format));
        }
        if !self.tag.is_empty() {
            filters.insert("tags".into(), json!(self.tag));
        }
        let dates = [("start", &self.since), ("end", &self.until)];
        let dates: Map<String, Value> =
            dates.into_iter().filter_map(|(end, date)| Some((end.to_owned(), json!(date.as_ref()?)))).collect();
        if !dates.is_empty() {
            filters.insert("date_range".into(), dates.into());
        }
        if !filters.is_empty() {
            question["filters"] = filters.into();
        }
        question
    }
}

/// Prints passages: number, score, location, and the snippet that matches the query.
pub(in crate::cli) fn write_passages(passages: &[Value], query: &str, out: &mut dyn Write) -> io::Result<()> {
    let style = SnippetStyle::new(colour::is_enabled(io::stdout().is_terminal()), INDENT);
    for (number, passage) in passages.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let score = passage["relevance_score"].as_f64().unwrap_or_default();
        let document = text(passage, "document_id").chars().take(8).collect::<String>();
        let source = format!("{}. {score:.2}  {}  [{}]", number + 1, source_line(passage), sanitize_line(&document));
        terminal::write_wrapped(&source, INDENT, out)?;
        for line in snippet(&passage_text(passage), query, style) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

/// Indentation below the first line of a passage.
const INDENT: usize = 3;

/// Location of a passage: file, page and headings.
pub(in crate::cli) fn source_line(passage: &Value) -> String {
    let metadata = &passage["metadata"];
    let mut place = sanitize_line(text(passage, "filename"));
    if let Some(page) = metadata["page_num"].as_u64() {
        place += &format!(", page {page}");
    }
    let headings = metadata["headings"].as_array().map(Vec::as_slice).unwrap_or_default();
    let headings: Vec<String> = headings.iter().filter_map(Value::as_str).map(sanitize_line).collect();
    if !headings.is_empty() {
        place += &format!(" · {}", headings.join(" › "));
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_line_has_file_page_and_headings() {
        let passage = json!({
            "filename": "a\u{1b}[2J.pdf",
            "metadata": { "page_num": 3, "headings": ["Results", "Revenue\n"] },
        });
        assert_eq!(source_line(&passage), "a [2J.pdf, page 3 · Results › Revenue ");
        assert_eq!(source_line(&json!({ "filename": "b.txt", "metadata": {} })), "b.txt");
    }

    #[test]
    fn arguments_contain_only_given_options() {
        let mut search = Search {
            words: Vec::new(),
            top: 3,
            min_relevance: None,
            format: Vec::new(),
            tag: Vec::new(),
            since: None,
            until: None,
            common: CommonOptions { knowledge_base: None, json: false },
        };
        assert_eq!(search.arguments("q"), json!({ "query": "q", "top_k": 3 }));
        search.format = vec![Format::Pdf];
        search.until = Some("2026-01-31".into());
        let filters = json!({ "format": ["pdf"], "date_range": { "end": "2026-01-31" } });
        assert_eq!(search.arguments("q"), json!({ "query": "q", "top_k": 3, "filters": filters }));
    }
}
