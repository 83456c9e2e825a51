//! Response cache: exact match on the request, or semantic match on the question.
//!
//! Disabled by default. Responses are never shared between callers, exist only in memory, and are evicted when the size
//! limit is reached, approximately the least recently used first (`quick_cache`: close to LRU, and without its lock).

mod lexical_guard;
mod semantic;
mod semantic_eligibility;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use corbie_infer::Purpose;
use http::header::CACHE_CONTROL;
use http::{HeaderMap, HeaderValue};
use quick_cache::sync::{Cache as Store, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use sha2::{Digest, Sha256};

use corbie_classify::inference::Inference;
use corbie_config::cache as config;
use corbie_llm::openai::RawChatRequest;
use semantic::{SemanticIndex, SemanticKey};
use semantic_eligibility::EligibleRequest;

/// The response cache of this process.
#[derive(Debug, Clone)]
pub(super) struct ResponseCache(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: config::Cache,
    responses: Store<CacheKey, Arc<CachedResponse>, Weight>,
    semantic: SemanticIndex,
    inference: Inference,
}

/// Hash of the caller and the complete request.
type CacheKey = [u8; 32];

/// A cached response.
#[derive(Debug)]
pub(super) struct CachedResponse {
    pub(super) body: Bytes,
    /// It was streamed.
    pub(super) stream: bool,
    pub(super) provider: String,
    pub(super) model: String,
    stored_at: Instant,
}

/// Result of a lookup.
#[derive(Debug)]
pub(super) enum CacheLookup {
    Hit(Arc<CachedResponse>, CacheMatch),
    /// Miss. The slot stores the response.
    Miss(CacheSlot),
}

/// Kind of match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CacheMatch {
    /// The request is identical.
    Exact,
    /// The question has the same meaning.
    Semantic,
}

/// Slot for the response to a request.
#[derive(Debug, Clone)]
pub(super) struct CacheSlot {
    key: CacheKey,
    semantic: Option<SemanticKey>,
    cache: ResponseCache,
    may_store: bool,
}

/// The caller's `Cache-Control` directives.
#[derive(Debug, Clone, Copy)]
struct CacheDirectives {
    read: bool,
    store: bool,
}

/// A larger response is not cached.
pub(super) const MAX_RESPONSE_BYTES: usize = 1 << 20;

impl ResponseCache {
    /// `None` if both kinds of caching are disabled.
    pub(super) fn new(settings: &config::Cache, inference: &Inference) -> Option<ResponseCache> {
        (settings.exact || settings.semantic).then(|| {
            ResponseCache(Arc::new(Inner {
                responses: new_store(settings.max_bytes.bytes()),
                semantic: SemanticIndex::default(),
                inference: inference.clone(),
                settings: settings.clone(),
            }))
        })
    }

    /// Looks up a response.
    pub(super) async fn lookup(&self, received: &RawChatRequest, caller: &str, headers: &HeaderMap) -> CacheLookup {
        let Inner { settings, .. } = &*self.0;
        let wanted = CacheDirectives::of(headers);
        let key = cache_key(caller, received.bytes());
        if settings.exact
            && wanted.read
            && let Some(kept) = self.get(&key)
        {
            return CacheLookup::Hit(kept, CacheMatch::Exact);
        }
        let meaning = match settings.semantic && wanted.store {
            true => self.semantic_key(received, caller).await,
            false => None,
        };
        if let Some(kept) = meaning.as_ref().filter(|_| wanted.read).and_then(|meaning| self.nearest(meaning)) {
            return CacheLookup::Hit(kept, CacheMatch::Semantic);
        }
        CacheLookup::Miss(CacheSlot { key, semantic: meaning, cache: self.clone(), may_store: wanted.store })
    }

    fn get(&self, key: &CacheKey) -> Option<Arc<CachedResponse>> {
        let kept = self.0.responses.get(key)?;
        if kept.stored_at.elapsed() > self.0.settings.ttl.get() {
            self.0.responses.remove(key);
            return None;
        }
        Some(kept)
    }

    /// The response to the most similar question that is still cached.
    fn nearest(&self, meaning: &SemanticKey) -> Option<Arc<CachedResponse>> {
        let Inner { settings, semantic: meanings, .. } = &*self.0;
        loop {
            let key = meanings.nearest(meaning, settings.threshold as f32)?;
            match self.get(&key) {
                Some(kept) => return Some(kept),
                // The response was evicted. Removing its question lets the search reach the next one.
                None => meanings.remove(&key),
            }
        }
    }

    /// The embedded question of a request, if the request is suitable for semantic matching. The inference module
    /// reuses the embedding for the classification of the same question.
    async fn semantic_key(&self, received: &RawChatRequest, caller: &str) -> Option<SemanticKey> {
        let EligibleRequest { question: text, context: before } = EligibleRequest::of(received)?;
        let embedding = self.0.inference.embed(vec![text.clone()], Purpose::Query).await.ok()?.pop()?;
        // A truncated embedding ignores text that may be the only difference.
        if embedding.truncated {
            return None;
        }
        Some(SemanticKey::new(cache_key(caller, before.as_bytes()), &text, embedding))
    }
}

impl CacheSlot {
    /// Stores a response.
    pub(super) fn store(self, body: Bytes, stream: bool, provider: &str, model: &str) {
        let CacheSlot { key, semantic: meaning, cache, may_store: stores } = self;
        let is_findable = cache.0.settings.exact || meaning.is_some();
        if !stores || !is_findable || body.len() > MAX_RESPONSE_BYTES {
            return;
        }
        // Copies the bytes, because a slice keeps its whole buffer alive and excess capacity is not counted.
        let body = Bytes::copy_from_slice(&body);
        let kept =
            CachedResponse { body, stream, provider: provider.into(), model: model.into(), stored_at: Instant::now() };
        cache.0.responses.insert(key, Arc::new(kept));
        if let Some(meaning) = meaning {
            cache.0.semantic.insert(meaning, key);
        }
    }
}

impl CacheMatch {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            CacheMatch::Exact => "exact",
            CacheMatch::Semantic => "semantic",
        }
    }
}

impl CacheDirectives {
    fn of(headers: &HeaderMap) -> CacheDirectives {
        let says = |wanted: &str| {
            let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
            values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(wanted))
        };
        let no_store = says("no-store");
        CacheDirectives { read: !no_store && !says("no-cache"), store: !no_store }
    }
}

/// One shard with the given capacity. With the usual number of shards, which grows with the number of processors, a
/// large response may exceed the capacity of its shard.
fn new_store(bytes: usize) -> Store<CacheKey, Arc<CachedResponse>, Weight> {
    /// Typical size of a response.
    const ORDINARY: usize = 2048;
    let mut options = OptionsBuilder::new();
    options.estimated_items_capacity(bytes / ORDINARY + 1).weight_capacity(bytes as u64).shards(1);
    let options = options.build().expect("both sizes are given");
    Store::with_options(options, Weight, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

/// The caller is part of the key, so that responses are never shared between callers.
fn cache_key(caller: &str, said: &[u8]) -> CacheKey {
    let mut digest = Sha256::new();
    digest.update((caller.len() as u64).to_le_bytes());
    digest.update(caller);
    digest.update(said);
    digest.finalize().into()
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<CacheKey, Arc<CachedResponse>> for Weight {
    fn weight(&self, _: &CacheKey, kept: &Arc<CachedResponse>) -> u64 {
        /// Overhead of an entry.
        const AROUND: usize = 256;
        (kept.body.len() + AROUND) as u64
    }
}
