//! `corbie show`: lists documents, or prints the text of one.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::backend::Backend;
use super::error::{EMPTY_KNOWLEDGE_BASE, KnowledgeError};
use super::{CommonOptions, number, resolve_base, resolve_id, short_ids, size, text};
use crate::cli::table::{Align, write_table};
use crate::cli::{CommandResult, json_output, sanitize, sanitize_line};

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  corbie show
  corbie show --sort name --order asc --limit 20
  corbie show handbook.pdf --page 3")]
pub(in crate::cli) struct Show {
    /// Document to print: file name, or a unique prefix of the document ID
    #[arg(value_name = "DOCUMENT")]
    id: Option<String>,
    /// Print only this page
    #[arg(long, value_name = "N", requires = "id", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    page: Option<u64>,
    /// Maximum number of documents in the list, up to 1000
    #[arg(long, value_name = "N", default_value_t = 100, conflicts_with = "id", value_parser = clap::value_parser!(u64).range(1..=1000))]
    limit: u64,
    /// Number of documents to skip
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "id")]
    offset: u32,
    /// Sort key of the list
    #[arg(long, value_enum, default_value_t = Sort::Date, conflicts_with = "id")]
    sort: Sort,
    /// Sort order
    #[arg(long, value_enum, default_value_t = Order::Desc, conflicts_with = "id")]
    order: Order,
    #[command(flatten)]
    pub(super) common: CommonOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Sort {
    Date,
    Name,
    Size,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Order {
    Asc,
    Desc,
}

/// Limits of one tool call.
const MAX_CHARS_PER_CALL: u64 = 500_000;
const MAX_PAGES_PER_CALL: u64 = 1000;

pub(super) async fn run(command: &Show, peer: &Backend, out: &mut dyn Write) -> CommandResult {
    resolve_base::must_exist(peer, command.common.base()).await?;
    match &command.id {
        Some(typed) => {
            let ids = resolve_id::resolve_documents(peer, &command.common, std::slice::from_ref(typed)).await?;
            for id in ids {
                write_text(command, &id, peer, out).await?;
            }
        }
        None => list(command, peer, out).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(command: &Show, peer: &Backend, out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let arguments = json!({
        "limit": command.limit,
        "offset": command.offset,
        "sort_by": match command.sort {
            Sort::Date => "date_added",
            Sort::Name => "filename",
            Sort::Size => "size",
        },
        "sort_order": match command.order {
            Order::Asc => "asc",
            Order::Desc => "desc",
        },
    });
    let reply = peer.call("knowledge-show", command.common.arguments(arguments)).await?;
    if command.common.json {
        json_output::write(&reply, out)?;
        return Ok(());
    }
    let documents = reply["documents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let total = number(&reply, "total_count");
    if documents.is_empty() {
        match total {
            0 => writeln!(out, "{EMPTY_KNOWLEDGE_BASE}")?,
            _ => writeln!(out, "{}", sanitize_line(text(&reply, "message")))?,
        }
        return Ok(());
    }
    let heading = [
        ("STATUS", Align::Left),
        ("FORMAT", Align::Left),
        ("SIZE", Align::Right),
        ("CHUNKS", Align::Right),
        ("ADDED", Align::Left),
        ("ID", Align::Left),
        ("NAME", Align::Wrap),
    ];
    let ids = short_ids(documents.iter().map(|document| text(document, "id")));
    let rows: Vec<Vec<String>> = documents.iter().zip(&ids).map(|(document, id)| row(document, id)).collect();
    write_table(&heading, &rows, out)?;
    let next = u64::from(command.offset) + documents.len() as u64;
    if next < total {
        writeln!(
            io::stderr(),
            "corbie: {} of {total} documents; use --offset {next} for the next page",
            documents.len()
        )?;
    }
    Ok(())
}

fn row(document: &Value, id: &str) -> Vec<String> {
    // To the minute; the JSON output has the complete timestamp.
    let added: String = text(document, "date_added").chars().take("2026-01-31T12:00".len()).collect();
    vec![
        sanitize_line(text(document, "processing_status")),
        sanitize_line(text(document, "format")),
        size(number(document, "size_bytes")),
        number(document, "chunk_count").to_string(),
        sanitize_line(&added.replace('T', " ")),
        sanitize_line(id),
        sanitize_line(text(document, "filename")),
    ]
}

/// Prints all pages, or one, with as many tool calls as necessary.
async fn write_text(
    command: &Show,
    id: &str,
    peer: &Backend,
    out: &mut dyn Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let (mut page, mut offset) = (command.page.unwrap_or(1), 0);
    let mut part = TextPosition::First;
    loop {
        let arguments = json!({
            "document_id": id,
            "page": page,
            "pages": if command.page.is_some() { 1 } else { MAX_PAGES_PER_CALL },
            "offset": offset,
            "max_characters": MAX_CHARS_PER_CALL,
        });
        let reply = peer.call("knowledge-get", command.common.arguments(arguments)).await?;
        let count = number(&reply, "page_count");
        if page > count.max(1) {
            return Err(KnowledgeError::NoPage { page, count }.into());
        }
        if command.common.json {
            json_output::write(&reply, out)?;
        } else {
            write_pages(&reply, part, out)?;
        }
        let next = reply["next_page"].as_u64().map(|next| (next, number(&reply, "next_offset")));
        match next.filter(|(next, _)| command.page.is_none_or(|wanted| *next == wanted)) {
            Some(further) if further > (page, offset) => {
                (page, offset) = further;
                part = if offset > 0 { TextPosition::WithinPage } else { TextPosition::NextPage };
            }
            _ => break,
        }
    }
    if !command.common.json {
        writeln!(out)?;
    }
    Ok(())
}

/// The position of the next text relative to the previous output.
#[derive(Debug, Clone, Copy, PartialEq)]
enum TextPosition {
    First,
    NextPage,
    WithinPage,
}

fn write_pages(reply: &Value, part: TextPosition, out: &mut dyn Write) -> io::Result<()> {
    let name = sanitize_line(text(&reply["document"], "filename"));
    let pages = reply["pages"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, page) in pages.iter().enumerate() {
        let part = if index > 0 { TextPosition::NextPage } else { part };
        if part == TextPosition::NextPage {
            write!(out, "\n\n")?;
        }
        if part != TextPosition::WithinPage {
            let label = match text(page, "label") {
                "" => String::new(),
                label => format!(" ({})", sanitize_line(label)),
            };
            writeln!(out, "==> {name}, page {} of {}{label} <==", page["page"], reply["page_count"])?;
        }
        write!(out, "{}", sanitize(text(page, "text")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_headings_and_sanitized_text() {
        let reply = json!({
            "document": { "filename": "a.pdf" },
            "page_count": 2,
            "pages": [{ "page": 1, "text": "one\u{1b}[2J" }, { "page": 2, "text": "two", "label": "Sheet" }],
        });
        let shown = |part: TextPosition| {
            let mut out = Vec::new();
            write_pages(&reply, part, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let rest = "one[2J\n\n==> a.pdf, page 2 of 2 (Sheet) <==\ntwo";
        assert_eq!(shown(TextPosition::First), format!("==> a.pdf, page 1 of 2 <==\n{rest}"));
        assert_eq!(shown(TextPosition::NextPage), format!("\n\n{}", shown(TextPosition::First)));
        assert_eq!(shown(TextPosition::WithinPage), rest, "what goes on has no second heading");
    }
}
