//! Settings that take effect in a project file that the user has not approved.
//!
//! MCP clients start corbie in folders with untrusted content. A file there must not start a program, set a URL, a
//! header, a path or an environment variable, listen, widen trust, access or limits, watch, store or log. Everything
//! that is not explicitly allowed here is ignored.

use super::diagnostic::{Diagnostics, KeyPath, Segment};
use super::spanned_value::{SpannedValue, ValueData};
use super::validate::validate;

/// Treatment of a setting in an unapproved file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    Allowed,
    Ignored,
}

use Treatment::{Allowed, Ignored};

/// Every key of the schema; `*` matches any key of a map, and a list is one key. A test fails when a key is missing. An
/// allowed key must be harmless with every value that the schema accepts, because it overrides the user's own.
const KEYS: &[(&str, Treatment)] = &[
    // Listeners, credentials, limits and rates. `name` is free text that clients show to a person and to a model.
    ("server.listen", Ignored),
    ("server.socket_mode", Ignored),
    ("server.tls.certificate", Ignored),
    ("server.tls.key", Ignored),
    ("server.name", Ignored),
    ("server.auth", Ignored),
    ("server.token", Ignored),
    ("server.tokens_file", Ignored),
    ("server.trusted_proxies", Ignored),
    ("server.oauth.issuer", Ignored),
    ("server.oauth.resource", Ignored),
    ("server.oauth.audiences", Ignored),
    ("server.oauth.jwks_url", Ignored),
    ("server.oauth.scopes.*", Ignored),
    ("server.oauth.clock_skew", Ignored),
    ("server.oauth.algorithms", Ignored),
    ("server.allowed_origins", Ignored),
    ("server.allowed_hosts", Ignored),
    // Which tools a model gets to see.
    ("server.tools", Ignored),
    ("server.limits.max_message_bytes", Ignored),
    ("server.limits.max_batch", Ignored),
    ("server.limits.max_json_depth", Ignored),
    ("server.limits.max_header_bytes", Ignored),
    ("server.limits.max_connections", Ignored),
    ("server.limits.max_connections_per_address", Ignored),
    ("server.limits.max_in_flight", Ignored),
    ("server.limits.max_concurrent", Ignored),
    ("server.limits.max_concurrent_per_caller", Ignored),
    ("server.limits.max_queued", Ignored),
    ("server.limits.max_queue_wait", Ignored),
    ("server.limits.max_body_memory", Ignored),
    ("server.limits.request_read_timeout", Ignored),
    ("server.limits.idle_timeout", Ignored),
    ("server.limits.write_timeout", Ignored),
    ("server.limits.keep_alive_interval", Ignored),
    ("server.limits.client_response_timeout", Ignored),
    ("server.limits.max_sessions", Ignored),
    ("server.limits.session_idle_timeout", Ignored),
    ("server.limits.page_size", Ignored),
    ("server.tool_timeout_seconds", Ignored),
    ("server.tool_timeouts.*", Ignored),
    ("server.shutdown_grace_seconds", Ignored),
    ("server.rate_limit.per_second", Ignored),
    ("server.rate_limit.burst", Ignored),
    ("server.global_rate_limit.per_second", Ignored),
    ("server.global_rate_limit.burst", Ignored),
    ("server.console", Ignored),
    // What callers may do.
    ("trust.stdio", Ignored),
    ("trust.loopback", Ignored),
    ("trust.remote", Ignored),
    ("trust.token", Ignored),
    ("trust.confirm_destructive", Ignored),
    ("trust.all", Ignored),
    // How long clients keep a list of tools after access has changed.
    ("registry.cache_ttl", Ignored),
    // Model files, and vectors that would not fit those in the store.
    ("inference.embedding.path", Ignored),
    ("inference.embedding.pooling", Ignored),
    ("inference.embedding.query_prefix", Ignored),
    ("inference.embedding.passage_prefix", Ignored),
    ("inference.embedding.max_tokens", Ignored),
    ("inference.device", Ignored),
    ("inference.threads", Ignored),
    ("inference.max_queued", Ignored),
    ("inference.timeout", Ignored),
    // Programs, URLs, headers and files; and everything that decides which category a prompt gets, because
    // `router.restricted_categories` keeps prompts of a category on this machine.
    ("classification.taxonomy", Ignored),
    ("classification.method", Ignored),
    ("classification.model.path", Ignored),
    ("classification.model.max_tokens", Ignored),
    ("classification.max_text_length", Ignored),
    ("classification.max_batch", Ignored),
    ("classification.cache_entries", Ignored),
    ("classification.watch", Ignored),
    ("classification.stable_indices", Ignored),
    ("classification.type", Ignored),
    ("classification.mcp_server.url", Ignored),
    ("classification.mcp_server.transport", Ignored),
    ("classification.mcp_server.tools.classify", Ignored),
    ("classification.mcp_server.tools.list_categories", Ignored),
    ("classification.mcp_server.timeout", Ignored),
    ("classification.mcp_server.max_retries", Ignored),
    ("classification.mcp_server.cache_categories", Ignored),
    ("classification.mcp_server.refresh_interval", Ignored),
    ("classification.mcp_server.headers.*", Ignored),
    ("classification.mcp_server.command", Ignored),
    ("classification.mcp_server.args", Ignored),
    ("classification.mcp_server.env.*", Ignored),
    ("classification.num_categories", Ignored),
    ("classification.confidence_threshold", Ignored),
    ("classification.fallback_category", Ignored),
    // Receivers of keys and prompts, and costs.
    ("providers.required", Ignored),
    ("providers.detect_ports", Ignored),
    ("providers.*.type", Ignored),
    ("providers.*.api_key", Ignored),
    ("providers.*.api_keys", Ignored),
    ("providers.*.base_url", Ignored),
    ("providers.*.default_model", Ignored),
    ("providers.*.headers.*", Ignored),
    ("providers.*.timeout", Ignored),
    ("providers.*.proxy", Ignored),
    ("providers.*.models.*.price.input", Ignored),
    ("providers.*.models.*.price.output", Ignored),
    ("providers.*.models.*.price.cached", Ignored),
    ("providers.*.models.*.capabilities.unsupported_parameters", Ignored),
    ("providers.*.models.*.capabilities.context", Ignored),
    ("providers.*.models.*.capabilities.output", Ignored),
    ("providers.*.models.*.capabilities.images", Ignored),
    ("providers.*.models.*.capabilities.tools", Ignored),
    ("providers.*.models.*.capabilities.reasoning", Ignored),
    ("providers.*.models.*.capabilities.structured_output", Ignored),
    ("defaults.provider", Ignored),
    ("defaults.model", Ignored),
    // Addresses that are forbidden otherwise.
    ("network.allowed_addresses", Ignored),
    // Model of a prompt, system prompt, cache and budget.
    ("router.enabled", Ignored),
    ("router.system_prompt", Ignored),
    ("router.reasoning_effort", Ignored),
    ("router.failover", Ignored),
    ("router.replace_pinned", Ignored),
    ("router.models.*", Ignored),
    ("router.restricted_categories", Ignored),
    ("router.fallbacks.*", Ignored),
    ("router.timeout", Ignored),
    ("router.stream_timeout", Ignored),
    ("router.budget.tokens_per_day", Ignored),
    ("router.budget.cost_per_day", Ignored),
    ("router.policies.*.enabled", Ignored),
    ("router.policies.*.default_model", Ignored),
    ("router.policies.*.models.*", Ignored),
    ("router.policies.*.fallbacks.*", Ignored),
    ("router.policies.*.system_prompt", Ignored),
    ("router.policies.*.reasoning_effort", Ignored),
    ("router.policies.*.failover", Ignored),
    ("router.cache.exact", Ignored),
    ("router.cache.semantic", Ignored),
    ("router.cache.threshold", Ignored),
    ("router.cache.ttl", Ignored),
    ("router.cache.max_bytes", Ignored),
    ("router.grounding.enabled", Ignored),
    ("router.grounding.knowledge_base", Ignored),
    ("router.grounding.answered_above", Ignored),
    ("router.grounding.unanswered_below", Ignored),
    ("router.grounding.answered_model", Ignored),
    ("router.grounding.unanswered_model", Ignored),
    ("router.grounding.passages", Ignored),
    ("router.max_decisions", Ignored),
    // Limits of the document workers.
    ("documents.workers", Ignored),
    ("documents.timeout", Ignored),
    ("documents.max_cpu_time", Ignored),
    ("documents.memory", Ignored),
    ("documents.max_file", Ignored),
    ("documents.max_pages", Ignored),
    ("documents.max_cells", Ignored),
    ("documents.max_unpacked", Ignored),
    ("documents.max_pixels", Ignored),
    // `engine` and `tesseract` start a program and `vision_model` sends images to a provider. The schema restricts a
    // language to letters, digits, `_` and `/`, so it names no file outside of Tesseract's own folder.
    ("ocr.engine", Ignored),
    ("ocr.language", Allowed),
    ("ocr.tesseract", Ignored),
    ("ocr.page_timeout", Ignored),
    ("ocr.vision_model", Ignored),
    // Reading, watching, storing and sending of files. Chunk sizes are bounded by the schema and apply to documents
    // added later. `ocr.enabled` would send images if the user has set `ocr.vision_model`.
    ("knowledge.enabled", Ignored),
    ("knowledge.storage_path", Ignored),
    ("knowledge.store", Ignored),
    ("knowledge.store_replicas", Ignored),
    ("knowledge.migration_copy", Ignored),
    ("knowledge.vector_db_path", Ignored),
    ("knowledge.embedding_model", Ignored),
    ("knowledge.chunk_size", Allowed),
    ("knowledge.chunk_overlap", Allowed),
    ("knowledge.max_file_size_mb", Ignored),
    ("knowledge.max_concurrent_tasks", Ignored),
    ("knowledge.max_queued_tasks", Ignored),
    ("knowledge.task_retention", Ignored),
    ("knowledge.ocr.enabled", Ignored),
    ("knowledge.ocr.language", Allowed),
    ("knowledge.allowed_roots", Ignored),
    ("knowledge.watch", Ignored),
    ("knowledge.watch_interval", Ignored),
    ("knowledge.notify_progress", Ignored),
    ("knowledge.upload_retention", Ignored),
    ("knowledge.max_uploads_mb", Ignored),
    ("knowledge.max_uploads_mb_per_caller", Ignored),
    // Texts of callers are logged at `debug`.
    ("log.level", Ignored),
    ("log.format", Ignored),
    ("audit.file", Ignored),
    ("audit.max_bytes", Ignored),
    ("audit.max_rotated_files", Ignored),
    ("audit.on_failure", Ignored),
    // URLs and headers.
    ("telemetry.otlp.endpoint", Ignored),
    ("telemetry.otlp.headers.*", Ignored),
    ("telemetry.otlp.service_name", Ignored),
    ("telemetry.otlp.sample_ratio", Ignored),
    ("telemetry.otlp.timeout", Ignored),
    // As `classification.mcp_server`.
    ("classifier.category_model.model_id", Ignored),
    ("classifier.mcp_category_model.enabled", Ignored),
    ("classifier.mcp_category_model.transport_type", Ignored),
    ("classifier.mcp_category_model.url", Ignored),
    ("classifier.mcp_category_model.threshold", Ignored),
    ("classifier.mcp_category_model.timeout_seconds", Ignored),
    ("classifier.mcp_category_model.tool_name", Ignored),
    ("classifier.mcp_category_model.command", Ignored),
    ("classifier.mcp_category_model.args", Ignored),
    ("classifier.mcp_category_model.env.*", Ignored),
    ("classifier.mcp_category_model.headers.*", Ignored),
];

/// Settings, including those below them, that decide who may call, what callers may reach and what they may spend. A
/// server that listens without them could serve the user's own documents and providers instead of those of the folder.
const ACCESS: &[&str] = &[
    "server.listen",
    "server.socket_mode",
    "server.tls",
    "server.auth",
    "server.token",
    "server.tokens_file",
    "server.oauth",
    "server.trusted_proxies",
    "server.rate_limit",
    "server.global_rate_limit",
    "trust",
    "knowledge.enabled",
    "knowledge.storage_path",
    "knowledge.store",
    "knowledge.allowed_roots",
    "providers",
    "defaults",
    "router",
];

/// Removes the allowed settings from an unapproved file and returns them with the keys of ignored settings. Variables
/// are not expanded: a value with a reference is ignored.
pub(super) fn allowed_settings(file: &SpannedValue, schema: &serde_json::Value) -> (SpannedValue, Vec<KeyPath>) {
    let mut allowed = SpannedValue::empty(file.origin.clone());
    let mut ignored = Vec::new();
    for (path, value) in leaves(file) {
        match is_allowed(&path) && !has_reference(value) {
            true => allowed.merge(SpannedValue::nested(&path, value.clone())),
            false => ignored.push(path),
        }
    }
    // An invalid value must not prevent the start either.
    while let Some(path) = first_invalid(&mut allowed, schema) {
        match allowed.remove(&path.0) {
            true => ignored.push(path),
            false => {
                return (
                    SpannedValue::empty(file.origin.clone()),
                    leaves(file).into_iter().map(|(path, _)| path).collect(),
                );
            }
        }
    }
    (allowed, ignored)
}

/// Every key below `node` whose value contains no keys, sorted by name. Keys without a value are omitted.
pub(super) fn leaves(node: &SpannedValue) -> Vec<(KeyPath, &SpannedValue)> {
    fn collect<'n>(path: &KeyPath, node: &'n SpannedValue, found: &mut Vec<(KeyPath, &'n SpannedValue)>) {
        match &node.data {
            // An empty map can be a setting: `mock: {}` is a provider.
            ValueData::Map(entries) if !entries.is_empty() || path.0.is_empty() => {
                entries.iter().for_each(|(key, entry)| collect(&path.key(key), &entry.node, found));
            }
            ValueData::Null => {}
            _ => found.push((path.clone(), node)),
        }
    }
    let mut found = Vec::new();
    collect(&KeyPath::default(), node, &mut found);
    found
}

/// Whether a setting takes effect in an unapproved file.
pub(super) fn is_allowed(path: &KeyPath) -> bool {
    let is_same = |pattern: &str, segment: &Segment| match segment {
        Segment::Key(key) => pattern == "*" || pattern == key,
        Segment::Index(_) => false,
    };
    let matches = |pattern: &str| {
        let mut patterns = pattern.split('.');
        let begins = path.0.iter().all(|segment| patterns.next().is_some_and(|pattern| is_same(pattern, segment)));
        begins && patterns.next().is_none()
    };
    KEYS.iter().find(|(pattern, _)| matches(pattern)).is_some_and(|(_, treatment)| *treatment == Allowed)
}

/// Whether a setting decides who may call, or what callers may reach and spend. A server that listens without it could
/// serve more than its operator intended.
pub(super) fn is_about_access(path: &KeyPath) -> bool {
    ACCESS.iter().any(|key| path.0.starts_with(&KeyPath::dotted(key).0))
}

/// Whether a value contains a reference to a variable, or an escaped one.
pub(super) fn has_reference(value: &SpannedValue) -> bool {
    match &value.data {
        ValueData::String(text) => text.contains("${"),
        ValueData::List(items) => items.iter().any(has_reference),
        ValueData::Map(entries) => entries.values().any(|entry| has_reference(&entry.node)),
        ValueData::Null | ValueData::Bool(_) | ValueData::Number(_) => false,
    }
}

fn first_invalid(settings: &mut SpannedValue, schema: &serde_json::Value) -> Option<KeyPath> {
    if leaves(settings).is_empty() {
        return None;
    }
    let mut findings = Diagnostics::default();
    validate(settings, schema, &mut findings);
    findings.errors.into_iter().next().map(|mistake| mistake.path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Value, json};

    use super::super::diagnostic::Origin;
    use super::*;

    /// All keys of a schema, in the form of [`KEYS`].
    fn keys_of(schema: &Value, prefix: &str, found: &mut BTreeSet<String>) {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let others = schema.get("additionalProperties").filter(|others| others.is_object());
        let others = others.map(|others| ("*".to_owned(), others));
        let mut is_leaf = true;
        for (key, below) in properties.map(|(key, below)| (key.clone(), below)).chain(others) {
            is_leaf = false;
            keys_of(below, &format!("{prefix}.{key}"), found);
        }
        if is_leaf {
            found.insert(prefix.trim_start_matches('.').to_owned());
        }
    }

    #[test]
    fn x46_every_key_of_the_schema_is_classified() {
        let mut of_schema = BTreeSet::new();
        keys_of(super::super::schema(), "", &mut of_schema);
        let classified: BTreeSet<String> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
        assert_eq!(classified.len(), KEYS.len(), "a key is classified twice");
        let missing: Vec<&String> = of_schema.difference(&classified).collect();
        assert!(
            missing.is_empty(),
            "classify in crates/config/src/unapproved_settings.rs, as `Ignored` when in doubt: {missing:?}"
        );
        let gone: Vec<&String> = classified.difference(&of_schema).collect();
        assert!(gone.is_empty(), "these are no settings any more: {gone:?}");
    }

    #[test]
    fn x46_s06_settings_that_restrict_callers_keep_a_server_from_listening() {
        let is_about_access = |key: &str| super::is_about_access(&KeyPath::dotted(key));
        for key in [
            "server.auth",
            "server.oauth.issuer",
            "server.rate_limit.per_second",
            "trust.loopback",
            "knowledge.enabled",
            "knowledge.storage_path",
            "knowledge.store",
            "knowledge.allowed_roots",
            "providers.mock.type",
            "defaults.model",
            "router.enabled",
            "router.budget.cost_per_day",
            "router.restricted_categories",
        ] {
            assert!(is_about_access(key), "{key}");
        }
        for key in ["knowledge.chunk_size", "knowledge.watch", "server.name", "log.level", "ocr.language"] {
            assert!(!is_about_access(key), "{key}");
        }
        for key in ACCESS {
            let is_below = |known: &str| known == *key || known.starts_with(&format!("{key}."));
            assert!(KEYS.iter().any(|(known, _)| is_below(known)), "{key} is no setting");
        }
    }

    fn split(settings: Value) -> (Value, Vec<String>) {
        let file = SpannedValue::from_json(settings, Origin::command_line());
        let (allowed, ignored) = allowed_settings(&file, super::super::schema());
        (allowed.to_json(), ignored.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn x46_an_unapproved_file_gives_allowed_settings_alone() {
        let (allowed, ignored) = split(json!({
            "knowledge": { "chunk_size": 300, "watch": [{ "path": "/home" }], "ocr": { "language": "deu" } },
            "providers": { "openai": { "base_url": "http://evil.example" }, "ocr": { "language": "deu" } },
            "server": null, "trust": { "stdio": "trusted" }, "new": { "key": 1, "empty": {} },
        }));
        assert_eq!(allowed, json!({ "knowledge": { "chunk_size": 300, "ocr": { "language": "deu" } } }));
        let expected = [
            "knowledge.watch",
            "new.empty",
            "new.key",
            "providers.ocr.language",
            "providers.openai.base_url",
            "trust.stdio",
        ];
        assert_eq!(ignored, expected);
    }

    #[test]
    fn x46_values_with_references_and_wrong_values_are_ignored() {
        let (allowed, ignored) = split(json!({
            "ocr": { "language": "${HOME}" },
            "knowledge": { "chunk_size": "many", "chunk_overlap": 10, "ocr": { "language": "../evil" } },
        }));
        assert_eq!(allowed["knowledge"], json!({ "chunk_overlap": 10, "ocr": {} }));
        assert_eq!(ignored.len(), 3, "{ignored:?}");
        for odd in [json!({ "ocr": { "language": ["eng"] } }), json!({ "knowledge": { "chunk_size": {"a": 1} } })] {
            assert_eq!(split(odd.clone()).1.len(), 1, "{odd}");
        }
    }
}
