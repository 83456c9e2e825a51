//! What is printed of a document.

use std::io::{self, BufWriter, IsTerminal, Write};

use corbie_extract::{Document, Format, Metadata, Method, Page, Warning, is_legible};
use serde::{Serialize, Serializer};

use super::super::{harmless, one_line};
use super::file::Failure;
use crate::workers::{Error, Read};

pub(super) struct Output {
    pub(super) markdown: bool,
    pub(super) json: bool,
    /// Each text has the name of its file above it.
    pub(super) named: bool,
}

impl Output {
    /// Whether everything was read.
    pub(super) fn write(&self, file: &str, result: Result<Read, Failure>, out: &mut dyn Write) -> io::Result<bool> {
        let (read, error) = match result {
            Ok(Read { document, partial }) => {
                let error = partial.or_else(|| without_text(&document)).map(Failure::Worker);
                (Some(document), error)
            }
            Err(failure) => (None, Some(failure)),
        };
        let all = error.is_none();
        match self.json {
            true => write_line(file, read.as_ref(), error.as_ref(), &mut BufWriter::new(&mut *out))?,
            false => self.text(file, read, error, out)?,
        }
        out.flush()?;
        Ok(all)
    }

    fn text(&self, file: &str, read: Option<Document>, error: Option<Failure>, out: &mut dyn Write) -> io::Result<()> {
        let mut notes = Vec::new();
        let pages = read.as_ref().map_or(0, |document| document.pages.len());
        if let Some(document) = read {
            // That there is no text at all says it all.
            if !error.as_ref().is_some_and(is_no_text) {
                notes.extend(pictures(&document));
                notes.extend(document.warnings.iter().map(|warning| warning.message.clone()));
            }
            let text = if self.markdown { corbie_extract::markdown(&document) } else { document.printed() };
            let text = text.trim_end();
            // A terminal does what is written to it says, and a document may say anything.
            let text = if io::stdout().is_terminal() { harmless(text) } else { text.into() };
            match (text.is_empty(), self.named) {
                (true, _) => {}
                (false, true) => writeln!(out, "==> {} <==\n{text}\n", one_line(file))?,
                (false, false) => writeln!(out, "{text}")?,
            }
        }
        out.flush()?;
        notes.extend(error.map(|error| match pages {
            1.. if !is_no_text(&error) => format!("{pages} pages were read, but not all: {error}"),
            _ => error.to_string(),
        }));
        for note in notes {
            writeln!(io::stderr(), "corbie: {}: {}", one_line(file), one_line(&note))?;
        }
        Ok(())
    }
}

/// Whether nothing is missing but words.
fn is_no_text(failure: &Failure) -> bool {
    failure.kind() == corbie_extract::Error::NoText.kind()
}

/// A document that says nothing is not what anybody has asked for.
fn without_text(document: &Document) -> Option<Error> {
    let says = document.pages.iter().flat_map(|page| &page.blocks).any(|block| !block.text.trim().is_empty());
    let message = "no text was found in the file: what it shows is a picture";
    (!says).then(|| Error::Document { kind: corbie_extract::Error::NoText.kind().into(), message: message.into() })
}

/// Pages that were not read beside those that were.
fn pictures(document: &Document) -> Option<String> {
    let pages = document.pages.iter().filter(|page| page.scanned && !is_legible(&page.text()));
    let pages: Vec<String> = pages.map(|page| page.number.to_string()).collect();
    (!pages.is_empty()).then(|| format!("pages that are pictures, which are not read: {}", pages.join(", ")))
}

/// What `--json` says about one file.
#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    #[serde(flatten)]
    document: Option<Shown<'a>>,
    #[serde(flatten)]
    error: Option<Told<'a>>,
}

#[derive(Serialize)]
struct Shown<'a> {
    format: Format,
    processing_method: Method,
    metadata: &'a Metadata,
    pages: Vec<WithText<'a>>,
    warnings: &'a [Warning],
}

/// A page, and all its text.
#[derive(Serialize)]
struct WithText<'a> {
    #[serde(flatten)]
    page: &'a Page,
    #[serde(rename = "text", serialize_with = "text")]
    text: &'a Page,
}

#[derive(Serialize)]
struct Told<'a> {
    error: &'a str,
    message: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
}

fn text<S: Serializer>(page: &Page, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&page.text())
}

/// Written as it is made: a document may be large.
fn write_line(file: &str, read: Option<&Document>, error: Option<&Failure>, out: &mut dyn Write) -> io::Result<()> {
    let document = read.map(|document| Shown {
        format: document.format,
        processing_method: document.method,
        metadata: &document.metadata,
        pages: document.pages.iter().map(|page| WithText { page, text: page }).collect(),
        warnings: &document.warnings,
    });
    let error = error.map(|error| Told {
        error: error.kind(),
        message: error.to_string(),
        partial: read.is_some() && !is_no_text(error),
    });
    serde_json::to_writer(&mut *out, &Line { file, document, error })?;
    writeln!(out)?;
    out.flush()
}
