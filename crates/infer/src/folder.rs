//! A model in a folder: `model.onnx`, `tokenizer.json`, and what its exporter wrote beside them.

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
use crate::network;
use crate::pooling::Pooling;

/// What the owner of a model says about it. What is not said is read from the files beside the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FolderOptions {
    pub pooling: Option<Pooling>,
    /// Put before a text that is searched for, such as `query: ` for e5.
    pub query_prefix: Option<String>,
    /// Put before a text that is searched in, such as `passage: ` for e5.
    pub passage_prefix: Option<String>,
    pub max_tokens: Option<usize>,
}

/// A model's folder, read and understood.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) network: PathBuf,
    /// The files beside the network that hold its weights, as large exports have them.
    pub(crate) weights: BTreeSet<PathBuf>,
    pub(crate) tokenizer: Vec<u8>,
    pub(crate) max_tokens: usize,
    // The rest is for models that give vectors.
    pub(crate) pooling: Pooling,
    pub(crate) query_prefix: String,
    pub(crate) passage_prefix: String,
}

/// What a model reads when nobody says.
const DEFAULT_MAX_TOKENS: usize = 512;
/// More would let one text fill the memory: attention grows with the square.
const MOST_TOKENS: usize = 8192;
const MOST_JSON_BYTES: u64 = 64 * 1024 * 1024;
/// Twice what the format itself allows.
const MOST_NETWORK_BYTES: u64 = 4 << 30;
/// The weights of eight billion parameters, unquantised. A file can claim any size without a disk behind it.
const MOST_WEIGHT_BYTES: u64 = 32 << 30;

impl Folder {
    /// The folder of a model that gives vectors.
    pub(crate) fn read(path: &Path, options: &FolderOptions) -> Result<Folder, Error> {
        let sentence: Option<SentenceFile> = beside(path, "sentence_bert_config.json")?;
        let folder = Folder::plain(path, options.max_tokens.or(sentence.and_then(|file| file.max_seq_length)))?;

        let pooling = match options.pooling {
            Some(pooling) => Some(pooling),
            None => pooling_beside(path)?,
        };
        let prompts: Option<PromptsFile> = beside(path, "config_sentence_transformers.json")?;
        let prompts = prompts.unwrap_or_default().prompts;
        let prompt = |names: &[&str]| names.iter().find_map(|name| prompts.get(*name).cloned()).unwrap_or_default();
        Ok(Folder {
            pooling: pooling.unwrap_or_default(),
            query_prefix: options.query_prefix.clone().unwrap_or_else(|| prompt(&["query", "search_query"])),
            passage_prefix: options
                .passage_prefix
                .clone()
                .unwrap_or_else(|| prompt(&["passage", "document", "search_document"])),
            ..folder
        })
    }

    /// The network and its tokenizer, which every model has. `max_tokens` is what someone said who knows better than
    /// the tokenizer.
    pub(crate) fn plain(path: &Path, max_tokens: Option<usize>) -> Result<Folder, Error> {
        let missing = |reason: String| Error::NoModel { path: path.to_owned(), reason };
        if !path.is_dir() {
            return Err(missing("it is not a folder".into()));
        }
        // Exporters put the network into a folder of its own or not.
        let network = ["model.onnx", "onnx/model.onnx"]
            .iter()
            .map(|name| path.join(name))
            .find(|file| file.is_file())
            .ok_or_else(|| missing("`model.onnx` is not there".into()))?;
        let tokenizer = read_bounded(&path.join("tokenizer.json"))
            .map_err(|error| missing(format!("`tokenizer.json` cannot be read ({error})")))?;
        let weights = weights_of(&network).map_err(|reason| Error::BadModel { path: network.clone(), reason })?;
        let tokenizer_settings: Option<TokenizerFile> = beside(path, "tokenizer_config.json")?;
        let max_tokens = max_tokens
            // Some write 10^30 for "no limit".
            .or(tokenizer_settings
                .and_then(|file| file.model_max_length)
                .filter(|most| *most <= MOST_TOKENS as f64)
                .map(|most| most as usize))
            .unwrap_or(DEFAULT_MAX_TOKENS)
            .min(MOST_TOKENS);
        Ok(Folder {
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

    /// The folder's name and a hash of everything that decides about a vector.
    pub(crate) fn id(&self) -> std::io::Result<ModelId> {
        self.id_with(&format!(
            "{:?} {:?} {:?} {}",
            self.pooling, self.query_prefix, self.passage_prefix, self.max_tokens
        ))
    }

    /// The folder's name and a hash of its network, its tokenizer, and the settings that decide besides them.
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

/// Opens a model, and makes an error of a panic. The libraries that read a model expect what exporters write, and panic
/// over some of what else there can be. Nothing of a model that was half opened is kept.
pub(crate) fn open_guarded<T>(path: &Path, open: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| {
        Err(Error::BadModel { path: path.to_owned(), reason: "it made its reader panic; export it again".into() })
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

/// The pooling that the exporter wrote down, if any: `pooling_mode_cls_token: true`, or `pooling_mode: "cls"`.
fn pooling_beside(folder: &Path) -> Result<Option<Pooling>, Error> {
    const FILE: &str = "1_Pooling/config.json";
    let settings: Option<BTreeMap<String, serde_json::Value>> = beside(folder, FILE)?;
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
        // A vector pooled in another way than the model was trained with looks like any other and is worth little.
        _ => Err(Error::BadModel {
            path: folder.join(FILE),
            reason: format!("there is no pooling by `{}` here; set `pooling` to one there is", modes.join("` and `")),
        }),
    }
}

/// The files that a network keeps its weights in besides its own. Every place it names is checked, since the runtime
/// reserves the memory that a network asks for before it looks at the file.
fn weights_of(network: &Path) -> Result<BTreeSet<PathBuf>, String> {
    // The runtime looks beside the file itself, not beside a link to it.
    let network = network.canonicalize().map_err(|error| error.to_string())?;
    let file = fs::File::open(&network).map_err(|error| error.to_string())?;
    if file.metadata().map_err(|error| error.to_string())?.len() > MOST_NETWORK_BYTES {
        return Err("it is larger than 4 GB; export it with its weights in a file of their own".into());
    }
    let model = network::parse(file)?;
    let mut tensors = Vec::new();
    if let Some(graph) = &model.graph {
        outside_tensors(graph, &mut tensors);
    }
    let mut files = BTreeSet::new();
    let mut total: u64 = 0;
    for tensor in tensors {
        let (file, length) = place_of(tensor, &network)?;
        total = total.saturating_add(length);
        files.insert(file);
    }
    if total > MOST_WEIGHT_BYTES {
        return Err("its weights are larger than 32 GB".into());
    }
    Ok(files)
}

/// All tensors of a graph, and of graphs inside it, that are kept in another file.
fn outside_tensors<'a>(graph: &'a GraphProto, tensors: &mut Vec<&'a TensorProto>) {
    let attributes = || graph.node.iter().flat_map(|node| &node.attribute);
    let constants = attributes().filter_map(|attribute| attribute.t.as_ref());
    let is_outside = |tensor: &&TensorProto| tensor.data_location == Some(DataLocation::EXTERNAL);
    tensors.extend(graph.initializer.iter().chain(constants).filter(is_outside));
    for inner in attributes().filter_map(|attribute| attribute.g.as_ref()) {
        outside_tensors(inner, tensors);
    }
}

/// The file of a tensor and how many bytes of it are the tensor's.
fn place_of(tensor: &TensorProto, network: &Path) -> Result<(PathBuf, u64), String> {
    // Of a key that is given twice, the runtime takes the last.
    let said = |key: &str| {
        let entries = tensor.external_data.iter().filter(|entry| entry.key.as_deref() == Some(key));
        entries.filter_map(|entry| entry.value.as_deref()).next_back()
    };
    let number = |key: &str| {
        let number = said(key).and_then(|number| number.parse::<u64>().ok());
        number.ok_or_else(|| format!("a tensor in another file has no `{key}`"))
    };
    let name = said("location").ok_or("a tensor in another file has no `location`")?;
    let (offset, length) = (number("offset")?, number("length")?);

    let is_plain = Path::new(name).file_name().is_some_and(|plain| plain == name);
    // Whatever a network reads can come out of it again: it must not reach files that are none of its own.
    let file = network.with_file_name(name);
    let resolved = file.canonicalize().map_err(|error| format!("its weights `{name}` cannot be read ({error})"))?;
    if !is_plain || resolved.parent() != network.parent() {
        return Err(format!("its weights `{name}` are not in its own folder"));
    }
    let found = fs::metadata(&resolved).map_err(|error| format!("its weights `{name}` cannot be read ({error})"))?;
    if !found.is_file() {
        return Err(format!("its weights `{name}` are not a file"));
    }
    if found.len() > MOST_WEIGHT_BYTES {
        return Err(format!("its weights `{name}` are larger than 32 GB"));
    }
    if offset.checked_add(length).is_none_or(|end| end > found.len()) {
        return Err(format!("its weights `{name}` end before a tensor in them does; is the file whole?"));
    }
    Ok((file, length))
}

/// Reads a file that may be there. One that is there and says nothing readable is a mistake worth telling.
pub(crate) fn beside<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, Error> {
    let path = folder.join(name);
    if !path.exists() {
        return Ok(None);
    }
    let bad = |reason: String| Error::BadModel { path: path.clone(), reason };
    let bytes = read_bounded(&path).map_err(|error| bad(error.to_string()))?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| bad(error.to_string()))
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    // To open a pipe is to wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a file"));
    }
    let mut bytes = Vec::new();
    let read = fs::File::open(path)?.take(MOST_JSON_BYTES + 1).read_to_end(&mut bytes)?;
    if read as u64 > MOST_JSON_BYTES {
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "it is larger than 64 MB"));
    }
    Ok(bytes)
}
