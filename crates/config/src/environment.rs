//! Settings from environment variables.
//!
//! `CORBIE_SERVER__TOOL_TIMEOUTS__CHAT` is `server.tool_timeouts.chat`: names are converted to lower case, and two
//! underscores separate levels, so that a key may contain single ones.

use std::collections::BTreeMap;

use serde_json::Value;

use super::coerce::coerce;
use super::diagnostic::{Diagnostic, Diagnostics, KeyPath, Origin, Segment};
use super::layers::CONFIG_VARIABLE;
use super::schema;
use super::spanned_value::SpannedValue;

const PREFIX: &str = "CORBIE_";

/// Variables with dedicated names. An empty value counts as unset, and a `CORBIE_` variable for the same key takes
/// precedence.
const VARIABLE_ALIASES: [(&str, &str); 8] = [
    ("LOG_LEVEL", "log.level"),
    ("LOG_FORMAT", "log.format"),
    ("MCP_API_KEY", "server.token"),
    ("OPENAI_API_KEY", "providers.openai.api_key"),
    ("ANTHROPIC_API_KEY", "providers.anthropic.api_key"),
    ("GOOGLE_API_KEY", "providers.google.api_key"),
    ("DEFAULT_PROVIDER", "defaults.provider"),
    ("DEFAULT_MODEL", "defaults.model"),
];

/// The settings in `variables`. Warns about variables that look like settings but are none.
pub(super) fn read(variables: &BTreeMap<String, String>, schema: &Value, findings: &mut Diagnostics) -> SpannedValue {
    let mut tree = SpannedValue::empty(Origin::variable(PREFIX));
    let mut set = |name: &str, path: KeyPath, text: &str| {
        let leaf = coerce(text, schema::schema_at(schema, &path.0), Origin::variable(name));
        tree.merge(SpannedValue::nested(&path, leaf));
    };

    for (name, key) in VARIABLE_ALIASES {
        if let Some(text) = variables.get(name).filter(|text| !text.is_empty()) {
            set(name, KeyPath::dotted(key), text);
        }
    }
    for (name, text) in variables {
        let key = name.strip_prefix(PREFIX).filter(|key| !key.is_empty() && name != CONFIG_VARIABLE);
        let Some(key) = key else {
            continue;
        };
        let path = KeyPath(key.split("__").map(|key| Segment::Key(key.to_ascii_lowercase())).collect());
        // Kubernetes sets `CORBIE_PORT` and similar variables for a service of that name, which must not prevent the
        // start. A misspelt section with keys below it is an error.
        if path.0.len() == 1 && schema::schema_at(schema, &path.0).is_none() {
            let message = "is not a known setting and is ignored";
            findings.warnings.push(Diagnostic::at(Origin::variable(name), KeyPath::default(), message));
            continue;
        }
        set(name, path, text);
    }
    tree
}
