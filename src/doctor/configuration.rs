//! Which settings were read, and what is wrong with them.

use std::sync::Arc;

use super::{Check, Findings, Subject};
use crate::config::State;

/// More mistakes than this are shown by the command that is made for it.
const SHOWN: usize = 3;

pub(super) async fn check(subject: Arc<Subject>) -> Option<Check> {
    let mut findings = Findings::default();
    match &subject.read {
        None => findings.ok("the settings in effect have no mistakes"),
        Some(Err(error)) => {
            let shown: Vec<String> = error.problems.iter().take(SHOWN).map(ToString::to_string).collect();
            let more = match error.problems.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            let advice = "correct this; `corbie config validate` shows every mistake, and all other checks wait for it";
            findings.problem(format!("{}{more}", shown.join("; ")), advice);
        }
        Some(Ok(loaded)) => {
            let active = loaded.layers.iter().filter(|layer| layer.state == State::Active);
            let files: Vec<String> = active.map(|layer| layer.path.display().to_string()).collect();
            match files.is_empty() {
                true => findings.ok("no file was found, so the defaults count, and variables"),
                false => findings.ok(format!("{} without mistakes", files.join(", "))),
            }
            for warning in &loaded.warnings {
                findings.note(warning.to_string(), "correct it, or leave it if it is meant so");
            }
        }
    }
    findings.check("configuration")
}
