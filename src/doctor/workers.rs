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
            findings.problem("a worker process returned a wrong text for a test document", "reinstall corbie");
            return findings.check("documents");
        }
        Err(error) => {
            let advice = "allow this user to start processes and to set resource limits, and check `documents.memory`; until then no documents can be read";
            findings.problem(error.to_string(), advice);
            return findings.check("documents");
        }
    }
    let confined = tokio::task::spawn_blocking(has_landlock).await.unwrap_or_else(|error| Err(error.into()));
    match confined {
        Ok(true) => findings.ok("document sandbox: OK"),
        // A worker that cannot restrict its system calls does not start at all.
        Ok(false) => findings.note(
            "document sandbox: system calls are restricted, but file access is not, because this system has no Landlock",
            "use Linux 5.13 or later with Landlock if you process untrusted documents",
        ),
        Err(error) => findings.problem(
            format!("document sandbox: support for Landlock could not be determined: {error}"),
            "check the limit of threads for this user (`ulimit -u`), and try again",
        ),
    }
    findings.check("documents")
}
