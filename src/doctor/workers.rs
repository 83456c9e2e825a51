//! Checks that a worker process for documents starts inside its sandbox.

use std::sync::Arc;

use corbie_extract::Format;

use super::{Check, Findings, SetupContext};
use crate::workers::{InputFile, OcrMode, Tenant, WorkerPool, has_landlock};

const TEXT: &str = "A crow remembers faces.";

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let config = subject.config.as_ref()?;
    let mut findings = Findings::default();
    let pool = WorkerPool::new(config.documents.clone(), config.ocr.clone());
    let file = InputFile {
        bytes: TEXT.as_bytes(),
        name: Some("crow.txt"),
        format_hint: Some(Format::Text),
        full_html: false,
        ocr: OcrMode::Off,
        tenant: &Tenant::local(),
    };
    match pool.extract(file, |_| {}).await {
        Ok(read) if read.document.text().contains(TEXT) => {}
        Ok(_) => {
            findings.problem(
                "a process read a document and said something else than what is in it",
                "install corbie again",
            );
            return findings.check("documents");
        }
        Err(error) => {
            let advice = "let this user start processes and limit them, and check `documents.memory`; without it no document is read";
            findings.problem(error.to_string(), advice);
            return findings.check("documents");
        }
    }
    let confined = tokio::task::spawn_blocking(has_landlock).await.unwrap_or_else(|error| Err(error.into()));
    match confined {
        Ok(true) => findings.ok("a process reads them, without files, network or other programs"),
        // A worker that cannot restrict its system calls does not start at all.
        Ok(false) => findings.note(
            "a process reads them with few system calls; this system has no Landlock, which would take files from it as well",
            "use Linux 5.13 or later with Landlock, if documents come from strangers",
        ),
        Err(error) => findings.problem(
            format!("a process reads them; whether it can be kept from files was not found out: {error}"),
            "see how many threads this user may have (`ulimit -u`), and ask again",
        ),
    }
    findings.check("documents")
}
