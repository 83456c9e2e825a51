//! Answers that are given again: to a request that is the same, or to a question that means the same.
//!
//! Off unless the operator asks for it. Nobody gets what another caller was answered, nothing outlives the program, and
//! answers make way when the room is used up.

mod meaning;
mod question;
mod wording;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use corbie_infer::Purpose;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue};
use quick_cache::sync::{Cache as Store, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use sha2::{Digest, Sha256};

use crate::config::cache as config;
use crate::inference::Inference;
use crate::providers::openai::Received;
use meaning::{Meaning, Meanings};
use question::Question;

/// The answers of one program.
#[derive(Debug, Clone)]
pub(super) struct Cache(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: config::Cache,
    kept: Store<Key, Arc<Kept>, Weight>,
    meanings: Meanings,
    inference: Inference,
}

/// What an answer is found by: everything its request said, and who said it.
type Key = [u8; 32];

/// An answer as it was given.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) body: Bytes,
    /// It was given in pieces.
    pub(super) stream: bool,
    pub(super) provider: String,
    pub(super) model: String,
    at: Instant,
}

/// What became of a request here.
#[derive(Debug)]
pub(super) enum Found {
    Kept(Arc<Kept>, By),
    /// Nothing; the answer may be kept in its place.
    Nothing(Place),
}

/// How an answer was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The request is the same.
    Exact,
    /// The question means the same.
    Semantic,
}

/// Where an answer will be kept.
#[derive(Debug, Clone)]
pub(super) struct Place {
    key: Key,
    meaning: Option<Meaning>,
    cache: Cache,
    stores: bool,
}

/// What the caller wants of the cache, as HTTP has it.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    read: bool,
    store: bool,
}

/// A larger answer is not kept.
pub(super) const LARGEST: usize = 1 << 20;

impl Cache {
    /// None where the settings ask for none.
    pub(super) fn new(settings: &config::Cache, inference: &Inference) -> Option<Cache> {
        (settings.exact || settings.semantic).then(|| {
            Cache(Arc::new(Shared {
                kept: store(settings.max_bytes.bytes()),
                meanings: Meanings::default(),
                inference: inference.clone(),
                settings: settings.clone(),
            }))
        })
    }

    /// Looks for an answer.
    pub(super) async fn find(&self, received: &Received, caller: &str, headers: &HeaderMap) -> Found {
        let Shared { settings, .. } = &*self.0;
        let wanted = Wanted::of(headers);
        let key = key(caller, received.bytes());
        if settings.exact
            && wanted.read
            && let Some(kept) = self.get(&key)
        {
            return Found::Kept(kept, By::Exact);
        }
        let meaning = match settings.semantic && wanted.store {
            true => self.meaning(received, caller).await,
            false => None,
        };
        if let Some(kept) = meaning.as_ref().filter(|_| wanted.read).and_then(|meaning| self.nearest(meaning)) {
            return Found::Kept(kept, By::Semantic);
        }
        Found::Nothing(Place { key, meaning, cache: self.clone(), stores: wanted.store })
    }

    fn get(&self, key: &Key) -> Option<Arc<Kept>> {
        let kept = self.0.kept.get(key)?;
        if kept.at.elapsed() > self.0.settings.keep.get() {
            self.0.kept.remove(key);
            return None;
        }
        Some(kept)
    }

    /// The answer to the nearest question that still has one.
    fn nearest(&self, meaning: &Meaning) -> Option<Arc<Kept>> {
        let Shared { settings, meanings, .. } = &*self.0;
        loop {
            let key = meanings.nearest(meaning, settings.threshold as f32)?;
            match self.get(&key) {
                Some(kept) => return Some(kept),
                // It has made way, and must not hide one that has not.
                None => meanings.forget(&key),
            }
        }
    }

    /// What a request asks, if it is a question that another may be compared with. The vector is the one that a
    /// classification of the same question takes.
    async fn meaning(&self, received: &Received, caller: &str) -> Option<Meaning> {
        let Question { text, before } = Question::of(received)?;
        let embedding = self.0.inference.embed(vec![text.clone()], Purpose::Query).await.ok()?.pop()?;
        // What the model did not read may be all that is different.
        if embedding.truncated {
            return None;
        }
        Some(Meaning::new(key(caller, before.as_bytes()), &text, embedding))
    }
}

impl Place {
    /// Keeps an answer.
    pub(super) fn keep(self, body: Bytes, stream: bool, provider: &str, model: &str) {
        let Place { key, meaning, cache, stores } = self;
        let is_findable = cache.0.settings.exact || meaning.is_some();
        if !stores || !is_findable || body.len() > LARGEST {
            return;
        }
        // What came may be a part of something larger, or have room to grow; neither is counted.
        let body = Bytes::copy_from_slice(&body);
        let kept = Kept { body, stream, provider: provider.into(), model: model.into(), at: Instant::now() };
        cache.0.kept.insert(key, Arc::new(kept));
        if let Some(meaning) = meaning {
            cache.0.meanings.keep(meaning, key);
        }
    }
}

impl By {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            By::Exact => "exact",
            By::Semantic => "semantic",
        }
    }
}

impl Wanted {
    fn of(headers: &HeaderMap) -> Wanted {
        let says = |wanted: &str| {
            let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
            values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(wanted))
        };
        let no_store = says("no-store");
        Wanted { read: !no_store && !says("no-cache"), store: !no_store }
    }
}

/// Room for so many bytes, in one piece: split among locks as is usual, none of the parts might be large enough for a
/// large answer, and the more processors a machine has the smaller they are.
fn store(bytes: usize) -> Store<Key, Arc<Kept>, Weight> {
    /// An answer of ordinary length.
    const ORDINARY: usize = 2048;
    let mut options = OptionsBuilder::new();
    options.estimated_items_capacity(bytes / ORDINARY + 1).weight_capacity(bytes as u64).shards(1);
    let options = options.build().expect("both sizes are given");
    Store::with_options(options, Weight, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

/// Nobody can find an answer of somebody else's: the caller is a part of what it is found by.
fn key(caller: &str, said: &[u8]) -> Key {
    let mut digest = Sha256::new();
    digest.update((caller.len() as u64).to_le_bytes());
    digest.update(caller);
    digest.update(said);
    digest.finalize().into()
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<Key, Arc<Kept>> for Weight {
    fn weight(&self, _: &Key, kept: &Arc<Kept>) -> u64 {
        /// What is around the answer.
        const AROUND: usize = 256;
        (kept.body.len() + AROUND) as u64
    }
}
