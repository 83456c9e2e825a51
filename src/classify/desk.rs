//! Taxonomy editor: validates, tries and saves taxonomies without touching the live one.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use corbie_mcp::{Server, ToolError};

use super::candidate::{self, Candidate, Finding, Tried};
use super::kept::{self, NotReplaced, Replaced};
use super::method::With;
use super::turns::{Busy, Turn, Turns};
use super::{Classification, Published, Taxonomy, reload};
use crate::config::ConfigError;
use crate::shared_files::{Kind, NoTurn, SharedFiles};

/// Cheap to clone; all clones share one state.
#[derive(Debug, Clone)]
pub(super) struct Desk(Arc<Shared>);

/// The other settings that affect categories.
#[derive(Debug, Clone, Default)]
pub struct Around {
    /// Whether an external MCP server classifies routed prompts.
    pub elsewhere: bool,
    /// Categories that must not be removed: their prompts stay on local providers (`router.restricted_categories`).
    pub stay: BTreeSet<String>,
    /// Synchronization with other instances, if configured.
    pub shared: Option<SharedFiles>,
}

#[derive(Debug)]
struct Shared {
    classification: Classification,
    around: Around,
    looks: Turns,
    trials: Turns,
    /// Serializes changes of the file.
    saving: tokio::sync::Mutex<()>,
}

/// Concurrent checks. Most take milliseconds; one full of patterns can take seconds.
const LOOKS_AT_A_TIME: usize = 2;
/// Concurrent trial trainings, in addition to the live taxonomy.
const TRIALS_AT_A_TIME: usize = 1;

/// Warning shown when an external server classifies the prompts.
const ELSEWHERE: &str = "prompts that are routed get their categories from the server in `classification.mcp_server`; \
this taxonomy counts for the tools, and while that server is down";

/// A valid taxonomy, or the diagnostics of its text.
pub(super) type Checked = Result<Taxonomy, Vec<Finding>>;

impl Desk {
    pub(super) fn new(classification: Classification, around: Around) -> Desk {
        let (looks, trials) = (Turns::new(LOOKS_AT_A_TIME), Turns::new(TRIALS_AT_A_TIME));
        Desk(Arc::new(Shared { classification, around, looks, trials, saving: tokio::sync::Mutex::default() }))
    }

    pub(super) fn classification(&self) -> &Classification {
        &self.0.classification
    }

    /// Warning if routed prompts do not use these categories.
    pub(super) fn elsewhere(&self) -> Option<&'static str> {
        self.0.around.elsewhere.then_some(ELSEWHERE)
    }

    /// The configured taxonomy file.
    pub(super) fn file(&self) -> Option<PathBuf> {
        self.classification().settings().taxonomy.clone()
    }

    /// A permit for work that takes many seconds.
    pub(super) async fn turn(&self) -> Result<Turn, Busy> {
        self.0.trials.take().await
    }

    /// Reports all errors in a text. Changes nothing.
    pub(super) async fn check(&self, text: String) -> Result<Checked, Busy> {
        if text.len() > kept::MOST_BYTES {
            let message = format!("the text is larger than {} MiB; edit the file itself", kept::MOST_BYTES >> 20);
            return Ok(Err(vec![Finding::remark(message)]));
        }
        let turn = self.0.looks.take().await?;
        let (file, published) = (self.file(), self.classification().published());
        let (stable, desk) = (self.classification().settings().stable_indices, self.clone());
        let checked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let taxonomy = candidate::read(&text, file.as_deref())?;
            desk.0.around.check(&taxonomy)?;
            if stable {
                let kept = taxonomy.clone().keeping_places_of(&published.taxonomy);
                kept.map_err(|error| candidate::mistakes(&error))?;
            }
            Ok(taxonomy)
        });
        Ok(checked.await.unwrap_or_else(|_| Err(candidate::mistakes(&Taxonomy::unreadable()))))
    }

    /// Classifies texts with a draft taxonomy and the configured method.
    pub(super) async fn try_out(&self, taxonomy: Taxonomy, texts: &[String]) -> Result<(Candidate, Vec<Tried>), Busy> {
        let turn = self.turn().await?;
        let classification = self.classification();
        let method = classification.published().method_now();
        let before = method.and_then(|method| method.learned().cloned());
        let with = With { turn: Some(&turn), ..classification.with_settings() };
        let candidate = Candidate::learn(taxonomy, before, with).await.ok_or(Busy)?;
        let tried = candidate.ask(texts, with).await;
        Ok((candidate, tried))
    }

    /// Writes a checked text to the file. Runs to completion even if the caller disconnects.
    pub(super) async fn replace(
        &self,
        file: PathBuf,
        text: String,
        expected: Option<String>,
    ) -> Result<Replaced, NotReplaced> {
        let desk = self.clone();
        let written = tokio::spawn(async move {
            let _saving = desk.0.saving.lock().await;
            match &desk.0.around.shared {
                Some(shared) => for_all(shared, desk.classification(), file, text, expected).await,
                None => aside(move || kept::replace(&file, &text, expected.as_deref())).await,
            }
        });
        written.await.unwrap_or_else(|_| Err(NotReplaced::stopped()))
    }

    /// Reloads the file. Runs to completion even if the caller disconnects: the file is already written.
    pub(super) async fn take_up(&self, server: &Server) -> Result<Arc<Published>, ConfigError> {
        let (classification, server) = (self.classification().clone(), server.clone());
        let taken = tokio::spawn(async move { reload::take_up(&classification, &server).await });
        taken.await.unwrap_or_else(|_| Err(Taxonomy::unreadable()))
    }
}

/// Publishes a text to all instances, then writes the local file. When the call returns, every instance can read the
/// new text.
async fn for_all(
    shared: &SharedFiles,
    classification: &Classification,
    file: PathBuf,
    text: String,
    expected: Option<String>,
) -> Result<Replaced, NotReplaced> {
    let turn = shared.turn(Kind::Taxonomy).await.map_err(|why| match why {
        NoTurn::Away(why) => NotReplaced::Away(why),
        NoTurn::Unwritable(why) => NotReplaced::Unwritable(why),
    })?;
    let (looked_at, version) = (file.clone(), expected.clone());
    aside(move || kept::check(&looked_at, version.as_deref())).await?;
    let sent = turn.send(&text).await.map_err(NotReplaced::InDoubt)?.ok_or(NotReplaced::Changed)?;
    classification.keep_places(sent.places.clone());
    // The text is committed now. If the local write fails, the sync loop writes it later.
    let saved = kept::version(&text);
    let replaced = aside(move || kept::replace(&file, &text, expected.as_deref())).await;
    let replaced = match replaced {
        Ok(replaced) => replaced,
        Err(error) => {
            tracing::warn!(%error, "the taxonomy was saved for all instances, and is not in the file here yet");
            return Ok(Replaced { version: saved, backup: None });
        }
    };
    turn.end(&sent).await;
    Ok(replaced)
}

/// Runs blocking I/O on a blocking thread.
async fn aside<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, NotReplaced> + Send + 'static,
) -> Result<T, NotReplaced> {
    tokio::task::spawn_blocking(run).await.unwrap_or_else(|_| Err(NotReplaced::stopped()))
}

impl Around {
    /// Without its category, a prompt that must stay local would be classified differently and sent out.
    fn check(&self, taxonomy: &Taxonomy) -> Result<(), Vec<Finding>> {
        let is_missing = |name: &&String| !self.elsewhere && !taxonomy.names().any(|known| known == name.as_str());
        let missing = self.stay.iter().filter(is_missing).map(|name| {
            Finding::remark(format!(
                "the category `{name}` is missing, which `router.restricted_categories` in the configuration names"
            ))
        });
        let missing: Vec<Finding> = missing.collect();
        if missing.is_empty() { Ok(()) } else { Err(missing) }
    }
}

impl From<Busy> for ToolError {
    fn from(busy: Busy) -> ToolError {
        ToolError::new("busy", busy.to_string())
    }
}
