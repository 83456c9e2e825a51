//! Tool `save_taxonomy`: validates a text, replaces the taxonomy file and reloads it before it responds.

use std::path::PathBuf;

use corbie_mcp::{Arguments, CallResult, Effect, RegistrationError, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{NO_FILE, render_error, warnings};
use crate::draft_taxonomy::TaxonomyDiagnostic;
use crate::taxonomy_editor::{TaxonomyEditor, busy};
use crate::taxonomy_file_store::{ReplaceError, Replacement};

// The text avoids the word stem that clients scan for (Z-5).
const DESCRIPTION: &str = "Replace the taxonomy file: validates the text, writes it, keeps the previous content as a \
numbered backup, and loads the new categories before it returns. Nothing is written if the text has errors or if the \
file has changed since the given version.";

/// Training on many examples takes longer than the default tool timeout.
const TOOL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(300);

#[derive(Debug, Deserialize, JsonSchema)]
struct SaveTaxonomyInput {
    /// Complete taxonomy in the format of the file; at most 1 MiB
    text: String,
    /// Version from get_taxonomy that was edited; the file is not overwritten if its version differs
    #[schemars(length(max = 100))]
    version: Option<String>,
}

/// Why the taxonomy was not saved.
struct SaveError {
    reason: &'static str,
    error: String,
    problems: Vec<TaxonomyDiagnostic>,
}

pub(super) fn tool(desk: TaxonomyEditor) -> Result<Tool, RegistrationError> {
    Tool::builder("save_taxonomy")
        .title("Save the taxonomy")
        .description(DESCRIPTION)
        .module("corbie::categories")
        .input::<SaveTaxonomyInput>()
        .output_schema(json!({
            "type": "object",
            "properties": {
                "saved": { "type": "boolean" },
                "path": { "type": "string", "description": "Path of the taxonomy file" },
                "version": { "type": "string", "description": "New version, as returned by get_taxonomy" },
                "backup": { "type": ["string", "null"], "description": "Path of the backup of the previous content; \
                    null if the content is unchanged" },
                "categories": { "type": "integer", "description": "Number of active categories" },
                "warnings": { "type": "array", "items": { "type": "object" }, "description": "Warnings about the taxonomy" },
                "reason": {
                    "type": "string", "enum": ["invalid", "conflict", "unwritable", "no_file", "unavailable"],
                    "description": "Reason why nothing was saved",
                },
                "error": { "type": "string", "description": "Error message with the next step" },
                "problems": { "type": "array", "items": { "type": "object" }, "description": "Errors in the text" },
            },
            "required": ["saved"],
        }))
        .effect(Effect::Destroys)
        .timeout(TOOL_TIMEOUT)
        .dialect(render_error)
        .run(move |context: corbie_mcp::Context, arguments: Arguments| {
            let desk = desk.clone();
            async move {
                let saved = save(&desk, context.server(), arguments.parse()?).await?;
                Ok::<_, ToolError>(match saved {
                    Ok(saved) => CallResult::json(saved),
                    Err(refusal) => CallResult { is_error: true, ..CallResult::json(refusal.to_output()) },
                })
            }
        })
}

async fn save(
    desk: &TaxonomyEditor,
    server: &Server,
    input: SaveTaxonomyInput,
) -> Result<Result<Value, SaveError>, ToolError> {
    let SaveTaxonomyInput { text, version } = input;
    let (file, new_file) = (desk.file(), desk.new_file());
    let is_new = file.is_none();
    let Some(file) = file.or(new_file) else { return Ok(Err(SaveError::new("no_file", NO_FILE))) };
    let taxonomy = match desk.check(text.clone()).await.map_err(busy)? {
        Ok(taxonomy) => taxonomy,
        Err(problems) => {
            let error = "the taxonomy has errors and was not saved; fix the errors and save again";
            return Ok(Err(SaveError { problems, ..SaveError::new("invalid", error) }));
        }
    };
    let replaced = match is_new {
        true => desk.create(file.clone(), text, version).await,
        false => desk.replace(file.clone(), text, version).await,
    };
    let replaced = match replaced {
        Ok(replaced) => replaced,
        Err(why @ ReplaceError::Conflict) => return Ok(Err(SaveError::new("conflict", why.to_string()))),
        Err(why @ (ReplaceError::Unavailable(_) | ReplaceError::InDoubt(_))) => {
            return Ok(Err(SaveError::new("unavailable", why.to_string())));
        }
        Err(why @ ReplaceError::Unwritable(_)) => return Ok(Err(SaveError::new("unwritable", why.to_string()))),
    };
    let mut warnings = warnings(&taxonomy, desk);
    let published = desk.reload(server).await.map_err(|error| {
        let message = format!("the file was saved but could not be activated: {error}");
        ToolError::new("reload_failed", message)
    })?;
    warnings.extend(published.impairment().map(TaxonomyDiagnostic::warning));
    Ok(Ok(saved_output(file, replaced, published.taxonomy.active_categories().count(), &warnings)))
}

fn saved_output(file: PathBuf, replaced: Replacement, categories: usize, warnings: &[TaxonomyDiagnostic]) -> Value {
    let path = std::path::absolute(&file).unwrap_or(file);
    json!({
        "saved": true,
        "path": path.display().to_string(),
        "version": replaced.version,
        "backup": replaced.backup.map(|path| path.display().to_string()),
        "categories": categories,
        "warnings": warnings,
    })
}

impl SaveError {
    fn new(reason: &'static str, error: impl Into<String>) -> SaveError {
        SaveError { reason, error: error.into(), problems: Vec::new() }
    }

    fn to_output(&self) -> Value {
        let mut told = json!({ "saved": false, "reason": self.reason, "error": self.error });
        if !self.problems.is_empty() {
            told["problems"] = json!(self.problems);
        }
        told
    }
}
