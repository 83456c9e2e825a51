//! Output of extracted documents as text, Markdown or JSON.

use std::io::{self, BufWriter, Write};

use corbie_extract::{Document, ExtractionMethod, Format, Metadata, Page, Warning, is_legible};
use serde::{Serialize, Serializer};

use super::super::{json_output, sanitize_line};
use super::file::FileError;
use crate::util::os_error::plain_message;
use crate::workers::{Error, Extraction};

/// Advice if Tesseract fails. The error text itself is stable, because programs may match it (K-31).
const NO_OCR: &str = "install Tesseract, set `ocr.tesseract` to its path, or use `ocr.engine: builtin`";

pub(super) struct ExtractOutput {
    pub(super) markdown: bool,
    pub(super) json: bool,
    /// Prints the file name above each text.
    pub(super) named: bool,
}

impl ExtractOutput {
    /// Returns whether the document was read completely.
    pub(super) fn write(
        &self,
        file: &str,
        result: Result<Extraction, FileError>,
        out: &mut dyn Write,
    ) -> io::Result<bool> {
        let (read, error) = match result {
            Ok(Extraction { document, partial, .. }) => {
                let error = partial.map(FileError::Worker);
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

    fn text(
        &self,
        file: &str,
        read: Option<Document>,
        error: Option<FileError>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut notes = Vec::new();
        let pages = read.as_ref().filter(|document| document.has_text()).map_or(0, |document| document.pages.len());
        if let Some(document) = read {
            // The error "no text" already implies the note about unread pages.
            notes.extend(unread_pages_warning(&document).filter(|_| !error.as_ref().is_some_and(is_no_text)));
            notes.extend(document.warnings.iter().map(|warning| warning_text(warning, document.pages.len())));
            let text = if self.markdown { corbie_extract::markdown(&document) } else { document.plain_text() };
            let text = text.trim_end();
            match (text.is_empty(), self.named) {
                (true, _) => {}
                (false, true) => writeln!(out, "==> {} <==\n{text}\n", sanitize_line(file))?,
                (false, false) => writeln!(out, "{text}")?,
            }
        }
        out.flush()?;
        let next = error
            .as_ref()
            .filter(|error| matches!(error, FileError::Worker(Error::Ocr(why)) if why.starts_with("Tesseract")))
            .map(|_| NO_OCR.to_owned());
        notes.extend(error.map(|error| match pages {
            2.. if !is_no_text(&error) => format!("only {pages} pages were read: {error}"),
            _ => error.to_string(),
        }));
        notes.extend(next);
        for note in notes {
            writeln!(io::stderr(), "corbie: {}: {}", sanitize_line(file), sanitize_line(&plain_message(&note)))?;
        }
        Ok(())
    }
}

/// Whether the only problem is that the document has no text.
fn is_no_text(failure: &FileError) -> bool {
    failure.kind() == corbie_extract::Error::NoText.kind()
}

/// A warning, with its page number if the document has several pages.
fn warning_text(warning: &Warning, pages: usize) -> String {
    match warning.page.filter(|_| pages > 1) {
        Some(page) => format!("page {page}: {}", warning.message),
        None => warning.message.clone(),
    }
}

/// A note listing the pages with images that were not read.
fn unread_pages_warning(document: &Document) -> Option<String> {
    let unread = |page: &&Page| page.scanned && page.confidence.is_none() && !is_legible(&page.text());
    let pages: Vec<String> = document.pages.iter().filter(unread).map(|page| page.number.to_string()).collect();
    let is_picture = document.method == ExtractionMethod::ImageAnalysis;
    (!pages.is_empty() && !is_picture).then(|| format!("pages with images that were not read: {}", pages.join(", ")))
}

/// One line of `--json` output.
#[derive(Serialize)]
struct FileLine<'a> {
    file: &'a str,
    #[serde(flatten)]
    document: Option<DocumentOutput<'a>>,
    #[serde(flatten)]
    error: Option<ErrorOutput<'a>>,
}

#[derive(Serialize)]
struct DocumentOutput<'a> {
    format: Format,
    processing_method: ExtractionMethod,
    metadata: &'a Metadata,
    pages: Vec<PageOutput<'a>>,
    warnings: &'a [Warning],
}

/// A page with its full text.
#[derive(Serialize)]
struct PageOutput<'a> {
    #[serde(flatten)]
    page: &'a Page,
    #[serde(rename = "text", serialize_with = "text")]
    text: &'a Page,
}

#[derive(Serialize)]
struct ErrorOutput<'a> {
    error: &'a str,
    message: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    partial: bool,
}

fn text<S: Serializer>(page: &Page, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&page.text())
}

/// Serialized directly to the output: a document may be large.
fn write_line(file: &str, read: Option<&Document>, error: Option<&FileError>, out: &mut dyn Write) -> io::Result<()> {
    let document = read.map(|document| DocumentOutput {
        format: document.format,
        processing_method: document.method,
        metadata: &document.metadata,
        pages: document.pages.iter().map(|page| PageOutput { page, text: page }).collect(),
        warnings: &document.warnings,
    });
    let error = error.map(|error| ErrorOutput {
        error: error.kind(),
        message: plain_message(&error.to_string()).into_owned(),
        partial: read.is_some_and(Document::has_text),
    });
    json_output::write(&FileLine { file, document, error }, out)?;
    out.flush()
}
