//! Response cache: exact match on the request, or semantic match on the question.
//!
//! Disabled by default. Responses are never shared between callers, exist only in memory, and are evicted when the size
//! limit is reached.

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

/// The response cache of this process.
#[derive(Debug, Clone)]
pub(super) struct Cache(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: config::Cache,
    kept: Store<Key, Arc<Kept>, Weight>,
    meanings: Meanings,
    inference: Inference,
}

/// Hash of the caller and the complete request.
type Key = [u8; 32];

/// A cached response.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) body: Bytes,
    /// It was streamed.
    pub(super) stream: bool,
    pub(super) provider: String,
    pub(super) model: String,
    at: Instant,
}

/// Result of a lookup.
#[derive(Debug)]
pub(super) enum Found {
    Kept(Arc<Kept>, By),
    /// Miss. The slot stores the response.
    Nothing(Place),
}

/// Kind of match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// The request is identical.
    Exact,
    /// The question has the same meaning.
    Semantic,
}

/// Slot for the response to a request.
#[derive(Debug, Clone)]
pub(super) struct Place {
    key: Key,
    meaning: Option<Meaning>,
    cache: Cache,
    stores: bool,
}

/// The caller's `Cache-Control` directives.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    read: bool,
    store: bool,
}

/// A larger response is not cached.
pub(super) const LARGEST: usize = 1 << 20;

impl Cache {
    /// `None` if both kinds of caching are disabled.
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

    /// Looks up a response.
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
        if kept.at.elapsed() > self.0.settings.ttl.get() {
            self.0.kept.remove(key);
            return None;
        }
        Some(kept)
    }

    /// The response to the most similar question that is still cached.
    fn nearest(&self, meaning: &Meaning) -> Option<Arc<Kept>> {
        let Shared { settings, meanings, .. } = &*self.0;
        loop {
            let key = meanings.nearest(meaning, settings.threshold as f32)?;
            match self.get(&key) {
                Some(kept) => return Some(kept),
                // The response was evicted. Removing its question lets the search reach the next one.
                None => meanings.forget(&key),
            }
        }
    }

    /// The embedded question of a request, if the request is suitable for semantic matching. The inference module
    /// reuses the embedding for the classification of the same question.
    async fn meaning(&self, received: &Received, caller: &str) -> Option<Meaning> {
        let Question { text, before } = Question::of(received)?;
        let embedding = self.0.inference.embed(vec![text.clone()], Purpose::Query).await.ok()?.pop()?;
        // A truncated embedding ignores text that may be the only difference.
        if embedding.truncated {
            return None;
        }
        Some(Meaning::new(key(caller, before.as_bytes()), &text, embedding))
    }
}

impl Place {
    /// Stores a response.
    pub(super) fn keep(self, body: Bytes, stream: bool, provider: &str, model: &str) {
        let Place { key, meaning, cache, stores } = self;
        let is_findable = cache.0.settings.exact || meaning.is_some();
        if !stores || !is_findable || body.len() > LARGEST {
            return;
        }
        // Copies the bytes, because a slice keeps its whole buffer alive and excess capacity is not counted.
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

/// One shard with the given capacity. With the usual number of shards, which grows with the number of processors, a
/// large response may exceed the capacity of its shard.
fn store(bytes: usize) -> Store<Key, Arc<Kept>, Weight> {
    /// Typical size of a response.
    const ORDINARY: usize = 2048;
    let mut options = OptionsBuilder::new();
    options.estimated_items_capacity(bytes / ORDINARY + 1).weight_capacity(bytes as u64).shards(1);
    let options = options.build().expect("both sizes are given");
    Store::with_options(options, Weight, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

/// The caller is part of the key, so that responses are never shared between callers.
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
        /// Overhead of an entry.
        const AROUND: usize = 256;
        (kept.body.len() + AROUND) as u64
    }
}
