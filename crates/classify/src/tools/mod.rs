//! Classification tools, one file each, and their error format.

mod batch_categorize;
mod check_taxonomy;
mod classify_text;
mod evaluate_categories;
mod get_taxonomy;
mod list_categories;
mod save_taxonomy;

use corbie_mcp::{
    CallResult, Caller, Error, FailedCall, FailureCause, Json, RequestStyle, Resource, ResourceContents, ServerBuilder,
    Tool, ToolBuilder, ToolError, TrustLevel,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

pub use classify_text::{CategoryScore, ClassifyTextOutput, DecidingRules};

use super::draft_taxonomy::{self, TaxonomyDiagnostic};
use super::taxonomy_editor::{EditorContext, TaxonomyEditor};
use super::{Classification, Taxonomy, reload};
use corbie_util::sanitize::without_folders;

/// Hint for a configuration without a taxonomy file.
const NO_FILE: &str = "the built-in taxonomy is read-only; create a file with `corbie taxonomy new --out \
taxonomy.yaml` and set `classification.taxonomy: taxonomy.yaml` in the configuration";

/// Registers the tools and the categories resource on a server.
pub fn register(builder: ServerBuilder, classification: &Classification, around: EditorContext) -> ServerBuilder {
    let desk = TaxonomyEditor::new(classification.clone(), around);
    builder
        .tool(list_categories::tool(classification.clone()))
        .tool(classify_text::tool(classification.clone()))
        .tool(batch_categorize::tool(classification.clone()))
        .tool(get_taxonomy::tool(desk.clone()))
        .tool(check_taxonomy::tool(desk.clone()))
        .tool(save_taxonomy::tool(desk.clone()))
        .tool(evaluate_categories::tool(desk))
        .resource(categories(classification.clone()))
}

/// The response of `list_categories` as a resource, for clients that prefer reading to calling.
fn categories(classification: Classification) -> Resource {
    let read = move |_| {
        let listing = classification.snapshot().listing.to_string();
        std::future::ready(Ok(vec![ResourceContents::text(reload::CATEGORIES_URI, "application/json", listing)]))
    };
    Resource::new(reload::CATEGORIES_URI, "categories", read).mime_type("application/json")
}

/// Builder of a read-only tool that is expensive and therefore restricted.
fn expensive_tool<Input: JsonSchema, Output: Serialize + JsonSchema>(
    name: &str,
    title: &str,
    description: &str,
) -> ToolBuilder {
    Tool::builder(name)
        .title(title)
        .description(description)
        .module("corbie::categories")
        .input::<Input>()
        .output::<Json<Output>>()
        .min_trust(TrustLevel::Verified)
        .idempotent(true)
        .dialect(render_error)
}

/// Warnings about a valid taxonomy.
fn warnings(taxonomy: &Taxonomy, desk: &TaxonomyEditor) -> Vec<TaxonomyDiagnostic> {
    let elsewhere = desk.external_classifier_warning().map(|why| TaxonomyDiagnostic::warning(why.to_owned()));
    draft_taxonomy::warnings(taxonomy).into_iter().chain(elsewhere).collect()
}

/// Whether a caller may see the examples and rules of a taxonomy. A custom taxonomy may be private; the built-in one is
/// public.
fn may_see_examples(caller: &Caller, taxonomy: &Taxonomy) -> bool {
    taxonomy.path.is_none() || caller.trust >= TrustLevel::Trusted
}

/// Formats failures as docs/spec requires: `{"error":"…"}`. Requests in its own styles get no `isError`, all other
/// requests do. A failure never carries a class, so a client that overlooks it cannot mistake it for a result
/// (Z-3).
fn render_error(failure: &FailedCall<'_>, style: RequestStyle) -> Result<CallResult, Error> {
    let message = match failure.cause {
        FailureCause::Library(error) if style == RequestStyle::Standard && !is_argument_error(error) => {
            return Err(error.clone());
        }
        FailureCause::Library(Error::Schema { violations, .. }) => {
            let each = violations.iter().map(|violation| match violation.path.trim_start_matches('/') {
                "" => violation.message.clone(),
                argument => format!("`{argument}`: {}", violation.message),
            });
            each.collect::<Vec<_>>().join("; ")
        }
        FailureCause::Library(error) => error.to_string(),
        FailureCause::Tool { message, .. } if failure.trust < TrustLevel::Trusted => without_folders(message),
        FailureCause::Tool { message, .. } => message.clone(),
    };
    let text = json!({ "error": message }).to_string();
    Ok(CallResult { is_error: style == RequestStyle::Standard, ..CallResult::text(text) })
}

fn is_argument_error(error: &Error) -> bool {
    matches!(error, Error::Schema { .. } | Error::Validation(_))
}

impl From<super::InvalidText> for ToolError {
    fn from(unfit: super::InvalidText) -> ToolError {
        ToolError::new("invalid_text", unfit.to_string())
    }
}
