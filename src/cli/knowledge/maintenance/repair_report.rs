//! Report of a repair, with the documents to add again.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};

use super::super::counted;
use crate::cli::sanitize_line;
use crate::knowledge::store::sqlite::{DamageReport, LogLoss, LostDocument, RepairReport};

/// Advice if no data could be recovered.
const UNREADABLE_ADVICE: &str = "no data could be recovered, and the knowledge base is now empty; restore a backup with \
    `corbie knowledge restore FILE`, or add the documents again";

/// The report as JSON.
pub(super) fn to_json(repaired: &RepairReport) -> Value {
    let DamageReport { incomplete, lost, unnamed_lost: unnamed } = &repaired.damage;
    let documents = |documents: &[LostDocument]| -> Vec<Value> {
        documents.iter().map(|document| json!({ "filename": document.filename, "file_path": document.path })).collect()
    };
    let mut told = json!({
        "success": !repaired.unreadable,
        "problems": repaired.problems,
        "set_aside": repaired.preserved_as,
        "copy": repaired.copy,
        "logs": repaired.logs.iter().map(log_loss).collect::<Vec<_>>(),
        "documents": repaired.documents,
        "chunks": repaired.chunks,
        "incomplete": documents(incomplete),
        "lost": documents(lost),
        "lost_unnamed": unnamed,
    });
    if repaired.unreadable {
        told["error"] = "storage_corrupt".into();
        told["message"] = UNREADABLE_ADVICE.into();
    }
    told
}

fn log_loss(log: &LogLoss) -> Value {
    json!({ "copy": log.copy, "applied": log.applied, "lost": log.lost })
}

/// The report as text, with a line for each document that lost data.
pub(super) fn write(repaired: &RepairReport, out: &mut dyn Write) -> io::Result<()> {
    super::write_problems(&repaired.problems, out)?;
    let (documents, chunks) = (counted(repaired.documents, "document"), counted(repaired.chunks, "chunk"));
    match (repaired.unreadable, repaired.problems.is_empty()) {
        (true, _) => writeln!(out, "{UNREADABLE_ADVICE}")?,
        (false, true) => writeln!(out, "OK: {documents}, {chunks}")?,
        (false, false) => writeln!(out, "Repaired: {documents}, {chunks}")?,
    }
    let DamageReport { incomplete, lost, unnamed_lost: unnamed } = &repaired.damage;
    for (what, documents) in [("lost", lost), ("incomplete", incomplete)] {
        for document in documents {
            writeln!(out, "{what}: {}", file_and_path(document))?;
        }
    }
    if *unnamed > 0 {
        writeln!(out, "lost: {} with unreadable names", counted(*unnamed, "document"))?;
    }
    if !(incomplete.is_empty() && lost.is_empty()) {
        writeln!(out, "Add these documents again with `corbie add PATH`.")?;
    }
    for log in &repaired.logs {
        let lost = counted(log.lost, "change");
        writeln!(out, "At least {lost} in the write-ahead log lost; a copy of the log is {}", shown(&log.copy))?;
    }
    if let Some(copy) = &repaired.copy {
        writeln!(out, "A copy from before the repair is {}", shown(copy))?;
    }
    match &repaired.preserved_as {
        Some(aside) => writeln!(out, "The damaged file is kept as {}", shown(aside)),
        None => Ok(()),
    }
}

fn shown(path: &Path) -> String {
    sanitize_line(&path.display().to_string())
}

/// The file, and its position.
fn file_and_path(document: &LostDocument) -> String {
    let filename = sanitize_line(&document.filename);
    match &document.path {
        Some(path) => format!("{filename} ({})", sanitize_line(path)),
        None => filename,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_damaged_document_has_a_line() {
        let lost = LostDocument { filename: "a\u{1b}.pdf".into(), path: Some("/x/a\u{1b}.pdf".into()) };
        let incomplete = LostDocument { filename: "b.pdf".into(), path: None };
        let loss = DamageReport { incomplete: vec![incomplete], lost: vec![lost], unnamed_lost: 2 };
        let repaired = RepairReport {
            problems: vec!["odd".into()],
            documents: 1,
            chunks: 3,
            damage: loss,
            ..RepairReport::default()
        };
        let mut out = Vec::new();
        write(&repaired, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "problem: odd\nRepaired: 1 document, 3 chunks\nlost: a .pdf (/x/a .pdf)\nincomplete: b.pdf\n\
             lost: 2 documents with unreadable names\nAdd these documents again with `corbie add PATH`.\n"
        );
    }
}
