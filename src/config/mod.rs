//! The configuration: which settings there are, and how they come together.
//!
//! Settings come from flags, the environment, the project's file, the user's file and the system's
//! file, in this order of strength, on top of the defaults. Each source becomes a tree that remembers
//! lines and columns; the merged tree is checked against the JSON Schema that is generated from the
//! types below; only then is it read into [`Config`]. Every mistake is reported, not only the first.
//!
//! A file in the working folder may be the work of others: unless the user has approved its content, only the settings
//! count that `unapproved.rs` allows.
//!
//! A new section is one type in a file of its own, one field of [`Config`], and a row for each key in `unapproved.rs`.

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
pub mod mcp_server;
pub mod network;
pub mod oauth;
pub mod ocr;
pub mod policy;
mod problem;
mod project;
pub mod providers;
mod read;
pub mod registry;
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

/// A configuration that can be used, and how it came about.
#[derive(Debug, Clone)]
pub struct Loaded {
    pub config: Config,
    /// What is odd but no reason to stop; to be logged at start.
    pub warnings: Vec<Problem>,
    /// Every place a file was looked for, strongest first.
    pub layers: Vec<Layer>,
    /// What it was made from, to make it again.
    pub sources: Sources,
    tree: Node,
    digests: Digests,
    /// The project file's content that is in force, where it was approved.
    in_force: Option<Arc<ApprovedContent>>,
    not_to_listen: Option<Problem>,
}

impl Config {
    /// Reads, merges and checks all sources; also what one setting says about another.
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
        // The schema is made from the types and checks with their parsers, so this does not fail. The
        // text of serde's error is left out because it may quote a value.
        let mut config = Config::deserialize(tree.to_json()).map_err(|_| Problem {
            origin: None,
            path: KeyPath::default(),
            message: "the settings fit the schema but cannot be read; please report this".into(),
            suggestion: None,
        })?;
        config.knowledge.find_home(&sources.variables);
        config.audit.find_home(&sources.variables);
        let digests = Digests::of(&tree);
        // What was written is in the types now, which look after their secrets; the tree still knows where.
        tree.forget_values();
        let loaded = Loaded { config, warnings, layers, sources, tree, digests, in_force, not_to_listen };
        let mut mistakes = loaded.config.external_classifier().err().unwrap_or_default();
        mistakes.extend(loaded.config.server.oauth.as_ref().map(oauth::OAuth::mistakes).unwrap_or_default());
        mistakes.extend(loaded.config.server.mistakes());
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

/// Where tokens are kept, also where other settings have mistakes: a token can be revoked all the same.
pub fn tokens_file(sources: &Sources) -> Option<PathBuf> {
    let tree = gather(sources, None, schema()).tree;
    let written = tree.get(&KeyPath::dotted("server.tokens_file").0).map(Node::to_json);
    let written = written.and_then(|path| path.as_str().map(PathBuf::from));
    written.or_else(|| Config::default().tokens_file())
}

/// Whether a database is named that others share, also where other settings have mistakes.
pub fn names_database(sources: &Sources) -> bool {
    let tree = gather(sources, None, schema()).tree;
    tree.get(&KeyPath::dotted("knowledge.store").0).is_some()
}

/// Every place a file is looked for, strongest first, and whether the user has approved those of the project.
pub fn layers(sources: &Sources) -> Vec<Layer> {
    gather(sources, None, schema()).layers
}

impl Config {
    /// Where tokens are kept; none where nobody knows the user's folders.
    pub fn tokens_file(&self) -> Option<PathBuf> {
        self.server.tokens_file.clone().or_else(|| Some(knowledge::data_folder()?.join("corbie").join("tokens.json")))
    }
}

impl Loaded {
    /// Reads the same sources once more. A project file that has changed without being approved leaves the content in
    /// force that was approved before.
    pub fn load_again(&self) -> Result<Loaded, ConfigError> {
        Config::load_after(self.sources.clone(), self.in_force.as_ref())
    }

    /// Fails where an unapproved project file says who may call: to listen without these settings could serve callers
    /// that its author meant to keep out.
    pub fn check_may_listen(&self) -> Result<(), ConfigError> {
        self.not_to_listen.clone().map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// What is odd about one file.
    pub fn warnings_about(&self, file: &Path) -> impl Iterator<Item = &Problem> {
        self.warnings.iter().filter(move |warning| warning.is_about(file))
    }

    /// The files in effect, strongest first, and whether they are approved; for the log.
    pub fn files(&self) -> String {
        let active = self.layers.iter().filter(|layer| layer.state == State::Active);
        let named = active.map(|Layer { scope, path, approval, .. }| match approval {
            Approval::NotNeeded => format!("{} ({scope})", path.display()),
            _ => format!("{} ({scope}, {approval})", path.display()),
        });
        let named: Vec<String> = named.collect();
        if named.is_empty() { "none".into() } else { named.join(", ") }
    }

    /// Whether any source names a setting, such as `log.level`.
    pub fn is_set(&self, key: &str) -> bool {
        self.tree.get(&KeyPath::dotted(key).0).is_some()
    }

    /// What was written, to be compared with what is written later.
    pub fn digests(&self) -> &Digests {
        &self.digests
    }

    /// A mistake that shows only when a setting is used, such as a port that is taken: names the key
    /// (`server.listen`) and where it is written.
    pub fn mistake(&self, key: &str, message: impl Into<String>) -> ConfigError {
        self.problem(KeyPath::dotted(key), message.into()).into()
    }

    fn problem(&self, path: KeyPath, message: String) -> Problem {
        let written = self.tree.get(&path.0).is_some();
        let origin = written.then(|| self.tree.key_origin(&path));
        Problem { origin, path, message, suggestion: None }
    }
}

/// What all sources come to.
struct Gathered {
    tree: Node,
    findings: Findings,
    layers: Vec<Layer>,
    in_force: Option<Arc<ApprovedContent>>,
    not_to_listen: Option<Problem>,
}

/// The merged tree of all sources, weakest first, and what was met on the way.
fn gather(sources: &Sources, in_force: Option<&Arc<ApprovedContent>>, schema: &Value) -> Gathered {
    let mut merged = Node::empty(Origin::command_line());
    let mut findings = Findings::default();
    let mut layers = search(sources);
    let (mut now_in_force, mut not_to_listen) = (None, None);
    let mut add = |mut tree: Node, findings: &mut Findings| {
        set_aside(&mut tree);
        // Of an unapproved file no value with a reference gets here.
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

/// An editor's `$schema` is no setting.
fn set_aside(tree: &mut Node) {
    if let Data::Map(entries) = &mut tree.data {
        entries.remove("$schema");
    }
}
