//! Migration of a store into another store.
//!
//! Each document is one transaction and is read back afterwards. A document that already exists in the target is
//! compared and skipped, so an interrupted migration resumes when it is started again.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::digest::{self, Sum};
use super::{Base, Error, Whole};
use crate::knowledge::document::DocumentId;
use crate::knowledge::store::{Report, Store, Turn};

/// How long to wait for other instances to stop. A killed instance counts as alive for a while.
const OTHERS: Duration = Duration::from_secs(15);
/// Number of tasks or watched files per write.
const AT_ONCE: usize = 500;
/// Maximum number of reported problems.
const MOST_TOLD: usize = 100;

/// Progress of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Waiting for other instances to stop, and checking the source.
    Checking,
    Documents {
        done: u64,
        of: u64,
    },
    /// Tasks and the state of watched folders.
    Rest,
    Comparing,
    /// Building the search indexes.
    Indexing,
}

/// Result of a migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moved {
    /// Number of documents written.
    pub written: u64,
    /// Number of documents that already existed with the same content.
    pub passed_over: u64,
    pub from: Side,
    pub to: Side,
    /// One sentence per difference between source and target.
    pub problems: Vec<String>,
    /// The migration was cancelled before it finished; `from` and `to` are not filled in.
    pub stopped: bool,
}

/// Contents of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Side {
    pub documents: u64,
    pub pages: u64,
    pub chunks: u64,
    pub vectors: u64,
    /// Number of finished tasks.
    pub tasks: u64,
    /// Number of watched files.
    pub watched: u64,
    /// Covers everything except vectors, which are compared by direction.
    pub sha256: String,
}

/// Moves everything and compares the result. Neither store may be in use by another process.
///
/// Cancellation is checked between two documents.
pub async fn migrate(
    from: &Store,
    to: &Store,
    stop: &CancellationToken,
    mut tell: impl FnMut(Step),
) -> Result<Moved, Error> {
    tell(Step::Checking);
    let before = begin(from, to).await?;
    let mut moved = Moved::default();
    let (mut from_sums, mut to_sums) = (BTreeMap::new(), BTreeMap::new());
    let of = before.documents.len() as u64;
    for (done, id) in before.documents.iter().enumerate() {
        if stop.is_cancelled() {
            return Ok(Moved { stopped: true, ..moved });
        }
        tell(Step::Documents { done: done as u64, of });
        let whole = from.whole(*id).await?.ok_or(Error::Changed)?;
        from_sums.insert(*id, whole.sum());
        let is_there = before.there.contains(id);
        if !is_there {
            to.bring(whole.clone()).await?;
        }
        let there = to.whole(*id).await?;
        let difference = difference(&whole, there.as_ref());
        match (is_there, difference) {
            (true, Some(_)) => return Err(Error::NotEmpty(format!("a document `{}`", whole.document.filename))),
            (true, None) => moved.passed_over += 1,
            (false, difference) => {
                moved.written += 1;
                moved.problem(difference);
            }
        }
        if let Some(there) = there {
            to_sums.insert(*id, there.sum());
        }
    }
    tell(Step::Rest);
    bring_rest(from, to, &before.rest_there).await?;
    tell(Step::Comparing);
    moved.from = Side::of(&before.report, &from_sums, &Rest::of(from).await?);
    let report = to.check().await?;
    moved.to = Side::of(&report, &to_sums, &Rest::of(to).await?);
    report.problems.into_iter().for_each(|problem| moved.problem(Some(problem)));
    moved.compare(&before.documents, &to.document_ids().await?);
    moved.problem(changed(from, &before).await?);
    tell(Step::Indexing);
    if let Err(error) = to.make_indexes().await {
        // All data is moved and verified; the next start builds the missing index.
        tracing::warn!(%error, "an index over vectors could not be made yet");
    }
    Ok(moved)
}

/// State of both stores before the migration.
struct Before {
    report: Report,
    /// The bases, with the time of their last change.
    bases: Vec<Base>,
    /// All documents to move, in order.
    documents: Vec<DocumentId>,
    /// Documents that already exist in the target.
    there: HashSet<DocumentId>,
    rest_there: Rest,
}

/// Checks whether the migration may start.
async fn begin(from: &Store, to: &Store) -> Result<Before, Error> {
    if from.history() == to.history() {
        return Err(Error::Same);
    }
    for (side, store) in [("the knowledge base to move", from), ("the knowledge base to move into", to)] {
        alone(side, store).await?;
        let unfinished = store.unfinished_tasks().await?;
        if unfinished.running + unfinished.queued > 0 {
            return Err(Error::Unfinished { side, unfinished });
        }
    }
    let report = from.check().await?;
    if let Some(problem) = report.problems.first() {
        return Err(Error::Damaged(problem.clone()));
    }
    let (bases, documents) = (from.told_bases().await?, from.document_ids().await?);
    let known: HashSet<DocumentId> = documents.iter().copied().collect();
    let there: HashSet<DocumentId> = to.document_ids().await?.into_iter().collect();
    let others = there.difference(&known).count();
    if others > 0 {
        return Err(Error::NotEmpty(format!("documents ({others})")));
    }
    let (rest, rest_there) = (Rest::of(from).await?, Rest::of(to).await?);
    if let Some(name) = rest_there.beyond(&rest) {
        return Err(Error::NotEmpty(name.to_owned()));
    }
    Ok(Before { report, bases, documents, there, rest_there })
}

/// Detects changes to the source during the migration; such changes may not have been moved.
async fn changed(from: &Store, before: &Before) -> Result<Option<String>, Error> {
    let hosts = from.others().await?;
    if !hosts.is_empty() {
        let hosts = hosts.join(", ");
        return Ok(Some(format!(
            "other instances (on {hosts}) have begun to use the knowledge base that was moved; stop them, and start again"
        )));
    }
    let is_same = from.told_bases().await? == before.bases && from.document_ids().await? == before.documents;
    let sentence =
        "the knowledge base that was moved was written to meanwhile; stop whoever writes to it, and start again";
    Ok((!is_same).then(|| sentence.to_owned()))
}

/// Waits until no other process has the store open.
async fn alone(side: &'static str, store: &Store) -> Result<(), Error> {
    let until = Instant::now() + OTHERS;
    loop {
        let hosts = store.others().await?;
        if hosts.is_empty() {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(Error::InUse { side, hosts });
        }
        sleep(Duration::from_millis(500)).await;
    }
}

/// The difference between two versions of a document, if any.
fn difference(whole: &Whole, there: Option<&Whole>) -> Option<String> {
    let name = &whole.document.filename;
    match there {
        None => Some(format!("the document `{name}` is not there")),
        Some(there) if there.sum() != whole.sum() => Some(format!("the document `{name}` says something else")),
        Some(there) if !there.shows_where(whole) => Some(format!("vectors of the document `{name}` are others")),
        Some(_) => None,
    }
}

/// Copies missing records other than documents.
async fn bring_rest(from: &Store, to: &Store, there: &Rest) -> Result<(), Error> {
    for base in from.told_bases().await? {
        let watched = from.watched(&base.name).await?;
        let missing =
            watched.into_iter().filter(|watched| !there.0.contains_key(&watched_key(&base.name, &watched.path)));
        let turns: Vec<Turn> = missing.map(|after| Turn { before: None, after }).collect();
        for some in turns.chunks(AT_ONCE) {
            to.turn_watched(&base.name, some.to_vec()).await?;
        }
        to.bring_base(base).await?;
    }
    for (path, place) in from.watched_folders().await? {
        to.note_watched_folder(&path, place).await?;
    }
    let mut after = 0;
    loop {
        let tasks = from.ended_tasks(after, AT_ONCE as u32).await?;
        let Some(last) = tasks.last() else { return Ok(()) };
        after = last.key;
        to.bring_tasks(tasks).await?;
    }
}

/// Checksums of all records other than documents, by name.
struct Rest(BTreeMap<String, Sum>);

const TASK: &str = "the task";
const WATCHED: &str = "the watched file";
const FOLDER: &str = "the watched folder";

fn watched_key(base: &impl std::fmt::Display, path: &str) -> String {
    // In the form that every backend can store.
    format!("{WATCHED} {base} {}", path.replace('\0', "\u{fffd}"))
}

impl Rest {
    async fn of(store: &Store) -> Result<Rest, Error> {
        let mut sums = BTreeMap::new();
        for base in store.bases().await? {
            for watched in store.watched(&base).await? {
                sums.insert(watched_key(&base, &watched.path), digest::of_watched(&watched));
            }
        }
        for (path, place) in store.watched_folders().await? {
            sums.insert(format!("{FOLDER} {}", path.replace('\0', "\u{fffd}")), digest::of_place(place));
        }
        let mut after = 0;
        loop {
            let tasks = store.ended_tasks(after, AT_ONCE as u32).await?;
            let Some(last) = tasks.last() else { return Ok(Rest(sums)) };
            after = last.key;
            sums.extend(tasks.iter().map(|task| (format!("{TASK} {}", task.id), task.sum())));
        }
    }

    /// The first record that the other store lacks or has with another checksum.
    fn beyond(&self, other: &Rest) -> Option<&str> {
        self.0.iter().find(|(name, sum)| other.0.get(*name) != Some(*sum)).map(|(name, _)| name.as_str())
    }

    fn count(&self, kind: &str) -> u64 {
        self.0.keys().filter(|name| name.starts_with(kind)).count() as u64
    }
}

impl Side {
    fn of(report: &Report, documents: &BTreeMap<DocumentId, Sum>, rest: &Rest) -> Side {
        Side {
            documents: report.documents,
            pages: report.pages,
            chunks: report.chunks,
            vectors: report.vectors,
            tasks: rest.count(TASK),
            watched: rest.count(WATCHED),
            sha256: digest::of_all(documents.values().chain(rest.0.values())),
        }
    }
}

impl Moved {
    fn problem(&mut self, problem: Option<String>) {
        if self.problems.len() < MOST_TOLD {
            self.problems.extend(problem);
        }
    }

    /// Adds the differences between the totals of the two stores.
    fn compare(&mut self, documents: &[DocumentId], there: &[DocumentId]) {
        let (from, to) = (self.from.clone(), self.to.clone());
        let counts = [
            ("documents", from.documents, to.documents),
            ("pages", from.pages, to.pages),
            ("chunks", from.chunks, to.chunks),
            ("vectors", from.vectors, to.vectors),
            ("tasks", from.tasks, to.tasks),
            ("watched files", from.watched, to.watched),
        ];
        for (what, one, other) in counts.into_iter().filter(|(_, one, other)| one != other) {
            self.problem(Some(format!("there were {one} {what}, and {other} are there now")));
        }
        let known: HashSet<_> = documents.iter().collect();
        if there.len() != known.len() || there.iter().any(|id| !known.contains(id)) {
            self.problem(Some("other documents are there than there were".to_owned()));
        }
        if from.sha256 != to.sha256 {
            self.problem(Some("the checksums differ".to_owned()));
        }
    }
}
