//! Model directory: `model.onnx`, `tokenizer.json`, and the exporter's configuration files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rten_onnx::onnx::{DataLocation, GraphProto, TensorProto};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::embedding::ModelId;
use crate::error::Error;
use crate::pooling::Pooling;
use crate::rten_runtime;

/// Overrides of the model configuration. Unset fields are read from the files in the model directory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelDirOptions {
    pub pooling: Option<Pooling>,
    /// Prepended to search queries, such as `query: ` for e5.
    pub query_prefix: Option<String>,
    /// Prepended to passages, such as `passage: ` for e5.
    pub passage_prefix: Option<String>,
    pub max_tokens: Option<usize>,
}

/// A parsed and validated model directory.
#[derive(Debug)]
pub(crate) struct ModelDir {
    pub(crate) path: PathBuf,
    pub(crate) network: PathBuf,
    /// External weight files of the network, as in large exports.
    pub(crate) weights: BTreeSet<PathBuf>,
    pub(crate) tokenizer: Vec<u8>,
    pub(crate) max_tokens: usize,
    // The remaining fields are for embedding models.
    pub(crate) pooling: Pooling,
    pub(crate) query_prefix: String,
    pub(crate) passage_prefix: String,
}

/// Input limit if neither the options nor the files define one.
const DEFAULT_MAX_TOKENS: usize = 512;
/// A higher limit would let one text exhaust memory: attention is quadratic.
const MAX_TOKENS: usize = 8192;
const MAX_JSON_BYTES: u64 = 64 * 1024 * 1024;
/// Twice the limit of the format.
const MAX_NETWORK_BYTES: u64 = 4 << 30;
/// The unquantized weights of eight billion parameters. A sparse file can claim any size.
const MAX_WEIGHT_BYTES: u64 = 32 << 30;

impl ModelDir {
    /// Reads the directory of an embedding model.
    pub(crate) fn read(path: &Path, options: &ModelDirOptions) -> Result<ModelDir, Error> {
        let sentence: Option<SentenceFile> = read_optional(path, "sentence_bert_config.json")?;
        let folder = ModelDir::read_model(path, options.max_tokens.or(sentence.and_then(|file| file.max_seq_length)))?;

        let pooling = match options.pooling {
            Some(pooling) => Some(pooling),
            None => read_pooling(path)?,
        };
        let prompts: Option<PromptsFile> = read_optional(path, "config_sentence_transformers.json")?;
        let prompts = prompts.unwrap_or_default().prompts;
        let prompt = |names: &[&str]| names.iter().find_map(|name| prompts.get(*name).cloned()).unwrap_or_default();
        Ok(ModelDir {
            pooling: pooling.unwrap_or_default(),
            query_prefix: options.query_prefix.clone().unwrap_or_else(|| prompt(&["query", "search_query"])),
            passage_prefix: options
                .passage_prefix
                .clone()
                .unwrap_or_else(|| prompt(&["passage", "document", "search_document"])),
            ..folder
        })
    }

    /// Reads the network and its tokenizer, which every model has. `max_tokens` overrides the tokenizer's
    /// configuration.
    pub(crate) fn read_model(path: &Path, max_tokens: Option<usize>) -> Result<ModelDir, Error> {
        let missing = |reason: String| Error::NoModel { path: path.to_owned(), reason };
        if !path.is_dir() {
            return Err(missing("not a folder".into()));
        }
        // Some exporters put the network into a subdirectory.
        let network = ["model.onnx", "onnx/model.onnx"]
            .iter()
            .map(|name| path.join(name))
            .find(|file| file.is_file())
            .ok_or_else(|| missing("`model.onnx` is missing".into()))?;
        let tokenizer = read_bounded(&path.join("tokenizer.json"))
            .map_err(|error| missing(format!("cannot read `tokenizer.json` ({error})")))?;
        let weights = external_weights(&network).map_err(|reason| Error::BadModel { path: network.clone(), reason })?;
        let tokenizer_settings: Option<TokenizerFile> = read_optional(path, "tokenizer_config.json")?;
        let max_tokens = max_tokens
            // Some exporters write 10^30 for "no limit".
            .or(tokenizer_settings
                .and_then(|file| file.model_max_length)
                .filter(|most| *most <= MAX_TOKENS as f64)
                .map(|most| most as usize))
            .unwrap_or(DEFAULT_MAX_TOKENS)
            .min(MAX_TOKENS);
        Ok(ModelDir {
            path: path.to_owned(),
            network,
            weights,
            tokenizer,
            max_tokens,
            pooling: Pooling::default(),
            query_prefix: String::new(),
            passage_prefix: String::new(),
        })
    }

    /// The directory name and a hash of everything that affects a vector.
    pub(crate) fn id(&self) -> std::io::Result<ModelId> {
        self.id_with(&format!(
            "{:?} {:?} {:?} {}",
            self.pooling, self.query_prefix, self.passage_prefix, self.max_tokens
        ))
    }

    /// The directory name and a hash of the network, the tokenizer, and the given settings.
    pub(crate) fn id_with(&self, settings: &str) -> std::io::Result<ModelId> {
        let mut hash = Sha256::new();
        std::io::copy(&mut fs::File::open(&self.network)?, &mut hash)?;
        hash.update(&self.tokenizer);
        hash.update(settings);
        for file in &self.weights {
            let name = file.file_name().unwrap_or_default().as_encoded_bytes();
            let mut file = fs::File::open(file)?;
            hash.update((name.len() as u64).to_le_bytes());
            hash.update(name);
            hash.update(file.metadata()?.len().to_le_bytes());
            std::io::copy(&mut file, &mut hash)?;
        }
        let name = self.path.canonicalize()?.file_name().map(|name| name.to_string_lossy().into_owned());
        let hash: String = hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(ModelId::from(&*format!("{}@{hash}", name.as_deref().unwrap_or("model"))))
    }
}

/// Opens a model and converts a panic into an error. The parsing libraries expect the output of exporters and panic
/// on some other inputs. A partially opened model is dropped.
pub(crate) fn open_guarded<T>(path: &Path, open: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| {
        Err(Error::BadModel { path: path.to_owned(), reason: "loading it caused a panic; export it again".into() })
    })
}

#[derive(Deserialize)]
struct SentenceFile {
    max_seq_length: Option<usize>,
}

#[derive(Deserialize, Default)]
struct PromptsFile {
    #[serde(default)]
    prompts: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct TokenizerFile {
    model_max_length: Option<f64>,
}

/// The pooling in the exporter's configuration, if any: `pooling_mode_cls_token: true`, or `pooling_mode: "cls"`.
fn read_pooling(folder: &Path) -> Result<Option<Pooling>, Error> {
    const FILE: &str = "1_Pooling/config.json";
    let settings: Option<BTreeMap<String, serde_json::Value>> = read_optional(folder, FILE)?;
    let settings = settings.unwrap_or_default();
    let modes: Vec<&str> = settings
        .iter()
        .filter_map(|(key, value)| match (key.strip_prefix("pooling_mode")?, value) {
            (_, serde_json::Value::Bool(false) | serde_json::Value::Null) => None,
            ("", serde_json::Value::String(mode)) => Some(mode.as_str()),
            (mode, _) => Some(mode.trim_start_matches('_')),
        })
        .collect();
    match modes[..] {
        [] => Ok(None),
        ["mean_tokens" | "mean"] => Ok(Some(Pooling::Mean)),
        ["cls_token" | "cls"] => Ok(Some(Pooling::Cls)),
        ["lasttoken"] => Ok(Some(Pooling::LastToken)),
        // A vector with the wrong pooling looks valid, but has low quality.
        _ => Err(Error::BadModel {
            path: folder.join(FILE),
            reason: format!("unsupported pooling `{}`; set `pooling` to a supported one", modes.join("` and `")),
        }),
    }
}

/// The external weight files of a network. Validates every tensor location, because the runtime allocates the
/// requested memory before it reads the file.
fn external_weights(network: &Path) -> Result<BTreeSet<PathBuf>, String> {
    // The runtime resolves paths relative to the file itself, not to a symlink.
    let network = network.canonicalize().map_err(|error| error.to_string())?;
    let file = fs::File::open(&network).map_err(|error| error.to_string())?;
    if file.metadata().map_err(|error| error.to_string())?.len() > MAX_NETWORK_BYTES {
        return Err("it is larger than 4 GB; export it with external weights".into());
    }
    let model = rten_runtime::parse(file)?;
    let mut tensors = Vec::new();
    if let Some(graph) = &model.graph {
        external_tensors(graph, &mut tensors);
    }
    let mut files = BTreeSet::new();
    let mut total: u64 = 0;
    for tensor in tensors {
        let (file, length) = tensor_location(tensor, &network)?;
        total = total.saturating_add(length);
        files.insert(file);
    }
    if total > MAX_WEIGHT_BYTES {
        return Err("weights are larger than 32 GB".into());
    }
    Ok(files)
}

/// All tensors of a graph and its subgraphs that are stored in another file.
fn external_tensors<'a>(graph: &'a GraphProto, tensors: &mut Vec<&'a TensorProto>) {
    let attributes = || graph.node.iter().flat_map(|node| &node.attribute);
    let constants = attributes().filter_map(|attribute| attribute.t.as_ref());
    let is_outside = |tensor: &&TensorProto| tensor.data_location == Some(DataLocation::EXTERNAL);
    tensors.extend(graph.initializer.iter().chain(constants).filter(is_outside));
    for inner in attributes().filter_map(|attribute| attribute.g.as_ref()) {
        external_tensors(inner, tensors);
    }
}

/// The file of a tensor and the length of the tensor in it.
fn tensor_location(tensor: &TensorProto, network: &Path) -> Result<(PathBuf, u64), String> {
    // If a key is repeated, the runtime uses the last.
    let said = |key: &str| {
        let entries = tensor.external_data.iter().filter(|entry| entry.key.as_deref() == Some(key));
        entries.filter_map(|entry| entry.value.as_deref()).next_back()
    };
    let number = |key: &str| {
        let number = said(key).and_then(|number| number.parse::<u64>().ok());
        number.ok_or_else(|| format!("an external tensor has no `{key}`"))
    };
    let name = said("location").ok_or("an external tensor has no `location`")?;
    let (offset, length) = (number("offset")?, number("length")?);

    let is_plain = Path::new(name).file_name().is_some_and(|plain| plain == name);
    // A network can output anything it reads, so it must not reach files outside its directory.
    let file = network.with_file_name(name);
    let resolved = file.canonicalize().map_err(|error| format!("cannot read the weights `{name}` ({error})"))?;
    if !is_plain || resolved.parent() != network.parent() {
        return Err(format!("weights `{name}` are outside the model folder"));
    }
    let found = fs::metadata(&resolved).map_err(|error| format!("cannot read the weights `{name}` ({error})"))?;
    if !found.is_file() {
        return Err(format!("weights `{name}` are not a file"));
    }
    if found.len() > MAX_WEIGHT_BYTES {
        return Err(format!("weights `{name}` are larger than 32 GB"));
    }
    if offset.checked_add(length).is_none_or(|end| end > found.len()) {
        return Err(format!("weights `{name}` are truncated; copy the file again"));
    }
    Ok((file, length))
}

/// Reads an optional file. An existing file that cannot be parsed is an error.
pub(crate) fn read_optional<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, Error> {
    let path = folder.join(name);
    if !path.exists() {
        return Ok(None);
    }
    let bad = |reason: String| Error::BadModel { path: path.clone(), reason };
    let bytes = read_bounded(&path).map_err(|error| bad(error.to_string()))?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| bad(error.to_string()))
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    // Opening a named pipe would block until a writer opens it.
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a file"));
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path)?.take(MAX_JSON_BYTES + 1).read_to_end(&mut bytes)?;
    if read as u64 > MAX_JSON_BYTES {
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "larger than 64 MB"));
    }
    Ok(bytes)
}
