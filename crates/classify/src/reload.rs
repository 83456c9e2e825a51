//! Hot reload of the taxonomy, on file change and on SIGHUP.
//!
//! A new version is read, validated and trained in the background, then swapped in atomically. A file with errors only
//! produces log messages.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use corbie_mcp::{AuditEvent, Event, Server};

use super::method::ClassifierBackend;
use super::{Classification, Taxonomy, TaxonomySnapshot};
use corbie_config::ConfigError;
use corbie_config::classification as config;
use corbie_util::file_watch::{FileFingerprint, HangupSignal, POLL_INTERVAL};
use corbie_util::lock::lock;

/// Retry interval after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(60);

/// URI of the categories resource; its content changes with every reload.
pub const CATEGORIES_URI: &str = "corbie://categories";

impl Classification {
    /// Triggers a reload without waiting for the next poll.
    pub fn request_reload(&self) {
        self.0.reload_requested.notify_one();
    }

    /// Sets the category indices shared by all instances, effective with the next reload. Returns whether they are new.
    pub fn set_category_ids(&self, places: Vec<String>) -> bool {
        let mut kept = lock(&self.0.category_ids);
        if places.is_empty() || kept.as_deref() == Some(&places[..]) {
            return false;
        }
        *kept = Some(places.into());
        true
    }

    /// Applies the last known shared category indices before the first request.
    pub fn apply_category_ids(&self, places: Vec<String>) {
        if !self.set_category_ids(places) || !self.0.settings.stable_indices {
            return;
        }
        let (places, before) = (lock(&self.0.category_ids).clone().unwrap_or_default(), self.snapshot());
        if let Ok(taxonomy) = before.taxonomy.clone().with_shared_ids(&places) {
            self.0.snapshot.store(Arc::new(TaxonomySnapshot::new(taxonomy, self.0.settings.cache_entries)));
        }
    }

    /// Reloads the taxonomy and publishes a new snapshot. On an error, the current snapshot stays.
    pub async fn reload(&self) -> Result<Arc<TaxonomySnapshot>, ConfigError> {
        let mut read_at = self.0.reloading.lock().await;
        let file = self.taxonomy_file().map(Path::to_owned);
        *read_at = FileFingerprint::of(file.as_deref());
        let before = self.snapshot();
        let (settings, old, places) = (self.0.settings.clone(), before.clone(), lock(&self.0.category_ids).clone());
        // Reading a large file and compiling its rules block the thread.
        let read =
            tokio::task::spawn_blocking(move || build_snapshot(file.as_deref(), &settings, &old, places.as_deref()))
                .await;
        let read = read.unwrap_or_else(|_| Err(Taxonomy::unreadable()));
        *lock(&self.0.rejection) = read.as_ref().err().map(summary);
        let next = match read.inspect_err(|_| self.0.metrics.record_reload("refused"))? {
            Some(next) => Arc::new(next),
            None => return Ok(before),
        };
        // The trained classifier may be the reason for the failure, so it is not reused.
        let method = before.ready_method().filter(|_| before.impairment().is_none());
        let learned = method.and_then(|method| method.trained().cloned());
        // Trained before the swap: callers use the old snapshot and never wait.
        next.method(learned, self.method_context()).await;
        self.0.snapshot.store(next.clone());
        self.0.metrics.record_snapshot_change(&before.taxonomy, &next.taxonomy);
        Ok(next)
    }
}

/// Builds the new snapshot; `None` if the file is unchanged and the current method works.
fn build_snapshot(
    file: Option<&Path>,
    settings: &config::Classification,
    before: &TaxonomySnapshot,
    places: Option<&[String]>,
) -> Result<Option<TaxonomySnapshot>, ConfigError> {
    let taxonomy = Taxonomy::open(file)?;
    let taxonomy = match (settings.stable_indices, places) {
        (true, Some(places)) => taxonomy.with_shared_ids(places)?,
        (true, None) => taxonomy.with_stable_ids(&before.taxonomy)?,
        (false, _) => taxonomy,
    };
    let same = taxonomy == before.taxonomy && before.impairment().is_none();
    Ok((!same).then(|| TaxonomySnapshot::new(taxonomy, settings.cache_entries)))
}

/// The first error and the number of further ones, for `/health`.
fn summary(error: &ConfigError) -> String {
    let first = error.diagnostics.first().map(ToString::to_string).unwrap_or_default();
    match error.diagnostics.len() {
        0 | 1 => first,
        more => format!("{first} (and {} more)", more - 1),
    }
}

/// Registers the signal handler when called; the returned future watches the signal and the file until it is dropped.
pub fn watch(classification: Classification, server: Server) -> impl Future<Output = ()> + Send {
    // Not `Changes`, which tracks the file from its own start: a save also reads the file, and a second reload would be
    // redundant.
    let mut hangups = HangupSignal::listen();
    async move {
        let is_watching = classification.settings().watch;
        let mut seen = None;
        let mut looks = tokio::time::interval(POLL_INTERVAL);
        let mut retries = tokio::time::interval(RETRY_INTERVAL);
        for timer in [&mut looks, &mut retries] {
            timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        }
        loop {
            tokio::select! {
                () = hangups.recv() => {}
                () = classification.0.reload_requested.notified() => {}
                // A model that failed to load may be available by now.
                _ = retries.tick() => {
                    let published = classification.snapshot();
                    let Some(method) = published.ready_method().filter(|_| published.impairment().is_some()) else {
                        continue;
                    };
                    // A hanging model cannot be reloaded; its fallback stays in use.
                    let is_hopeless = classification.method_context().inference.executor().is_stuck();
                    if is_hopeless && !matches!(*method, ClassifierBackend::Sequence(_)) {
                        continue;
                    }
                }
                _ = looks.tick(), if is_watching && classification.taxonomy_file().is_some() => {
                    let now = FileFingerprint::of(classification.taxonomy_file());
                    // A recently changed file may be half written. It is read once it is unchanged between two polls.
                    let still = now == std::mem::replace(&mut seen, now);
                    if !still || now == *classification.0.reloading.lock().await {
                        continue;
                    }
                }
            }
            // The error has been logged.
            let _ = reload_and_notify(&classification, &server).await;
        }
    }
}

/// Reloads the taxonomy, publishes it and notifies clients.
pub(super) async fn reload_and_notify(
    classification: &Classification,
    server: &Server,
) -> Result<Arc<TaxonomySnapshot>, ConfigError> {
    let before = classification.snapshot();
    let read = classification.reload().await;
    match &read {
        Ok(now) if Arc::ptr_eq(&before, now) => tracing::info!("taxonomy unchanged"),
        Ok(now) => {
            let taxonomy = &now.taxonomy;
            for remark in taxonomy.warnings() {
                tracing::warn!("{remark}");
            }
            let was_there = |name: &str| before.taxonomy.categories.iter().any(|old| old.name == name && !old.retired);
            let gone = taxonomy.categories.iter().filter(|category| category.retired && was_there(&category.name));
            for gone in gone {
                tracing::warn!(category = gone.name, "was removed; its index stays reserved until the next restart");
            }
            tracing::info!(categories = taxonomy.categories.len(), "taxonomy reloaded");
            server.audit().record_event(AuditEvent::new("reload").detail("taxonomy reloaded"));
            announce(server);
        }
        Err(error) => {
            server.audit().record_event(AuditEvent::new("reload_refused").detail("new taxonomy has errors"));
            tracing::error!("rejected the new taxonomy and kept the previous one:\n{error}");
        }
    }
    read
}

/// Notifies clients that their cached lists are stale.
fn announce(server: &Server) {
    server.publish(Event::ToolsChanged);
    server.publish(Event::ResourceUpdated(CATEGORIES_URI.into()));
}
