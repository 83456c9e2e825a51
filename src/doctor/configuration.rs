//! Checks the settings files.

use std::sync::Arc;

use super::{Check, Findings, SetupContext};
use crate::config::{Diagnostic, State};

/// Maximum number of errors shown; `corbie config validate` shows all.
const MAX_SHOWN: usize = 3;

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let mut findings = Findings::default();
    match &subject.load_result {
        None => findings.ok("the settings are valid"),
        Some(Err(error)) => {
            let shown: Vec<String> = error.diagnostics.iter().take(MAX_SHOWN).map(ToString::to_string).collect();
            let more = match error.diagnostics.len().saturating_sub(MAX_SHOWN) {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            let advice = "correct the settings; `corbie config validate` lists all errors. The other checks are skipped until then";
            findings.problem(format!("{}{more}", shown.join("; ")), advice);
        }
        Some(Ok(loaded)) => {
            match loaded.layers.iter().any(|layer| layer.state == State::Active) {
                false => findings.ok("no configuration file; defaults and environment variables apply"),
                true => findings.ok(format!("valid: {}", loaded.files_in_effect())),
            }
            let is_unapproved = |warning: &Diagnostic| {
                loaded.layers.iter().any(|layer| layer.is_unapproved() && warning.is_about(&layer.path))
            };
            for warning in &loaded.warnings {
                let advice = match warning {
                    _ if loaded.is_about_token(warning) => "replace it: `corbie serve` does not start with this token",
                    _ if is_unapproved(warning) => {
                        "approve the file only if you trust its content; until then only harmless settings apply"
                    }
                    _ => "correct it unless it is intended",
                };
                findings.note(warning.to_string(), advice);
            }
        }
    }
    findings.check("configuration")
}
