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
mod digests;
pub(crate) mod document;
pub mod documents;
pub mod duration;
mod environment;
mod expand;
mod external;
pub mod grounding;
pub mod headers;
pub mod inference;
pub mod knowledge;
mod layers;
pub mod limits;
pub mod log;
mod mask;
pub mod mcp_server;
pub mod network;
pub mod oauth;
pub mod ocr;
mod paths;
pub mod policy;
mod problem;
pub mod program;
mod project;
pub mod providers;
mod read;
pub mod registry;
mod renamed;
pub mod router;
mod schema;
pub mod secret;
pub mod server;
pub mod size;
pub mod socket_mode;
mod suggest;
pub mod telemetry;
pub mod tls;
mod token_strength;
mod tree;
pub mod trust;
mod typed;
mod unapproved;
mod validate;
mod wording;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use approvals::{ApprovalError, ApprovalFile, Approvals, ContentHash, place as approved_place};
pub use digests::Digests;
pub use external::{ClassificationPolicy, Mistake};
pub use layers::{Approval, Layer, Scope, Sources, State, search};
pub use problem::{ConfigError, KeyPath, Origin, Position, Problem, Segment, Source};
pub use project::{Candidate, WrittenKey, candidate, content_hash};
pub(crate) use read::Kind;
pub use read::MAX_FILE_BYTES;
pub(crate) use schema::derive;
pub use schema::schema;

use expand::expand;
use problem::Findings;
use project::ApprovedContent;
use tree::{Data, Node};
use typed::typed;
use validate::validate;

/// The settings of corbie. Every key may be left out.
#[derive(Debug, Clone, Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "corbie")]
pub struct Config {
    pub server: server::Server,
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
pub struct Loaded {
    pub config: Config,
    /// Diagnostics that do not prevent the start; logged at startup.
    pub warnings: Vec<Problem>,
    /// All locations searched for files, highest precedence first.
    pub layers: Vec<Layer>,
    /// The sources, for reloading.
    pub sources: Sources,
    tree: Node,
    digests: Digests,
    /// The approved content of the project file that is in effect.
    in_force: Option<Arc<ApprovedContent>>,
    not_to_listen: Option<Problem>,
}

impl Config {
    /// Loads, merges and validates all sources, including constraints between settings.
    pub fn load(sources: Sources) -> Result<Loaded, ConfigError> {
        Self::load_after(sources, None)
    }

    fn load_after(sources: Sources, in_force: Option<&Arc<ApprovedContent>>) -> Result<Loaded, ConfigError> {
        let schema = schema();
        let Gathered { mut tree, mut findings, layers, in_force, not_to_listen } = gather(&sources, in_force, schema);
        validate(&mut tree, schema, &mut findings);

        let Findings { mistakes, warnings } = findings;
        if !mistakes.is_empty() {
            return Err(ConfigError::sorted(mistakes));
        }
        // The schema is generated from the types and uses their parsers, so this cannot fail. The error of serde is
        // omitted because it may quote a value.
        let mut config = Config::deserialize(tree.to_json()).map_err(|_| Problem {
            origin: None,
            path: KeyPath::default(),
            message: "the settings fit the schema but cannot be read; please report this".into(),
            suggestion: None,
        })?;
        config.resolve_paths(&tree, &sources);
        let digests = Digests::of(&tree);
        // The types now hold the values and protect secrets; the tree is kept for its source spans.
        tree.forget_values();
        let mut loaded = Loaded { config, warnings, layers, sources, tree, digests, in_force, not_to_listen };
        loaded.warnings.extend(loaded.weak_token(false));
        let mut mistakes = loaded.config.external_classifier().err().unwrap_or_default();
        mistakes.extend(loaded.config.server.oauth.as_ref().map(oauth::OAuth::mistakes).unwrap_or_default());
        mistakes.extend(loaded.config.providers.mistakes());
        mistakes.extend(loaded.config.telemetry.mistakes());
        mistakes.extend(loaded.config.forbidden_addresses());
        mistakes.extend(loaded.config.knowledge.mistakes(&loaded.config.inference));
        if mistakes.is_empty() {
            return Ok(loaded);
        }
        let problems = mistakes.into_iter().map(|mistake| loaded.problem(mistake.path, mistake.message));
        Err(ConfigError::sorted(problems.collect()))
    }
}

/// The token file, also if other settings are invalid: revoking a token must still be possible.
pub fn tokens_file(sources: &Sources) -> Option<PathBuf> {
    let tree = gather(sources, None, schema()).tree;
    let key = KeyPath::dotted("server.tokens_file");
    let written = tree.get(&key.0).map(Node::to_json);
    let written = written.and_then(|path| path.as_str().map(PathBuf::from)).map(|mut path| {
        paths::resolve(&mut path, &key, &tree, sources);
        path
    });
    written.or_else(|| Config::default().tokens_file())
}

/// Whether a shared database is configured, also if other settings are invalid.
pub fn names_database(sources: &Sources) -> bool {
    let tree = gather(sources, None, schema()).tree;
    tree.get(&KeyPath::dotted("knowledge.store").0).is_some()
}

/// All locations searched for files, highest precedence first, and whether project files are approved.
pub fn layers(sources: &Sources) -> Vec<Layer> {
    gather(sources, None, schema()).layers
}

impl Config {
    /// The token file; `None` if the user's data folder is unknown.
    pub fn tokens_file(&self) -> Option<PathBuf> {
        self.server.tokens_file.clone().or_else(|| Some(knowledge::data_folder()?.join("corbie").join("tokens.json")))
    }
}

impl Loaded {
    /// Reloads the same sources. If a project file has changed without approval, its approved content stays in effect.
    pub fn load_again(&self) -> Result<Loaded, ConfigError> {
        Config::load_after(self.sources.clone(), self.in_force.as_ref())
    }

    /// Fails if the token can be guessed, or if an unapproved project file restricts callers: listening without these
    /// settings could serve callers that the file excludes.
    pub fn check_may_listen(&self) -> Result<(), ConfigError> {
        self.check_token(false)?;
        self.not_to_listen.clone().map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// Fails if `server.token` guards a listener and can be guessed. This is only a warning for commands that do not
    /// listen. `is_required` is whether an open listener requires a token, independently of these settings.
    pub fn check_token(&self, is_required: bool) -> Result<(), ConfigError> {
        self.weak_token(is_required).map_or(Ok(()), |problem| Err(problem.into()))
    }

    fn weak_token(&self, is_required: bool) -> Option<Problem> {
        let weak = self.config.server.weak_token(is_required);
        weak.map(|Mistake { path, message }| self.problem(path, message))
    }

    /// Whether a warning is about a weak token.
    pub fn is_about_token(&self, warning: &Problem) -> bool {
        self.weak_token(false).as_ref() == Some(warning)
    }

    /// Warnings about one file.
    pub fn warnings_about(&self, file: &Path) -> impl Iterator<Item = &Problem> {
        self.warnings.iter().filter(move |warning| warning.is_about(file))
    }

    /// The files in effect for the log, highest precedence first, with their approval.
    pub fn files(&self) -> String {
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
    pub fn digests(&self) -> &Digests {
        &self.digests
    }

    /// An error that is detected when a setting is used, such as a port in use. Contains the key (`server.listen`) and
    /// its location.
    pub fn mistake(&self, key: &str, message: impl Into<String>) -> ConfigError {
        self.problem(KeyPath::dotted(key), message.into()).into()
    }

    fn problem(&self, path: KeyPath, message: String) -> Problem {
        let written = self.tree.get(&path.0).is_some();
        let origin = written.then(|| self.tree.key_origin(&path));
        Problem { origin, path, message, suggestion: None }
    }
}

/// The merged sources.
struct Gathered {
    tree: Node,
    findings: Findings,
    layers: Vec<Layer>,
    in_force: Option<Arc<ApprovedContent>>,
    not_to_listen: Option<Problem>,
}

/// Merges all sources, lowest precedence first, and collects diagnostics.
fn gather(sources: &Sources, in_force: Option<&Arc<ApprovedContent>>, schema: &Value) -> Gathered {
    let mut merged = Node::empty(Origin::command_line());
    let mut findings = Findings::default();
    let mut layers = search(sources);
    let (mut now_in_force, mut not_to_listen) = (None, None);
    let mut add = |mut tree: Node, findings: &mut Findings| {
        set_aside(&mut tree);
        // Values with references to variables have already been removed from an unapproved file.
        if matches!(tree.origin.source, Source::File(_)) {
            findings.mistakes.extend(expand(&mut tree, &sources.variables, schema));
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
                not_to_listen = read.not_to_listen;
                if let Some(tree) = read.settings {
                    add(tree, &mut findings);
                }
            }
            State::Active => match read::file(&layer.path, read::CONFIGURATION) {
                Ok(tree) => add(tree, &mut findings),
                Err(problems) => findings.mistakes.extend(problems),
            },
            State::Shadowed => {
                let message = "is not read, because another file in this folder comes first";
                findings.warnings.push(Problem::with_source(Source::File(layer.path.as_path().into()), message));
            }
            State::Absent | State::Skipped => {}
        }
    }
    let variables = environment::read(&sources.variables, schema, &mut findings);
    add(variables, &mut findings);
    for (key, value) in &sources.overrides {
        let path = KeyPath::dotted(key);
        let leaf = match value {
            Value::String(text) => typed(text, schema::at(schema, &path.0), Origin::command_line()),
            value => Node::from_json(value.clone(), Origin::command_line()),
        };
        add(Node::nested(&path, leaf), &mut findings);
    }
    Gathered { tree: merged, findings, layers, in_force: now_in_force, not_to_listen }
}

/// Removes `$schema`, which is for editors and not a setting.
fn set_aside(tree: &mut Node) {
    if let Data::Map(entries) = &mut tree.data {
        entries.remove("$schema");
    }
}
