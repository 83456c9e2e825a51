//! Folders that are followed: what appears, changes or goes in them does so in the knowledge base.
//!
//! They are looked at every few seconds, like all files that corbie watches: that works on every file system, and what
//! changed while nobody looked is seen as well. A file is taken up once it has stayed the same for one look, so that one
//! that is still being written is left alone. What cannot be read is not tried again before it changes.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use super::document::{BaseName, Origin};
use super::ingest::Wish;
use super::task::TaskId;
use super::work::Request;
use super::{Error, Knowledge, Open, blocking, folder};
use crate::config::knowledge::Watch;

/// Whom tasks of watched folders belong to.
const OWNER: &str = "watch";
/// So many files of one folder are added at a time; the others are seen again with the next look.
const TOGETHER: usize = 64;

/// How a file looked: another time or size means that it has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    modified: Option<SystemTime>,
    size: u64,
}

/// What is known of a file.
#[derive(Debug, Clone, Copy)]
struct Seen {
    look: Look,
    state: Known,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Seen for the first time as it is now.
    Fresh,
    /// Being added.
    Going(TaskId),
    /// Added as it is now, or it cannot be.
    Settled,
}

struct Followed {
    watch: Watch,
    base: BaseName,
    seen: HashMap<PathBuf, Seen>,
    /// The folder could not be read the last time, which was told.
    missing: bool,
}

impl Knowledge {
    /// Follows the folders of the settings for as long as the process lives.
    pub async fn follow_folders(self) {
        let settings = self.settings().clone();
        let mut followed: Vec<Followed> = Vec::new();
        for watch in settings.watch {
            let Ok(base) = watch.knowledge_base.parse() else { continue };
            followed.push(Followed { watch, base, seen: HashMap::new(), missing: false });
        }
        if followed.is_empty() {
            return;
        }
        loop {
            match self.open().await {
                Ok(open) => {
                    for one in &mut followed {
                        if let Err(error) = self.look_into(open, one).await {
                            tracing::warn!(folder = %one.watch.path.display(), %error, "a watched folder cannot be followed");
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "watched folders wait for the knowledge base"),
            }
            tokio::select! {
                () = tokio::time::sleep(settings.watch_interval.get()) => {}
                () = self.stopping() => return,
            }
        }
    }

    async fn look_into(&self, open: &Open, followed: &mut Followed) -> Result<(), Error> {
        let (watch, rules, stop) = (followed.watch.clone(), self.rules(false), self.0.stop.clone());
        let looks = blocking(move || look(&watch, &rules, &stop)).await?;
        let looks = match looks {
            Ok(looks) => {
                followed.missing = false;
                looks
            }
            // A disk that is not mounted must not cost all its documents.
            Err(error) => {
                if !std::mem::replace(&mut followed.missing, true) {
                    tracing::warn!(folder = %followed.watch.path.display(), %error, "a watched folder cannot be read; its documents are kept");
                }
                return Ok(());
            }
        };
        self.take_up(open, followed, &looks).await?;
        self.let_go(open, followed, &looks).await
    }

    /// Adds what is new or has changed.
    async fn take_up(&self, open: &Open, followed: &mut Followed, looks: &HashMap<PathBuf, Look>) -> Result<(), Error> {
        let mut going = 0;
        for (path, look) in looks {
            let seen = followed.seen.entry(path.clone()).or_insert(Seen { look: *look, state: Known::Fresh });
            if let Known::Going(task) = seen.state {
                match open.work.job(task) {
                    Some(_) => {
                        going += 1;
                        continue;
                    }
                    None => {
                        seen.state = Known::Settled;
                        self.documents_changed();
                    }
                }
            }
            if seen.look != *look {
                *seen = Seen { look: *look, state: Known::Fresh };
                continue;
            }
            if seen.state != Known::Fresh || going >= TOGETHER {
                continue;
            }
            if self.is_there(open, &followed.base, path, *look).await? {
                seen.state = Known::Settled;
                continue;
            }
            let facts = match self.check(self.rules(false), path.clone()).await {
                Ok(facts) => facts,
                Err(error) => {
                    tracing::warn!(file = %path.display(), %error, "a file of a watched folder cannot be added");
                    seen.state = Known::Settled;
                    continue;
                }
            };
            let wish = Wish {
                file_path: path.clone(),
                metadata: serde_json::Map::new(),
                force_ocr: false,
                origin: Origin::Watched,
            };
            let job =
                open.work.submit(followed.base.clone(), Arc::from(OWNER), Request::Add(wish), Some(&facts)).await?;
            seen.state = Known::Going(job.id);
            going += 1;
        }
        Ok(())
    }

    /// Whether a document was made of the file as it is: nothing has changed since, by its time and size.
    async fn is_there(&self, open: &Open, base: &BaseName, path: &Path, look: Look) -> Result<bool, Error> {
        let Ok(followed) = path.canonicalize() else { return Ok(false) };
        let document = open.store.document_by_path(base, &followed.to_string_lossy()).await?;
        let before = |updated: i64| look.modified.is_some_and(|modified| super::date::millis(modified) < updated);
        Ok(document.is_some_and(|document| document.size_bytes == look.size && before(document.updated)))
    }

    /// Removes what is gone.
    async fn let_go(&self, open: &Open, followed: &mut Followed, looks: &HashMap<PathBuf, Look>) -> Result<(), Error> {
        followed.seen.retain(|path, _| looks.contains_key(path));
        let Ok(root) = followed.watch.path.canonicalize() else { return Ok(()) };
        let there: HashSet<String> = looks
            .keys()
            .filter_map(|path| path.canonicalize().ok())
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        let kept = open.store.documents_under(&followed.base, &root.to_string_lossy(), Some(Origin::Watched)).await?;
        for gone in kept.into_iter().filter(|source| !there.contains(&source.path)) {
            // Looked at once more: it may have come back.
            if Path::new(&gone.path).exists() {
                continue;
            }
            tracing::info!(file = gone.path, "a file of a watched folder is gone, and so is its document");
            self.remove_at(&followed.base, gone.id, &gone.path).await?;
            // A copy of it elsewhere in the folder was passed over as the same; now it is wanted.
            followed.seen.retain(|_, seen| seen.state != Known::Settled);
        }
        Ok(())
    }
}

/// How the files of a folder look now.
fn look(
    watch: &Watch,
    rules: &super::source::Rules,
    stop: &CancellationToken,
) -> Result<HashMap<PathBuf, Look>, Error> {
    if !watch.path.is_dir() {
        return Err(Error::FileNotFound(watch.path.display().to_string()));
    }
    let found = folder::files(&watch.path.to_string_lossy(), watch.recursive, rules, stop)?;
    let looks = found.files.into_iter().filter_map(|path| {
        let metadata = fs::metadata(&path).ok()?;
        Some((path, Look { modified: metadata.modified().ok(), size: metadata.len() }))
    });
    Ok(looks.collect())
}
