//! Tool `get_taxonomy`: the source text of the taxonomy, for reading and editing.

use corbie_mcp::{Caller, Context, Json, RegistrationError, Tool, ToolError, TrustLevel};
use schemars::JsonSchema;
use serde::Serialize;

use super::render_error;
use crate::taxonomy_editor::TaxonomyEditor;
use crate::{Taxonomy, taxonomy_file_store};
use corbie_util::fs::writable::check_writable;

// The text avoids the word stem that clients scan for (Z-5).
const DESCRIPTION: &str = "Get the source text of the active taxonomy: returns its text, path, version, and whether it \
can be changed with save_taxonomy. Text and path of a custom taxonomy are returned only to trusted callers; the text \
of the built-in taxonomy is returned to all.";

#[derive(Debug, Serialize, JsonSchema)]
struct GetTaxonomyOutput {
    /// Content of the taxonomy file, or the built-in taxonomy as a file; omitted if it cannot or must not be shown
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    text: Option<String>,
    /// Path of the file; omitted for the built-in taxonomy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    path: Option<String>,
    /// Version of the text, for save_taxonomy
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    version: Option<String>,
    /// Whether the caller may save a new text
    writable: bool,
    /// Why it may not, and how to change that
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    not_writable_reason: Option<String>,
    /// Number of categories
    categories: usize,
    /// Number of examples
    examples: usize,
    /// Error in the current file; the previous version is in use
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    problem: Option<String>,
    /// Set if prompts are categorized by another server
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    #[schemars(default)]
    external_server: Option<&'static str>,
}

/// The parts of the file that the caller may see.
struct VisibleTaxonomy {
    text: Option<String>,
    path: Option<String>,
    version: Option<String>,
    not_writable_reason: Option<String>,
    problem: Option<String>,
}

pub(super) fn tool(desk: TaxonomyEditor) -> Result<Tool, RegistrationError> {
    Tool::builder("get_taxonomy")
        .title("Get the taxonomy")
        .description(DESCRIPTION)
        .module("corbie::categories")
        .no_input()
        .output::<Json<GetTaxonomyOutput>>()
        .dialect(render_error)
        .run(move |context: Context, _| {
            let desk = desk.clone();
            async move { Ok::<_, ToolError>(Json(get(&desk, context.caller()).await?)) }
        })
}

async fn get(desk: &TaxonomyEditor, caller: &Caller) -> Result<GetTaxonomyOutput, ToolError> {
    let (file, trusted) = (desk.file(), caller.trust >= TrustLevel::Trusted);
    let refused = desk.classification().rejection();
    let shown = match file {
        None => VisibleTaxonomy::builtin(trusted && desk.new_file().is_some()),
        Some(file) => {
            // Reading the file may block.
            let looked = tokio::task::spawn_blocking(move || VisibleTaxonomy::from_file(&file, trusted));
            let failed = |_| ToolError::new("unreadable", "cannot read the taxonomy; see the server log");
            let shown = looked.await.map_err(failed)?;
            // The error contains the path, so only trusted callers get it.
            let refused = refused.map(|why| if trusted { why } else { "the taxonomy file has errors".to_owned() });
            VisibleTaxonomy { problem: shown.problem.or(refused), ..shown }
        }
    };
    let published = desk.classification().snapshot();
    let VisibleTaxonomy { text, path, version, not_writable_reason, problem } = shown;
    Ok(GetTaxonomyOutput {
        text,
        path,
        version,
        writable: not_writable_reason.is_none(),
        not_writable_reason,
        categories: published.taxonomy.active_categories().count(),
        examples: published.taxonomy.example_count(),
        problem,
        external_server: desk.external_classifier_warning(),
    })
}

impl VisibleTaxonomy {
    fn builtin(is_writable: bool) -> VisibleTaxonomy {
        let text = Taxonomy::builtin_text();
        VisibleTaxonomy {
            text: Some(text.to_owned()),
            path: None,
            version: Some(taxonomy_file_store::version(text)),
            not_writable_reason: (!is_writable).then(|| super::NO_FILE.into()),
            problem: None,
        }
    }

    fn from_file(file: &std::path::Path, trusted: bool) -> VisibleTaxonomy {
        let read = taxonomy_file_store::read(file);
        if !trusted {
            let not_writable_reason = "only callers with trust level `trusted` may read or change the taxonomy; the operator can raise the \
                 trust level";
            let problem = read.is_err().then(|| "cannot read the taxonomy file".to_owned());
            return VisibleTaxonomy {
                text: None,
                path: None,
                version: None,
                not_writable_reason: Some(not_writable_reason.into()),
                problem,
            };
        }
        let version = read.as_ref().ok().and_then(|text| text.as_deref()).map(taxonomy_file_store::version);
        let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let (text, problem) = match read {
            Ok(text) => (text, None),
            Err(why) => (None, Some(why)),
        };
        let too_large = || {
            format!("the file is larger than {} MiB; edit it directly", taxonomy_file_store::MAX_EDITABLE_BYTES >> 20)
        };
        let not_writable_reason = match (&text, &problem) {
            (None, None) => Some(too_large()),
            _ => check_writable(file).err(),
        };
        VisibleTaxonomy { text, path: Some(path.display().to_string()), version, not_writable_reason, problem }
    }
}
