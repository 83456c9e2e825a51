//! Configuration: sources, merging, validation and the settings types.
//!
//! Sources in order of precedence: flags, environment variables, the project file, the user file, the system file,
//! defaults. Each source becomes a tree with source spans. The merged tree is validated against the JSON Schema that is
//! generated from the types below, and then deserialized into [`Config`]. All errors are reported, not only the first.
//!
//! A file in the working folder may be untrusted. Until the user approves its content, only the settings that
//! `unapproved.rs` allows take effect.
//!
//! A new section needs a type in a separate file, a field of [`Config`], and a row for each key in `unapproved.rs`.

pub mod address;
mod approvals;
pub mod audit;
pub mod cache;
pub mod classification;
pub mod classifier;
mod coerce;
mod diagnostic;
pub mod documents;
pub mod duration;
pub mod effort;
pub mod egress_policy;
mod environment;
mod expand;
pub mod external_classifier;
mod fingerprint;
pub mod grounding;
pub mod headers;
pub mod inference;
pub mod knowledge;
mod layers;
pub mod limits;
pub mod log;
mod mask;
pub mod mcp_server;
pub mod model_capabilities;
pub mod network;
pub mod oauth;
pub mod ocr;
mod paths;
pub mod policy;
pub mod postgres_address;
pub mod program;
mod project;
pub mod providers;
mod read;
pub mod registry;
mod renamed;
pub mod router;
mod schema;
mod schema_text;
pub mod secret;
pub mod server;
pub mod size;
pub mod socket_mode;
pub mod source_file;
mod spanned_value;
pub mod system_prompt;
pub mod telemetry;
pub mod tls;
mod token_strength;
pub mod tool_selection;
pub mod trust;
mod unapproved_settings;
mod validate;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use approvals::{ApprovalError, ApprovalFile, Approvals, ContentHash, approval_path as approved_place};
pub use diagnostic::{ConfigError, Diagnostic, KeyPath, Origin, Position, Segment, ValueSource};
pub use external_classifier::{ClassificationPolicy, SettingDiagnostic};
pub use fingerprint::SectionFingerprints;
pub use layers::{Approval, Layer, Scope, Sources, State, search};
pub use project::{ApprovalCandidate, WrittenKey, approval_candidate, content_hash, superseded_approvals};
pub use read::FileKind;
pub use read::MAX_FILE_BYTES;
pub use schema::derive;
pub use schema::schema;

use coerce::coerce;
use diagnostic::Diagnostics;
use expand::expand;
use project::ApprovedContent;
use spanned_value::{SpannedValue, ValueData};
use validate::validate;

/// The settings of corbie. Every key may be left out.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "corbie")]
pub struct Config {
    pub server: server::ServerConfig,
    pub trust: trust::Trust,
    pub registry: registry::Registry,
    pub inference: inference::Inference,
    pub classification: classification::Classification,
    pub providers: providers::Providers,
    pub defaults: providers::Defaults,
    pub network: network::Network,
    pub router: router::Router,
    pub documents: documents::Documents,
    pub ocr: ocr::Ocr,
    pub knowledge: knowledge::Knowledge,
    pub log: log::Log,
    pub audit: audit::Audit,
    pub telemetry: telemetry::Telemetry,
    #[serde(skip_serializing_if = "classifier::Classifier::is_absent")]
    pub classifier: classifier::Classifier,
}

/// A valid configuration with its sources.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    pub config: Config,
    /// Diagnostics that do not prevent the start; logged at startup.
    pub warnings: Vec<Diagnostic>,
    /// All locations searched for files, highest precedence first.
    pub layers: Vec<Layer>,
    /// The sources, for reloading.
    pub sources: Sources,
    tree: SpannedValue,
    fingerprints: SectionFingerprints,
    /// The approved content of the project file that is in effect.
    in_force: Option<Arc<ApprovedContent>>,
    listen_refusal: Option<Diagnostic>,
}

/// Settings with their mistakes.
#[derive(Debug)]
pub struct CheckedConfig {
    /// The settings without the invalid ones; `None` if they cannot be used.
    pub loaded: Option<Box<LoadedConfig>>,
    pub mistakes: Vec<Diagnostic>,
}

impl Config {
    /// Loads, merges and validates all sources, including constraints between settings.
    pub fn load(sources: Sources) -> Result<LoadedConfig, ConfigError> {
        Self::load_with(sources, None)
    }

    fn load_with(sources: Sources, in_force: Option<&Arc<ApprovedContent>>) -> Result<LoadedConfig, ConfigError> {
        match Config::check_with(sources, in_force) {
            CheckedConfig { loaded: Some(loaded), mistakes } if mistakes.is_empty() => Ok(*loaded),
            CheckedConfig { mistakes, .. } => Err(ConfigError::sorted(mistakes)),
        }
    }

    /// Finds all mistakes. The settings without the invalid ones can be checked further.
    pub fn check(sources: Sources) -> CheckedConfig {
        Config::check_with(sources, None)
    }

    fn check_with(sources: Sources, in_force: Option<&Arc<ApprovedContent>>) -> CheckedConfig {
        let schema = schema();
        let MergedSources { mut tree, diagnostics: mut findings, layers, in_force, listen_refusal } =
            merge_sources(&sources, in_force, schema);
        validate(&mut tree, schema, &mut findings);

        let Diagnostics { errors: mut mistakes, warnings } = findings;
        if !remove_invalid(&mut tree, &mistakes, schema) {
            return CheckedConfig { loaded: None, mistakes };
        }
        // The schema is generated from the types and uses their parsers, so this cannot fail. The error of serde is
        // omitted because it may quote a value.
        let Ok(mut config) = Config::deserialize(tree.to_json()) else {
            mistakes.push(Diagnostic {
                origin: None,
                path: KeyPath::default(),
                message: "the settings are valid but cannot be deserialized; please report this".into(),
                suggestion: None,
            });
            return CheckedConfig { loaded: None, mistakes };
        };
        config.resolve_paths(&tree, &sources);
        config.default_taxonomy(&sources);
        let digests = SectionFingerprints::of(&tree);
        // The types now hold the values and protect secrets; the tree is kept for its source spans.
        tree.wipe_values();
        let mut loaded =
            LoadedConfig { config, warnings, layers, sources, tree, fingerprints: digests, in_force, listen_refusal };
        loaded.warnings.extend(loaded.weak_token(false));
        let mut found = loaded.config.external_classifier().err().unwrap_or_default();
        found.extend(loaded.config.server.oauth.as_ref().map(oauth::OAuth::diagnostics).unwrap_or_default());
        found.extend(loaded.config.providers.diagnostics());
        found.extend(loaded.config.server.tools.diagnostics());
        found.extend(loaded.config.telemetry.diagnostics());
        found.extend(loaded.config.denied_addresses());
        found.extend(loaded.config.knowledge.diagnostics(&loaded.config.inference));
        // A missing setting is no mistake of its own if it was removed because it is invalid.
        let is_consequence = |path: &KeyPath| {
            let overlaps = |other: &KeyPath| path.0.starts_with(&other.0) || other.0.starts_with(&path.0);
            mistakes.iter().any(|mistake| overlaps(&mistake.path))
        };
        let found: Vec<_> = found.into_iter().filter(|mistake| !is_consequence(&mistake.path)).collect();
        mistakes.extend(found.into_iter().map(|mistake| loaded.diagnostic_at(mistake.path, mistake.message)));
        CheckedConfig { loaded: Some(Box::new(loaded)), mistakes }
    }
}

/// Removes the settings that are invalid. Returns whether the others can be used: not if a whole source is invalid, which
/// may have any setting.
fn remove_invalid(tree: &mut SpannedValue, mistakes: &[Diagnostic], schema: &Value) -> bool {
    if mistakes.is_empty() {
        return true;
    }
    for mistake in mistakes {
        if mistake.path.0.is_empty() {
            return false;
        }
        tree.remove(&mistake.path.0);
    }
    let mut remaining = Diagnostics::default();
    validate(tree, schema, &mut remaining);
    remaining.errors.is_empty()
}

/// The token file, also if other settings are invalid: revoking a token must still be possible.
pub fn tokens_file(sources: &Sources) -> Option<PathBuf> {
    let tree = merge_sources(sources, None, schema()).tree;
    let key = KeyPath::dotted("server.tokens_file");
    let written = tree.get(&key.0).map(SpannedValue::to_json);
    let written = written.and_then(|path| path.as_str().map(PathBuf::from)).map(|mut path| {
        paths::resolve(&mut path, &key, &tree, sources);
        path
    });
    written.or_else(|| Config::default().tokens_file())
}

/// The user's data folder; `None` if the variables do not define it.
pub fn user_data_dir(variables: &std::collections::BTreeMap<String, String>) -> Option<PathBuf> {
    knowledge::data_dir_of(|name| variables.get(name).map(PathBuf::from))
}

/// Whether a shared database is configured, also if other settings are invalid.
pub fn has_shared_database(sources: &Sources) -> bool {
    let tree = merge_sources(sources, None, schema()).tree;
    tree.get(&KeyPath::dotted("knowledge.store").0).is_some()
}

/// All locations searched for files, highest precedence first, and whether project files are approved.
pub fn layers(sources: &Sources) -> Vec<Layer> {
    merge_sources(sources, None, schema()).layers
}

impl Config {
    /// The token file; `None` if the user's data folder is unknown.
    pub fn tokens_file(&self) -> Option<PathBuf> {
        self.server.tokens_file.clone().or_else(|| Some(knowledge::data_dir()?.join("corbie").join("tokens.json")))
    }
}

impl LoadedConfig {
    /// Reloads the same sources. If a project file has changed without approval, its approved content stays in effect.
    pub fn reload(&self) -> Result<LoadedConfig, ConfigError> {
        Config::load_with(self.sources.clone(), self.in_force.as_ref())
    }

    /// Fails if the token can be guessed, if an unapproved project file restricts callers, or if an approved one does not
    /// take effect: listening without these settings could serve callers that the file excludes.
    pub fn check_may_listen(&self) -> Result<(), ConfigError> {
        self.check_token(false)?;
        self.listen_refusal().map_or(Ok(()), |problem| Err(problem.clone().into()))
    }

    /// Why a server must not listen with these settings: a project file that restricts callers does not take effect.
    pub fn listen_refusal(&self) -> Option<&Diagnostic> {
        self.listen_refusal.as_ref()
    }

    /// Fails if `server.token` guards a listener and can be guessed. This is only a warning for commands that do not
    /// listen. `is_required` is whether an open listener requires a token, independently of these settings.
    pub fn check_token(&self, is_required: bool) -> Result<(), ConfigError> {
        self.weak_token(is_required).map_or(Ok(()), |problem| Err(problem.into()))
    }

    fn weak_token(&self, is_required: bool) -> Option<Diagnostic> {
        let weak = self.config.server.weak_token(is_required);
        weak.map(|SettingDiagnostic { path, message }| self.diagnostic_at(path, message))
    }

    /// Whether a warning is about a weak token.
    pub fn is_about_token(&self, warning: &Diagnostic) -> bool {
        self.weak_token(false).as_ref() == Some(warning)
    }

    /// Warnings about one file.
    pub fn warnings_about(&self, file: &Path) -> impl Iterator<Item = &Diagnostic> {
        self.warnings.iter().filter(move |warning| warning.is_about(file))
    }

    /// The files in effect for the log, highest precedence first, with their approval.
    pub fn files_in_effect(&self) -> String {
        let active = self.layers.iter().filter(|layer| layer.state == State::Active);
        let named = active.map(|Layer { scope, path, approval, .. }| match approval {
            Approval::NotNeeded => format!("{} ({scope})", path.display()),
            _ => format!("{} ({scope}, {approval})", path.display()),
        });
        let named: Vec<String> = named.collect();
        if named.is_empty() { "none".into() } else { named.join(", ") }
    }

    /// Whether any source sets a key, such as `log.level`.
    pub fn is_set(&self, key: &str) -> bool {
        self.tree.get(&KeyPath::dotted(key).0).is_some()
    }

    /// Fingerprints for comparison with a later version.
    pub fn fingerprints(&self) -> &SectionFingerprints {
        &self.fingerprints
    }

    /// An error that is detected when a setting is used, such as a port in use. Contains the key (`server.listen`) and
    /// its location.
    pub fn error_at(&self, key: &str, message: impl Into<String>) -> ConfigError {
        self.diagnostic_at(KeyPath::dotted(key), message.into()).into()
    }

    fn diagnostic_at(&self, path: KeyPath, message: String) -> Diagnostic {
        let written = self.tree.get(&path.0).is_some();
        let origin = written.then(|| self.tree.key_origin(&path));
        Diagnostic { origin, path, message, suggestion: None }
    }
}

/// The merged sources.
struct MergedSources {
    tree: SpannedValue,
    diagnostics: Diagnostics,
    layers: Vec<Layer>,
    in_force: Option<Arc<ApprovedContent>>,
    listen_refusal: Option<Diagnostic>,
}

/// Merges all sources, lowest precedence first, and collects diagnostics.
fn merge_sources(sources: &Sources, in_force: Option<&Arc<ApprovedContent>>, schema: &Value) -> MergedSources {
    let mut merged = SpannedValue::empty(Origin::command_line());
    let mut findings = Diagnostics::default();
    let mut layers = search(sources);
    let (mut now_in_force, mut listen_refusal) = (None, None);
    let mut add = |mut tree: SpannedValue, findings: &mut Diagnostics| {
        remove_schema_key(&mut tree);
        // Values with references to variables have already been removed from an unapproved file.
        if matches!(tree.origin.source, ValueSource::File(_)) {
            findings.errors.extend(expand(&mut tree, &sources.variables, schema));
        }
        tree.drop_nulls();
        merged.merge(tree);
    };

    for layer in layers.iter_mut().rev() {
        match layer.state {
            State::Active if layer.scope == Scope::Project => {
                let read = project::read(&layer.path, &sources.variables, in_force, schema, &mut findings);
                layer.approval = read.approval;
                now_in_force = read.in_force;
                listen_refusal = read.listen_refusal;
                if let Some(tree) = read.settings {
                    add(tree, &mut findings);
                }
            }
            State::Active => match read::file(&layer.path, read::CONFIG_FILE) {
                Ok(tree) => add(tree, &mut findings),
                Err(problems) => findings.errors.extend(problems),
            },
            State::Shadowed => {
                let message = "is ignored, because another file in this folder takes precedence";
                findings
                    .warnings
                    .push(Diagnostic::with_source(ValueSource::File(layer.path.as_path().into()), message));
            }
            State::Absent | State::Skipped => {}
        }
    }
    let is_project = sources.named_file().is_none() && layers.iter().any(|layer| layer.scope == Scope::Project);
    if is_project && listen_refusal.is_none() {
        listen_refusal = project::ignored_approval(&sources.folder, &sources.variables, now_in_force.as_deref());
    }
    let variables = environment::read(&sources.variables, schema, &mut findings);
    add(variables, &mut findings);
    for (key, value) in &sources.overrides {
        let path = KeyPath::dotted(key);
        let leaf = match value {
            Value::String(text) => coerce(text, schema::schema_at(schema, &path.0), Origin::command_line()),
            value => SpannedValue::from_json(value.clone(), Origin::command_line()),
        };
        add(SpannedValue::nested(&path, leaf), &mut findings);
    }
    MergedSources { tree: merged, diagnostics: findings, layers, in_force: now_in_force, listen_refusal }
}

/// Removes `$schema`, which is for editors and not a setting.
fn remove_schema_key(tree: &mut SpannedValue) {
    if let ValueData::Map(entries) = &mut tree.data {
        entries.remove("$schema");
    }
}
