//! `knowledge`: knowledge base and its stores.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diagnostic::KeyPath;
use super::duration::Timeout;
use super::external_classifier::SettingDiagnostic;
use super::inference::Inference;
use super::postgres_address::Address;
use super::secret::SecretLine;

/// Knowledge base.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Knowledge {
    /// Enable the knowledge base and its tools.
    pub enabled: bool,
    /// Folder of the documents. Defaults to `corbie/knowledge` in the user's data folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_path: Option<PathBuf>,
    /// PostgreSQL database for the documents instead of local files: `postgres://user:password@host/name`. Requires
    /// pgvector. Several instances may share a database. Connections to remote databases use TLS unless
    /// `?sslmode=disable` is added; `?sslrootcert=PATH` sets the trusted certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<SecretLine>,
    /// Read replicas of `store`. Searches are distributed over them, and go to `store` if no replica is available.
    #[schemars(length(max = 16))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub store_replicas: Vec<SecretLine>,
    /// Folder of the search index. It is rebuilt if missing. Defaults to `index` in the storage folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector_db_path: Option<PathBuf>,
    /// Required embedding model. corbie does not start if a different model is in use. The name is the folder name of
    /// `inference.embedding.path`, which selects the model, or `all-MiniLM-L6-v2` for the built-in model. Any model if
    /// unset.
    #[schemars(length(min = 1, max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// Maximum number of tokens per chunk, counted by the embedding model.
    #[schemars(range(min = 16, max = 4096))]
    pub chunk_size: usize,
    /// Number of tokens that consecutive chunks share; at most half a chunk.
    #[schemars(range(min = 0, max = 2048))]
    pub chunk_overlap: usize,
    /// Maximum file size in MiB.
    #[schemars(range(min = 1, max = 4096))]
    pub max_file_size_mb: u64,
    /// Number of documents processed concurrently.
    #[schemars(range(min = 1, max = 64))]
    pub max_concurrent_tasks: usize,
    /// Maximum number of queued tasks.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_queued_tasks: usize,
    /// How long the status of a finished task is available; at least one hour.
    pub task_retention: Timeout,
    /// OCR of added documents.
    pub ocr: KnowledgeOcr,
    /// Folders from which files may be added. Required if the server is reachable from other machines; if unset, every
    /// file that corbie can read may be added.
    #[schemars(length(max = 100))]
    pub allowed_roots: Vec<PathBuf>,
    /// Watched folders: new, changed and deleted files are applied to the knowledge base.
    #[schemars(length(max = 100))]
    pub watch: Vec<WatchedFolder>,
    /// Interval between scans of watched folders.
    pub watch_interval: Timeout,
    /// Send progress of tasks on open streams to callers that did not request it.
    pub notify_progress: bool,
    /// Copy `knowledge.db` to `knowledge.db.schema-N` before a new version of corbie migrates it from schema N: `auto` if
    /// there is enough disk space, `required` to fail otherwise, or `off`.
    pub migration_copy: MigrationCopy,
    /// How long an uploaded file is kept before it is added.
    pub upload_retention: Timeout,
    /// Maximum total size of uploads that are not added yet, in MiB.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub max_uploads_mb: u64,
    /// Maximum total size of these uploads per caller, in MiB; at most that of all callers.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub max_uploads_mb_per_caller: u64,
}

/// Whether `knowledge.db` is copied before its schema is migrated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MigrationCopy {
    /// If there is enough disk space. Otherwise a warning is logged.
    #[default]
    Auto,
    /// Always. Without enough disk space, the knowledge base is not opened.
    Required,
    /// Never.
    Off,
}

/// OCR of added documents.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KnowledgeOcr {
    /// Recognize text in images and in pages without text.
    pub enabled: bool,
    /// Languages for Tesseract, such as `deu+eng`. Defaults to `ocr.language`.
    #[schemars(regex(pattern = r"^[A-Za-z][A-Za-z0-9_/]*(\+[A-Za-z][A-Za-z0-9_/]*)*$"), length(max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// A watched folder.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchedFolder {
    /// Path of the folder.
    pub path: PathBuf,
    /// Also watch subfolders.
    #[serde(default = "yes")]
    pub recursive: bool,
    /// Knowledge base that the documents are added to.
    #[serde(default = "default_base")]
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9._-]+$"))]
    pub knowledge_base: String,
}

/// Name of the default knowledge base.
pub const DEFAULT_BASE: &str = "default";

impl Default for Knowledge {
    fn default() -> Self {
        Self {
            enabled: true,
            storage_path: None,
            store: None,
            store_replicas: Vec::new(),
            vector_db_path: None,
            embedding_model: None,
            chunk_size: 500,
            chunk_overlap: 50,
            max_file_size_mb: 100,
            max_concurrent_tasks: 3,
            max_queued_tasks: 10_000,
            task_retention: Timeout::seconds(24 * 3600),
            ocr: KnowledgeOcr::default(),
            allowed_roots: Vec::new(),
            watch: Vec::new(),
            watch_interval: Timeout::seconds(2),
            notify_progress: true,
            migration_copy: MigrationCopy::default(),
            upload_retention: Timeout::seconds(24 * 3600),
            max_uploads_mb: 1024,
            max_uploads_mb_per_caller: 512,
        }
    }
}

impl Default for KnowledgeOcr {
    fn default() -> Self {
        Self { enabled: true, language: None }
    }
}

impl Knowledge {
    /// The storage folder; `None` if the user's data folder is unknown.
    pub fn storage_dir(&self) -> Option<PathBuf> {
        self.storage_path.clone().or_else(|| Some(data_dir()?.join("corbie").join("knowledge")))
    }

    /// The index folder.
    pub fn index_dir(&self, storage: &Path) -> PathBuf {
        self.vector_db_path.clone().unwrap_or_else(|| storage.join("index"))
    }

    /// Location of the search index for display: a folder, or a database URL without credentials.
    pub fn index_location(&self) -> Option<String> {
        match &self.store {
            Some(store) => Address::parse(store.expose()).ok().map(|address| format!("postgres://{address}")),
            None => Some(self.index_dir(&self.storage_dir()?).display().to_string()),
        }
    }

    /// Validation across keys: the name of the embedding model, and the database URLs.
    pub(super) fn diagnostics(&self, inference: &Inference) -> Vec<SettingDiagnostic> {
        let mut mistakes = self.store_diagnostics();
        mistakes.extend(self.model_diagnostics(inference));
        mistakes
    }

    fn store_diagnostics(&self) -> Vec<SettingDiagnostic> {
        let knowledge = || KeyPath::default().key("knowledge");
        let wrong = |path: KeyPath, address: &SecretLine| {
            let message = Address::parse(address.expose()).err()?;
            Some(SettingDiagnostic { path, message })
        };
        let store = self.store.iter().filter_map(|store| wrong(knowledge().key("store"), store));
        let replicas = self.store_replicas.iter().enumerate();
        let replicas = replicas.filter_map(|(at, replica)| wrong(knowledge().key("store_replicas").index(at), replica));
        let mut mistakes: Vec<SettingDiagnostic> = store.chain(replicas).collect();
        if self.store.is_none() && !self.store_replicas.is_empty() {
            let message = "requires `knowledge.store`; set it to the primary database of these replicas".to_owned();
            mistakes.push(SettingDiagnostic { path: knowledge().key("store_replicas"), message });
        }
        mistakes
    }

    fn model_diagnostics(&self, inference: &Inference) -> Vec<SettingDiagnostic> {
        let Some(wanted) = &self.embedding_model else { return Vec::new() };
        let (used, which) = match &inference.embedding.path {
            Some(path) => (super::inference::model_dir_name(path), "model of `inference.embedding.path`"),
            None => (corbie_infer::builtin_models()[0].id.clone(), "built-in model"),
        };
        // The built-in model is also accepted without the suffix of its quantization, and any model with its
        // organization as a prefix.
        let usual = used.strip_suffix("-int8").filter(|_| inference.embedding.path.is_none()).unwrap_or(&used);
        let asked = wanted.rsplit('/').next().unwrap_or(wanted);
        if asked == used || asked == usual {
            return Vec::new();
        }
        let path = KeyPath::default().key("knowledge").key("embedding_model");
        let message = format!(
            "must be `{usual}`, the {which}; remove it, or set `inference.embedding.path` to the folder of another \
             model"
        );
        vec![SettingDiagnostic { path, message }]
    }

    pub fn max_file_bytes(&self) -> u64 {
        self.max_file_size_mb << 20
    }
}

/// The user's data folder, by the conventions of the platform.
pub(super) fn data_dir() -> Option<PathBuf> {
    data_dir_of(|name| std::env::var_os(name).map(PathBuf::from))
}

/// The same for other variables than those of this process.
pub(super) fn data_dir_of(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let named = |name: &str| variable(name).filter(|path| path.is_absolute());
    let home = || named("HOME");
    if cfg!(target_os = "macos") {
        return home().map(|home| home.join("Library").join("Application Support"));
    }
    if cfg!(windows) {
        return named("LOCALAPPDATA");
    }
    named("XDG_DATA_HOME").or_else(|| home().map(|home| home.join(".local").join("share")))
}

fn yes() -> bool {
    true
}

fn default_base() -> String {
    DEFAULT_BASE.into()
}
