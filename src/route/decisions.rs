//! What became of the last prompts, as resources.

use corbie_mcp::{
    Context, Error, RegistrationError, Resource, ResourceContents, ResourceTemplate, TrustLevel, Variables,
};
use serde_json::json;

use super::record::Record;
use super::router::Router;

/// The newest decisions, newest first.
const DECISIONS: &str = "corbie://decisions";
/// How many of them one reading shows.
const SHOWN: usize = 100;

pub(super) fn newest(router: Router) -> Resource {
    let read = move |context: Context| {
        let records: Vec<_> =
            router.records().newest(SHOWN).into_iter().filter(|record| may_see(&context, record)).collect();
        let text = json!({ "decisions": records }).to_string();
        std::future::ready(Ok(vec![ResourceContents::text(DECISIONS, "application/json", text)]))
    };
    Resource::new(DECISIONS, "decisions", read)
        .description("How the last prompts were routed: category, rule, who was asked, time, tokens and cost")
        .mime_type("application/json")
}

pub(super) fn one(router: Router) -> Result<ResourceTemplate, RegistrationError> {
    let read = move |context: Context, uri: String, variables: Variables| {
        let id = variables.get("id").and_then(|id| id.parse().ok());
        let found =
            id.and_then(|id| router.records().get(id)).filter(|record| may_see(&context, record)).map(|record| {
                let text = serde_json::to_string(&record).expect("a record has string keys");
                vec![ResourceContents::text(uri.clone(), "application/json", text)]
            });
        std::future::ready(found.ok_or(Error::ResourceNotFound { uri }))
    };
    let template = ResourceTemplate::new(format!("{DECISIONS}/{{id}}"), "decision", read)?;
    Ok(template.description("How one prompt was routed").mime_type("application/json"))
}

/// What others asked for is for the operator, and whoever is trusted as far.
fn may_see(context: &Context, record: &Record) -> bool {
    let caller = context.caller();
    caller.trust == TrustLevel::Trusted || record.caller.as_deref() == Some(&*caller.identity)
}
