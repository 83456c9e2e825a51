//! `knowledge`: the documents that are kept and searched.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Timeout;
use super::external::Mistake;
use super::inference::Inference;
use super::problem::KeyPath;
use super::secret::SecretLine;
use crate::knowledge::store::MigrationCopy;
use crate::knowledge::store::postgres::Address;

/// The documents that are kept and searched.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Knowledge {
    /// Whether there is a knowledge base. Without it the tools for it are not there either.
    pub enabled: bool,
    /// The folder the documents are kept in. `corbie/knowledge` in the user's folder for data, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_path: Option<PathBuf>,
    /// The PostgreSQL database that the documents are kept in, in the place of a file: `postgres://user:password@host/name`. It
    /// needs pgvector, and several instances of this program may share it. What is not on this machine is spoken to
    /// encrypted, unless `?sslmode=disable` is added; `?sslrootcert=PATH` names the certificates that are believed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<SecretLine>,
    /// Databases that follow that one. Searches go to them in turn, and to that one if none answers.
    #[schemars(length(max = 16))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub store_replicas: Vec<SecretLine>,
    /// The folder for what makes searching fast. It is made anew where it is missing. `index` in the storage, if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector_db_path: Option<PathBuf>,
    /// The name of the embedding model, for those who want to be sure of it: with another one in use the program does not
    /// start. It is the name of the folder of `inference.embedding.path`, which chooses the model, or that of the one
    /// inside, `all-MiniLM-L6-v2`. If left out, whichever is in use.
    #[schemars(length(min = 1, max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// The most tokens of the embedding model in a chunk.
    #[schemars(range(min = 16, max = 4096))]
    pub chunk_size: usize,
    /// The most tokens a chunk repeats of the one before it; at most half a chunk counts.
    #[schemars(range(min = 0, max = 2048))]
    pub chunk_overlap: usize,
    /// The largest file, in units of 1,048,576 bytes.
    #[schemars(range(min = 1, max = 4096))]
    pub max_file_size_mb: u64,
    /// How many documents are processed at a time.
    #[schemars(range(min = 1, max = 64))]
    pub max_concurrent_tasks: usize,
    /// How many tasks may wait.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_waiting_tasks: usize,
    /// How long a task that has ended can be asked about; an hour at least.
    pub keep_tasks: Timeout,
    /// When documents that are added are read as pictures.
    pub ocr: KnowledgeOcr,
    /// The folders files may be added from. Needed where others than this machine can reach the server; if left out,
    /// every file that this program can read may be added.
    #[schemars(length(max = 100))]
    pub allowed_roots: Vec<PathBuf>,
    /// Folders whose documents are kept up to date: what appears, changes or goes in them is followed.
    #[schemars(length(max = 100))]
    pub watch: Vec<Watch>,
    /// How often watched folders are looked at.
    pub watch_interval: Timeout,
    /// Whether progress of tasks is told on open streams to callers who did not ask for it.
    pub notify_progress: bool,
    /// Whether `knowledge.db` is copied to `knowledge.db.schema-N` before a new version of corbie migrates it from schema N:
    /// `auto` if the disk has room, `required` or not open it without the copy, `off`.
    pub migration_copy: MigrationCopy,
    /// How long an uploaded file is kept that is not added.
    pub keep_uploads: Timeout,
    /// How many bytes all uploads that wait to be added may take, in units of 1,048,576.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub max_uploads_mb: u64,
    /// How many of these bytes may be of one caller, in units of 1,048,576; never more than of all.
    #[schemars(range(min = 1, max = 1_048_576))]
    pub max_uploads_mb_per_caller: u64,
}

/// When documents that are added are read as pictures.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KnowledgeOcr {
    /// Whether pages without text, and pictures, are read by looking at them.
    pub enabled: bool,
    /// The languages Tesseract is told to expect, such as `deu+eng`. As `ocr.language`, if left out.
    #[schemars(regex(pattern = r"^[A-Za-z][A-Za-z0-9_/]*(\+[A-Za-z][A-Za-z0-9_/]*)*$"), length(max = 200))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// A folder that is followed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Watch {
    /// The folder.
    pub path: PathBuf,
    /// Whether the folders in it are followed too.
    #[serde(default = "yes")]
    pub recursive: bool,
    /// The knowledge base its documents go to.
    #[serde(default = "default_base")]
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9._-]+$"))]
    pub knowledge_base: String,
}

/// The base that is meant where none is named.
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
            max_waiting_tasks: 10_000,
            keep_tasks: Timeout::seconds(24 * 3600),
            ocr: KnowledgeOcr::default(),
            allowed_roots: Vec::new(),
            watch: Vec::new(),
            watch_interval: Timeout::seconds(2),
            notify_progress: true,
            migration_copy: MigrationCopy::default(),
            keep_uploads: Timeout::seconds(24 * 3600),
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
    /// Where documents are kept; none where nobody knows the user's folders.
    pub fn storage(&self) -> Option<PathBuf> {
        self.storage_path.clone().or_else(|| Some(data_folder()?.join("corbie").join("knowledge")))
    }

    /// Where what makes searching fast is kept.
    pub fn index(&self, storage: &Path) -> PathBuf {
        self.vector_db_path.clone().unwrap_or_else(|| storage.join("index"))
    }

    /// Where passages are looked for, for people: a folder, or a database without who may go there.
    pub fn searched_in(&self) -> Option<String> {
        match &self.store {
            Some(store) => Address::parse(store.expose()).ok().map(|address| format!("postgres://{address}")),
            None => Some(self.index(&self.storage()?).display().to_string()),
        }
    }

    /// Puts the user's home in the place of a `~` that a path begins with, as a shell does. Others' homes are not known.
    pub(super) fn find_home(&mut self, variables: &BTreeMap<String, String>) {
        let watched = self.watch.iter_mut().map(|watch| &mut watch.path);
        let kept = self.storage_path.iter_mut().chain(&mut self.vector_db_path);
        put_home(kept.chain(&mut self.allowed_roots).chain(watched), variables);
    }

    /// What does not fit together: a model that is not the one in use, a database that cannot be meant.
    pub(super) fn mistakes(&self, inference: &Inference) -> Vec<Mistake> {
        let mut mistakes = self.wrong_stores();
        mistakes.extend(self.wrong_model(inference));
        mistakes
    }

    fn wrong_stores(&self) -> Vec<Mistake> {
        let knowledge = || KeyPath::default().key("knowledge");
        let wrong = |path: KeyPath, address: &SecretLine| {
            let message = Address::parse(address.expose()).err()?;
            Some(Mistake { path, message })
        };
        let store = self.store.iter().filter_map(|store| wrong(knowledge().key("store"), store));
        let replicas = self.store_replicas.iter().enumerate();
        let replicas = replicas.filter_map(|(at, replica)| wrong(knowledge().key("store_replicas").index(at), replica));
        let mut mistakes: Vec<Mistake> = store.chain(replicas).collect();
        if self.store.is_none() && !self.store_replicas.is_empty() {
            let message = "is of no use without `knowledge.store`; name the database that these follow".to_owned();
            mistakes.push(Mistake { path: knowledge().key("store_replicas"), message });
        }
        mistakes
    }

    fn wrong_model(&self, inference: &Inference) -> Vec<Mistake> {
        let Some(wanted) = &self.embedding_model else { return Vec::new() };
        let (used, which) = match &inference.embedding.path {
            Some(path) => (crate::inference::name_of(path), "of `inference.embedding.path`"),
            None => (corbie_infer::builtin_models()[0].id.clone(), "inside"),
        };
        // The one inside is also known by the name that it has without its weights rounded, and any by its maker's.
        let usual = used.strip_suffix("-int8").filter(|_| inference.embedding.path.is_none()).unwrap_or(&used);
        let asked = wanted.rsplit('/').next().unwrap_or(wanted);
        if asked == used || asked == usual {
            return Vec::new();
        }
        let path = KeyPath::default().key("knowledge").key("embedding_model");
        let message = format!(
            "must be `{usual}`, which is the model {which}; leave it out, or set `inference.embedding.path` to the folder of another"
        );
        vec![Mistake { path, message }]
    }

    pub fn max_file_bytes(&self) -> u64 {
        self.max_file_size_mb << 20
    }
}

/// Puts the user's home in the place of a `~` that paths begin with.
pub(super) fn put_home<'a>(paths: impl Iterator<Item = &'a mut PathBuf>, variables: &BTreeMap<String, String>) {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    let Some(home) = variables.get(name).map(Path::new).filter(|home| home.is_absolute()) else { return };
    for path in paths {
        if let Ok(rest) = path.strip_prefix("~") {
            *path = home.join(rest);
        }
    }
}

/// The user's folder for data, as the system has it.
pub(super) fn data_folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
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
