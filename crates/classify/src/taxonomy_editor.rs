//! Taxonomy editor: validates, tries and saves taxonomies without touching the live one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use corbie_mcp::{Server, ToolError};

use super::draft_taxonomy::{self, DraftResult, DraftTaxonomy, TaxonomyDiagnostic};
use super::method::MethodContext;
use super::taxonomy_file_store::{self, ReplaceError, Replacement};
use super::taxonomy_publisher::{EditLockError, TaxonomyPublisher};
use super::{Classification, Taxonomy, TaxonomySnapshot, reload};
use corbie_config::ConfigError;
use corbie_util::concurrency_limit::{ConcurrencyLimit, ConcurrencyPermit, QueueFull};

/// Cheap to clone; all clones share one state.
#[derive(Debug, Clone)]
pub(super) struct TaxonomyEditor(Arc<Inner>);

/// The other settings that affect categories.
#[derive(Debug, Clone, Default)]
pub struct EditorContext {
    /// Whether an external MCP server classifies routed prompts.
    pub external_classifier: bool,
    /// Settings that name a category, which must not be removed, and the category. For example, prompts of a category in
    /// `router.restricted_categories` stay on local providers.
    pub required_categories: Vec<(&'static str, String)>,
    /// Publishes saved taxonomies to other instances, if there are any.
    pub publisher: Option<Arc<dyn TaxonomyPublisher>>,
}

#[derive(Debug)]
struct Inner {
    classification: Classification,
    context: EditorContext,
    check_limit: ConcurrencyLimit,
    trial_limit: ConcurrencyLimit,
    /// Serializes changes of the file.
    save_lock: tokio::sync::Mutex<()>,
}

/// Concurrent checks. Most take milliseconds; one full of patterns can take seconds.
const MAX_CONCURRENT_CHECKS: usize = 2;
/// Concurrent trial trainings, in addition to the live taxonomy.
const MAX_CONCURRENT_TRIALS: usize = 1;

/// Warning shown when an external server classifies the prompts.
const EXTERNAL_CLASSIFIER_WARNING: &str = "routed prompts are categorized by the server in \
`classification.mcp_server`; this taxonomy is used only by the tools and while that server is down";

/// A valid taxonomy, or the diagnostics of its text.
pub(super) type CheckResult = Result<Taxonomy, Vec<TaxonomyDiagnostic>>;

impl TaxonomyEditor {
    pub(super) fn new(classification: Classification, around: EditorContext) -> TaxonomyEditor {
        let (looks, trials) =
            (ConcurrencyLimit::new(MAX_CONCURRENT_CHECKS), ConcurrencyLimit::new(MAX_CONCURRENT_TRIALS));
        TaxonomyEditor(Arc::new(Inner {
            classification,
            context: around,
            check_limit: looks,
            trial_limit: trials,
            save_lock: tokio::sync::Mutex::default(),
        }))
    }

    pub(super) fn classification(&self) -> &Classification {
        &self.0.classification
    }

    /// Warning if routed prompts do not use these categories.
    pub(super) fn external_classifier_warning(&self) -> Option<&'static str> {
        self.0.context.external_classifier.then_some(EXTERNAL_CLASSIFIER_WARNING)
    }

    /// The taxonomy file; `None` for the built-in taxonomy.
    pub(super) fn file(&self) -> Option<PathBuf> {
        self.classification().taxonomy_file().map(Path::to_owned)
    }

    /// The file that a first save creates, if the built-in taxonomy is in use.
    pub(super) fn new_file(&self) -> Option<PathBuf> {
        self.classification().settings().new_taxonomy.clone().filter(|_| self.file().is_none())
    }

    /// A permit for work that takes many seconds.
    pub(super) async fn acquire_trial_permit(&self) -> Result<ConcurrencyPermit, QueueFull> {
        self.0.trial_limit.acquire().await
    }

    /// Reports all errors in a text. Changes nothing.
    pub(super) async fn check(&self, text: String) -> Result<CheckResult, QueueFull> {
        if text.len() > taxonomy_file_store::MAX_EDITABLE_BYTES {
            let message = format!(
                "the text is larger than {} MiB; edit the file directly",
                taxonomy_file_store::MAX_EDITABLE_BYTES >> 20
            );
            return Ok(Err(vec![TaxonomyDiagnostic::warning(message)]));
        }
        let turn = self.0.check_limit.acquire().await?;
        let (file, published) = (self.file(), self.classification().snapshot());
        let (stable, editor) = (self.classification().settings().stable_indices, self.clone());
        let checked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let taxonomy = draft_taxonomy::parse(&text, file.as_deref())?;
            editor.0.context.check(&taxonomy)?;
            if stable {
                let kept = taxonomy.clone().with_stable_ids(&published.taxonomy);
                kept.map_err(|error| draft_taxonomy::diagnostics(&error))?;
            }
            Ok(taxonomy)
        });
        Ok(checked.await.unwrap_or_else(|_| Err(draft_taxonomy::diagnostics(&Taxonomy::unreadable()))))
    }

    /// Classifies texts with a draft taxonomy and the configured method.
    pub(super) async fn classify_with_draft(
        &self,
        taxonomy: Taxonomy,
        texts: &[String],
    ) -> Result<(DraftTaxonomy, Vec<DraftResult>), QueueFull> {
        let turn = self.acquire_trial_permit().await?;
        let classification = self.classification();
        let method = classification.snapshot().ready_method();
        let before = method.and_then(|method| method.trained().cloned());
        let with = MethodContext { permit: Some(&turn), ..classification.method_context() };
        let candidate = DraftTaxonomy::train(taxonomy, before, with).await.ok_or(QueueFull)?;
        let tried = candidate.classify(texts, with).await;
        Ok((candidate, tried))
    }

    /// Writes a checked text to the file. Runs to completion even if the caller disconnects.
    pub(super) async fn replace(
        &self,
        file: PathBuf,
        text: String,
        expected: Option<String>,
    ) -> Result<Replacement, ReplaceError> {
        let editor = self.clone();
        let written = tokio::spawn(async move {
            let _saving = editor.0.save_lock.lock().await;
            match &editor.0.context.publisher {
                Some(publisher) => {
                    publish_and_replace(&**publisher, editor.classification(), file, text, expected).await
                }
                None => run_blocking(move || taxonomy_file_store::replace(&file, &text, expected.as_deref())).await,
            }
        });
        written.await.unwrap_or_else(|_| Err(ReplaceError::stopped()))
    }

    /// Writes a checked text to a new file, which replaces the built-in taxonomy.
    pub(super) async fn create(
        &self,
        file: PathBuf,
        text: String,
        expected: Option<String>,
    ) -> Result<Replacement, ReplaceError> {
        let editor = self.clone();
        let written = tokio::spawn(async move {
            let _saving = editor.0.save_lock.lock().await;
            let path = file.clone();
            let created = run_blocking(move || taxonomy_file_store::create(&path, &text, expected.as_deref())).await?;
            editor.classification().set_created_file(file);
            Ok(created)
        });
        written.await.unwrap_or_else(|_| Err(ReplaceError::stopped()))
    }

    /// Reloads the file. Runs to completion even if the caller disconnects: the file is already written.
    pub(super) async fn reload(&self, server: &Server) -> Result<Arc<TaxonomySnapshot>, ConfigError> {
        let (classification, server) = (self.classification().clone(), server.clone());
        let taken = tokio::spawn(async move { reload::reload_and_notify(&classification, &server).await });
        taken.await.unwrap_or_else(|_| Err(Taxonomy::unreadable()))
    }
}

/// Publishes a text to all instances, then writes the local file. When the call returns, every instance can read the
/// new text.
async fn publish_and_replace(
    publisher: &dyn TaxonomyPublisher,
    classification: &Classification,
    file: PathBuf,
    text: String,
    expected: Option<String>,
) -> Result<Replacement, ReplaceError> {
    let mut edit_lock = publisher.lock().await.map_err(|why| match why {
        EditLockError::Unavailable(why) => ReplaceError::Unavailable(why),
        EditLockError::Unwritable(why) => ReplaceError::Unwritable(why),
    })?;
    let (looked_at, version) = (file.clone(), expected.clone());
    run_blocking(move || taxonomy_file_store::check(&looked_at, version.as_deref())).await?;
    let published = edit_lock.publish(&text).await.map_err(ReplaceError::InDoubt)?;
    classification.set_category_ids(published.ok_or(ReplaceError::Conflict)?);
    // The text is committed now. If the local write fails, the sync loop writes it later.
    let saved = taxonomy_file_store::version(&text);
    let replaced = run_blocking(move || taxonomy_file_store::replace(&file, &text, expected.as_deref())).await;
    let replaced = match replaced {
        Ok(replaced) => replaced,
        Err(error) => {
            tracing::warn!(%error, "taxonomy saved to the database, but not yet written to the local file");
            return Ok(Replacement { version: saved, backup: None });
        }
    };
    edit_lock.finish().await;
    Ok(replaced)
}

/// Runs blocking I/O on a blocking thread.
async fn run_blocking<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, ReplaceError> + Send + 'static,
) -> Result<T, ReplaceError> {
    tokio::task::spawn_blocking(run).await.unwrap_or_else(|_| Err(ReplaceError::stopped()))
}

impl EditorContext {
    /// Without its category, a prompt that must stay local would be classified differently and sent out, and the next
    /// start would fail.
    fn check(&self, taxonomy: &Taxonomy) -> Result<(), Vec<TaxonomyDiagnostic>> {
        let is_missing =
            |name: &String| !self.external_classifier && !taxonomy.names().any(|known| known == name.as_str());
        let missing = self.required_categories.iter().filter(|(_, name)| is_missing(name)).map(|(key, name)| {
            TaxonomyDiagnostic::warning(format!(
                "category `{name}` is missing, but `{key}` in the configuration names it"
            ))
        });
        let missing: Vec<TaxonomyDiagnostic> = missing.collect();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
}

/// The error of a tool whose queue is full.
pub(super) fn busy(error: QueueFull) -> ToolError {
    ToolError::new("busy", error.to_string())
}
