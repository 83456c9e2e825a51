//! Text embeddings.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rten::ModelOptions;

use crate::builtin;
use crate::embedding::{Embedding, ModelId};
use crate::error::Error;
#[cfg(target_arch = "x86_64")]
use crate::minilm::{self, MiniLm};
use crate::model_dir::{self, ModelDir, ModelDirOptions};
use crate::pooling::{Pooling, normalise};
use crate::rten_runtime::{ModelTask, RtenModel, thread_pool};
use crate::tokenizer::{TokenizedText, Tokenizer, TruncatingTokenizer};

/// The role of a text. Some models were trained with different prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// A search query.
    Query,
    /// A text to search in, compare or classify.
    #[default]
    Passage,
}

/// A model that turns texts into unit vectors. The same text gives the same vector, bit for bit, in any batch.
#[derive(Debug)]
pub struct Embedder {
    id: ModelId,
    dimension: usize,
    reader: Arc<TruncatingTokenizer>,
    engine: Engine,
    pooling: Pooling,
    query_prefix: String,
    passage_prefix: String,
    english_only: bool,
    threads: usize,
}

/// The runtime of the model.
#[derive(Debug)]
enum Engine {
    /// Any model, on any CPU.
    Network { network: Box<RtenModel>, most_tokens_at_once: usize },
    /// The built-in model, on CPUs with a hand-written kernel.
    #[cfg(target_arch = "x86_64")]
    MiniLm(Box<MiniLm>),
}

/// Maximum number of tokens per rten batch of the built-in model.
const MAX_BATCH_TOKENS: usize = 256;
#[cfg(target_arch = "x86_64")]
/// With fewer tokens, the work is done before another thread has started.
const MIN_TOKENS_PER_THREAD: usize = 64;

impl Embedder {
    /// The built-in model: all-MiniLM-L6-v2, for English. Loads quickly.
    pub fn builtin(threads: usize) -> Result<Embedder, Error> {
        #[cfg(target_arch = "x86_64")]
        if let Some(minilm) = MiniLm::load() {
            let minilm = minilm.map_err(|reason| Error::Builtin { reason })?;
            return Embedder::builtin_with(Engine::MiniLm(Box::new(minilm)), threads);
        }
        Embedder::builtin_portable(threads)
    }

    /// The same model on rten, as on CPUs without 8-bit dot products. Slower; its vectors differ only in the last
    /// digits.
    pub fn builtin_portable(threads: usize) -> Result<Embedder, Error> {
        let damaged = |reason: String| Error::Builtin { reason };
        let model = ModelOptions::with_all_ops()
            // A short text takes 2 ms with prepacked weights and 10 ms without. They take 11 MB.
            .prepack_weights(true)
            .external_data_static(builtin::WEIGHTS_NAME, builtin::WEIGHTS)
            .load_static_slice(builtin::NETWORK)
            .map_err(|error| damaged(error.to_string()))?;
        let network = Box::new(RtenModel::new(model, thread_pool(threads)).map_err(damaged)?);
        Embedder::builtin_with(Engine::Network { network, most_tokens_at_once: MAX_BATCH_TOKENS }, threads)
    }

    fn builtin_with(engine: Engine, threads: usize) -> Result<Embedder, Error> {
        let card = builtin::embedding_model_card();
        let reader = TruncatingTokenizer::new(builtin::TOKENIZER, card.max_tokens)
            .map_err(|reason| Error::Builtin { reason })?;
        Ok(Embedder {
            id: ModelId::from(card.id.as_str()),
            dimension: card.dimension,
            reader: Arc::new(reader),
            engine,
            pooling: Pooling::Mean,
            query_prefix: String::new(),
            passage_prefix: String::new(),
            english_only: true,
            threads: threads.max(1),
        })
    }

    /// Loads a model from a directory with `model.onnx` and `tokenizer.json`. Runs it once to verify that it works.
    pub fn open(path: &Path, options: &ModelDirOptions, threads: usize) -> Result<Embedder, Error> {
        model_dir::open_guarded(path, || Embedder::open_or_panic(path, options, threads))
    }

    fn open_or_panic(path: &Path, options: &ModelDirOptions, threads: usize) -> Result<Embedder, Error> {
        let folder = ModelDir::read(path, options)?;
        let bad = |reason: String| Error::BadModel { path: folder.network.clone(), reason };
        let network = RtenModel::load(ModelTask::FeatureExtraction, &folder.network, threads).map_err(bad)?;
        let mut embedder = Embedder {
            id: folder.id().map_err(|error| bad(error.to_string()))?,
            dimension: 0,
            reader: Arc::new(TruncatingTokenizer::new(&folder.tokenizer, folder.max_tokens).map_err(bad)?),
            // One text at a time: with dynamic quantization, the range of activations is measured over a whole batch,
            // and a text's vector must not depend on the rest of the batch.
            engine: Engine::Network { network: Box::new(network), most_tokens_at_once: 0 },
            pooling: folder.pooling,
            query_prefix: folder.query_prefix,
            passage_prefix: folder.passage_prefix,
            english_only: false,
            threads,
        };
        let tried = embedder.embed("a word to try", Purpose::Passage).map_err(|error| bad(error.to_string()))?;
        embedder.dimension = tried.vector.len();
        Ok(embedder)
    }

    pub fn id(&self) -> &ModelId {
        &self.id
    }

    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Maximum number of tokens of a text, including special tokens.
    pub fn max_tokens(&self) -> usize {
        self.reader.max_tokens()
    }

    /// The model supports only English; embeddings of other languages have low quality.
    pub fn is_english_only(&self) -> bool {
        self.english_only
    }

    pub fn embed(&self, text: &str, purpose: Purpose) -> Result<Embedding, Error> {
        let tokens = self.tokenize(text, purpose, 0)?;
        let mut embeddings = self.run(&[tokens])?;
        Ok(embeddings.remove(0))
    }

    /// Embeds many texts; the vectors are in the order of the texts. One text that cannot be embedded fails the whole
    /// call, and the error has its index.
    pub fn embed_many<T: AsRef<str>>(&self, texts: &[T], purpose: Purpose) -> Result<Vec<Embedding>, Error> {
        let texts = texts.iter().enumerate().map(|(index, text)| self.tokenize(text.as_ref(), purpose, index));
        self.run(&texts.collect::<Result<Vec<_>, _>>()?)
    }

    /// First step of embedding: tokenizes a text. `index` is only used in the error.
    pub fn tokenize(&self, text: &str, purpose: Purpose, index: usize) -> Result<TokenizedText, Error> {
        let prefix = match purpose {
            Purpose::Query => &self.query_prefix,
            Purpose::Passage => &self.passage_prefix,
        };
        if prefix.is_empty() || text.trim().is_empty() {
            return self.reader.tokenize(text, index);
        }
        self.reader.tokenize(&format!("{prefix}{text}"), index)
    }

    /// Byte ranges of the tokens of a text, in order, without a length limit. For chunking.
    pub fn offsets(&self, text: &str) -> Result<Vec<Range<usize>>, Error> {
        self.reader.offsets(text)
    }

    /// The tokenizer of this model, without the model.
    pub fn tokenizer(&self) -> Tokenizer {
        Tokenizer::new(self.reader.clone(), &self.passage_prefix)
    }

    /// Second step of embedding: runs the model.
    pub fn run(&self, texts: &[TokenizedText]) -> Result<Vec<Embedding>, Error> {
        self.run_with_progress(texts, &|| {})
    }

    /// Like [`Embedder::run`]; `goes_on` is called after every few texts, from any worker thread.
    pub fn run_with_progress(
        &self,
        texts: &[TokenizedText],
        goes_on: &(dyn Fn() + Sync),
    ) -> Result<Vec<Embedding>, Error> {
        for (index, text) in texts.iter().enumerate() {
            self.reader.check(text.ids.len(), index)?;
        }
        match &self.engine {
            Engine::Network { network, most_tokens_at_once } => {
                self.run_by_length(network, *most_tokens_at_once, texts, goes_on)
            }
            #[cfg(target_arch = "x86_64")]
            Engine::MiniLm(minilm) => self.run_parallel(minilm, texts, goes_on),
        }
    }

    /// Texts of equal length form a batch, because that needs no padding.
    fn run_by_length(
        &self,
        network: &RtenModel,
        most_tokens: usize,
        texts: &[TokenizedText],
        goes_on: &(dyn Fn() + Sync),
    ) -> Result<Vec<Embedding>, Error> {
        let mut by_length: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, text) in texts.iter().enumerate() {
            by_length.entry(text.ids.len()).or_default().push(index);
        }
        let mut embeddings = vec![None; texts.len()];
        for (length, indices) in by_length {
            for indices in indices.chunks((most_tokens / length).max(1)) {
                let ids: Vec<&[u32]> = indices.iter().map(|index| &*texts[*index].ids).collect();
                let output = network.run(&ids).map_err(|reason| self.run_error(reason))?;
                goes_on();
                let rows = output.numbers.chunks_exact(output.rows_per_text * output.width);
                for (index, rows) in indices.iter().zip(rows) {
                    embeddings[*index] = Some(self.pool(rows, output.width, &texts[*index], *index)?);
                }
            }
        }
        Ok(embeddings.into_iter().flatten().collect())
    }

    #[cfg(target_arch = "x86_64")]
    /// Each text separately, on as many threads as there are texts and cores.
    fn run_parallel(
        &self,
        minilm: &MiniLm,
        texts: &[TokenizedText],
        goes_on: &(dyn Fn() + Sync),
    ) -> Result<Vec<Embedding>, Error> {
        let embed = |(index, text): (usize, &TokenizedText)| {
            let states = minilm.states(&text.ids).map_err(|reason| self.run_error(reason))?;
            goes_on();
            self.pool(&states, minilm::WIDTH, text, index)
        };
        let tokens: usize = texts.iter().map(|text| text.ids.len()).sum();
        let threads = self.threads.min(texts.len()).min(tokens / MIN_TOKENS_PER_THREAD);
        if threads < 2 {
            return texts.iter().enumerate().map(embed).collect();
        }
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<(usize, Embedding)>, Error> {
            let mut done = Vec::new();
            while let index = next.fetch_add(1, Ordering::Relaxed)
                && let Some(text) = texts.get(index)
            {
                done.push((index, embed((index, text))?));
            }
            Ok(done)
        };
        let shares: Vec<_> = std::thread::scope(|scope| {
            // If no more threads can be spawned, the existing ones do all the work.
            let another = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (1..threads).filter_map(another).collect();
            let own = work();
            let others =
                others.into_iter().map(|other| other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            [own].into_iter().chain(others).collect()
        });
        let mut embeddings = Vec::with_capacity(texts.len());
        for share in shares {
            embeddings.extend(share?);
        }
        embeddings.sort_unstable_by_key(|(index, _)| *index);
        Ok(embeddings.into_iter().map(|(_, embedding)| embedding).collect())
    }

    /// Pools the rows of one text into its vector.
    fn pool(&self, rows: &[f32], width: usize, text: &TokenizedText, index: usize) -> Result<Embedding, Error> {
        // Zero only during the trial run of a new model.
        if self.dimension != 0 && width != self.dimension {
            let reason = "its dimension differs from previous vectors";
            return Err(Error::Unusable { model: self.id.to_string(), index, reason });
        }
        let vector = normalise(self.pooling.pool(rows, width)).ok_or_else(|| Error::Unusable {
            model: self.id.to_string(),
            index,
            reason: "its values are not finite, or all zero",
        })?;
        Ok(Embedding { model: self.id.clone(), vector, tokens: text.ids.len(), truncated: text.truncated })
    }

    fn run_error(&self, reason: String) -> Error {
        Error::Run { model: self.id.to_string(), reason }
    }
}
