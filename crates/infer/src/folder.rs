//! A model in a folder: `model.onnx`, `tokenizer.json`, and what its exporter wrote beside them.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::embedding::ModelId;
use crate::error::Error;
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
    pub(crate) tokenizer: Vec<u8>,
    pub(crate) pooling: Pooling,
    pub(crate) query_prefix: String,
    pub(crate) passage_prefix: String,
    pub(crate) max_tokens: usize,
}

/// What a model reads when nobody says.
const DEFAULT_MAX_TOKENS: usize = 512;
/// More would let one text fill the memory: attention grows with the square.
const MOST_TOKENS: usize = 8192;
const MOST_JSON_BYTES: u64 = 64 * 1024 * 1024;

impl Folder {
    pub(crate) fn read(path: &Path, options: &FolderOptions) -> Result<Folder, Error> {
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

        let pooling: Option<PoolingFile> = beside(path, "1_Pooling/config.json")?;
        let sentence: Option<SentenceFile> = beside(path, "sentence_bert_config.json")?;
        let prompts: Option<PromptsFile> = beside(path, "config_sentence_transformers.json")?;
        let tokenizer_settings: Option<TokenizerFile> = beside(path, "tokenizer_config.json")?;
        let prompts = prompts.unwrap_or_default().prompts;
        let prompt = |names: &[&str]| names.iter().find_map(|name| prompts.get(*name).cloned()).unwrap_or_default();

        let max_tokens = options
            .max_tokens
            .or(sentence.and_then(|file| file.max_seq_length))
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
            tokenizer,
            pooling: options.pooling.or(pooling.and_then(|file| file.pooling())).unwrap_or_default(),
            query_prefix: options.query_prefix.clone().unwrap_or_else(|| prompt(&["query", "search_query"])),
            passage_prefix: options
                .passage_prefix
                .clone()
                .unwrap_or_else(|| prompt(&["passage", "document", "search_document"])),
            max_tokens,
        })
    }

    /// The folder's name and a hash of everything that decides about a vector.
    pub(crate) fn id(&self) -> std::io::Result<ModelId> {
        let mut hash = Sha256::new();
        std::io::copy(&mut fs::File::open(&self.network)?, &mut hash)?;
        hash.update(&self.tokenizer);
        hash.update(format!(
            "{:?} {:?} {:?} {}",
            self.pooling, self.query_prefix, self.passage_prefix, self.max_tokens
        ));
        let name = self.path.canonicalize()?.file_name().map(|name| name.to_string_lossy().into_owned());
        let hash: String = hash.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(ModelId::from(&*format!("{}@{hash}", name.as_deref().unwrap_or("model"))))
    }
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct PoolingFile {
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
    pooling_mode_lasttoken: bool,
}

#[derive(Deserialize)]
struct SentenceFile {
    max_seq_length: Option<usize>,
}

#[derive(Deserialize, Default)]
struct PromptsFile {
    #[serde(default)]
    prompts: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct TokenizerFile {
    model_max_length: Option<f64>,
}

impl PoolingFile {
    fn pooling(&self) -> Option<Pooling> {
        match self {
            PoolingFile { pooling_mode_mean_tokens: true, .. } => Some(Pooling::Mean),
            PoolingFile { pooling_mode_cls_token: true, .. } => Some(Pooling::Cls),
            PoolingFile { pooling_mode_lasttoken: true, .. } => Some(Pooling::LastToken),
            _ => None,
        }
    }
}

/// Reads a file that may be there. One that is there and says nothing readable is a mistake worth telling.
fn beside<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, Error> {
    let path = folder.join(name);
    if !path.is_file() {
        return Ok(None);
    }
    let bad = |reason: String| Error::BadModel { path: path.clone(), reason };
    let bytes = read_bounded(&path).map_err(|error| bad(error.to_string()))?;
    serde_json::from_slice(&bytes).map(Some).map_err(|error| bad(error.to_string()))
}

fn read_bounded(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path)?.take(MOST_JSON_BYTES + 1).read_to_end(&mut bytes)?;
    if read as u64 > MOST_JSON_BYTES {
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, "it is larger than 64 MB"));
    }
    Ok(bytes)
}
