//! Migration of a store into another store.
//!
//! Each document is one transaction and is read back afterwards. A document that already exists in the target is
//! compared and skipped, so an interrupted migration resumes when it is started again.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::checksum::{self, Checksum};
use super::{BaseRecord, Error, FullDocument};
use crate::document::DocumentId;
use crate::store::{CheckReport, RowUpdate, Store};

/// How long to wait for other instances to stop. A killed instance counts as alive for a while.
const EXCLUSIVE_TIMEOUT: Duration = Duration::from_secs(15);
/// Number of tasks or watched files per write.
const BATCH_SIZE: usize = 500;
/// Maximum number of reported problems.
const MAX_PROBLEMS: usize = 100;

/// Progress of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationStep {
    /// Waiting for other instances to stop, and checking the source.
    Checking,
    Documents {
        done: u64,
        total: u64,
    },
    /// Tasks and the state of watched folders.
    OtherRecords,
    Comparing,
    /// Building the search indexes.
    Indexing,
}

/// Result of a migration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationReport {
    /// Number of documents written.
    pub written: u64,
    /// Number of documents that already existed with the same content.
    pub skipped: u64,
    pub from: StoreSummary,
    pub to: StoreSummary,
    /// One sentence per difference between source and target.
    pub problems: Vec<String>,
    /// The migration was cancelled before it finished; `from` and `to` are not filled in.
    pub is_cancelled: bool,
}

/// Contents of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreSummary {
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
    mut tell: impl FnMut(MigrationStep),
) -> Result<MigrationReport, Error> {
    tell(MigrationStep::Checking);
    let before = plan(from, to).await?;
    let mut moved = MigrationReport::default();
    let (mut from_sums, mut to_sums) = (BTreeMap::new(), BTreeMap::new());
    let of = before.documents.len() as u64;
    for (done, id) in before.documents.iter().enumerate() {
        if stop.is_cancelled() {
            return Ok(MigrationReport { is_cancelled: true, ..moved });
        }
        tell(MigrationStep::Documents { done: done as u64, total: of });
        let whole = from.full_document(*id).await?.ok_or(Error::SourceChanged)?;
        from_sums.insert(*id, whole.checksum());
        let is_there = before.existing.contains(id);
        if !is_there {
            to.insert_migrated(whole.clone()).await?;
        }
        let there = to.full_document(*id).await?;
        let difference = difference(&whole, there.as_ref());
        match (is_there, difference) {
            (true, Some(_)) => return Err(Error::TargetNotEmpty(format!("a document `{}`", whole.document.filename))),
            (true, None) => moved.skipped += 1,
            (false, difference) => {
                moved.written += 1;
                moved.add_problem(difference);
            }
        }
        if let Some(there) = there {
            to_sums.insert(*id, there.checksum());
        }
    }
    tell(MigrationStep::OtherRecords);
    copy_other_records(from, to, &before.existing_records).await?;
    tell(MigrationStep::Comparing);
    moved.from = StoreSummary::of(&before.report, &from_sums, &OtherRecords::of(from).await?);
    let report = to.check().await?;
    moved.to = StoreSummary::of(&report, &to_sums, &OtherRecords::of(to).await?);
    report.problems.into_iter().for_each(|problem| moved.add_problem(Some(problem)));
    moved.compare(&before.documents, &to.document_ids().await?);
    moved.add_problem(source_changes(from, &before).await?);
    tell(MigrationStep::Indexing);
    if let Err(error) = to.build_indexes().await {
        // All data is moved and verified; the next start builds the missing index.
        tracing::warn!(%error, "cannot create a vector index; the next start will");
    }
    Ok(moved)
}

/// State of both stores before the migration.
struct MigrationPlan {
    report: CheckReport,
    /// The bases, with the time of their last change.
    bases: Vec<BaseRecord>,
    /// All documents to move, in order.
    documents: Vec<DocumentId>,
    /// Documents that already exist in the target.
    existing: HashSet<DocumentId>,
    existing_records: OtherRecords,
}

/// Checks whether the migration may start.
async fn plan(from: &Store, to: &Store) -> Result<MigrationPlan, Error> {
    if from.history() == to.history() {
        return Err(Error::SameStore);
    }
    for (side, store) in [("the source knowledge base", from), ("the target knowledge base", to)] {
        wait_until_exclusive(side, store).await?;
        let unfinished = store.unfinished_tasks().await?;
        if unfinished.running + unfinished.queued > 0 {
            return Err(Error::UnfinishedTasks { side, unfinished });
        }
    }
    let report = from.check().await?;
    if let Some(problem) = report.problems.first() {
        return Err(Error::Damaged(problem.clone()));
    }
    let (bases, documents) = (from.base_records().await?, from.document_ids().await?);
    let known: HashSet<DocumentId> = documents.iter().copied().collect();
    let there: HashSet<DocumentId> = to.document_ids().await?.into_iter().collect();
    let others = there.difference(&known).count();
    if others > 0 {
        return Err(Error::TargetNotEmpty(format!("documents ({others})")));
    }
    let (rest, rest_there) = (OtherRecords::of(from).await?, OtherRecords::of(to).await?);
    if let Some(name) = rest_there.first_difference(&rest) {
        return Err(Error::TargetNotEmpty(name.to_owned()));
    }
    Ok(MigrationPlan { report, bases, documents, existing: there, existing_records: rest_there })
}

/// Detects changes to the source during the migration; such changes may not have been moved.
async fn source_changes(from: &Store, before: &MigrationPlan) -> Result<Option<String>, Error> {
    let hosts = from.other_hosts().await?;
    if !hosts.is_empty() {
        let hosts = hosts.join(", ");
        return Ok(Some(format!(
            "other instances (on {hosts}) have started to use the source knowledge base; stop them and try again"
        )));
    }
    let is_same = from.base_records().await? == before.bases && from.document_ids().await? == before.documents;
    let sentence = "the source knowledge base was modified during the migration; stop its writers and try again";
    Ok((!is_same).then(|| sentence.to_owned()))
}

/// Waits until no other process has the store open.
async fn wait_until_exclusive(side: &'static str, store: &Store) -> Result<(), Error> {
    let until = Instant::now() + EXCLUSIVE_TIMEOUT;
    loop {
        let hosts = store.other_hosts().await?;
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
fn difference(whole: &FullDocument, there: Option<&FullDocument>) -> Option<String> {
    let name = &whole.document.filename;
    match there {
        None => Some(format!("document `{name}` is missing")),
        Some(there) if there.checksum() != whole.checksum() => Some(format!("document `{name}` differs")),
        Some(there) if !there.has_same_directions(whole) => Some(format!("vectors of document `{name}` differ")),
        Some(_) => None,
    }
}

/// Copies missing records other than documents.
async fn copy_other_records(from: &Store, to: &Store, there: &OtherRecords) -> Result<(), Error> {
    for base in from.base_records().await? {
        let watched = from.watched_files(&base.name).await?;
        let missing =
            watched.into_iter().filter(|watched| !there.0.contains_key(&watched_key(&base.name, &watched.path)));
        let turns: Vec<RowUpdate> = missing.map(|after| RowUpdate { before: None, after }).collect();
        for some in turns.chunks(BATCH_SIZE) {
            to.update_watched_files(&base.name, some.to_vec()).await?;
        }
        to.upsert_base(base).await?;
    }
    for (path, place) in from.watched_folders().await? {
        to.record_watched_folder(&path, place).await?;
    }
    let mut after = 0;
    loop {
        let tasks = from.finished_tasks(after, BATCH_SIZE as u32).await?;
        let Some(last) = tasks.last() else { return Ok(()) };
        after = last.key;
        to.insert_finished_tasks(tasks).await?;
    }
}

/// Checksums of all records other than documents, by name.
struct OtherRecords(BTreeMap<String, Checksum>);

const TASK_LABEL: &str = "task";
const WATCHED_FILE_LABEL: &str = "watched file";
const WATCHED_FOLDER_LABEL: &str = "watched folder";

fn watched_key(base: &impl std::fmt::Display, path: &str) -> String {
    // In the form that every backend can store.
    format!("{WATCHED_FILE_LABEL} {base} {}", path.replace('\0', "\u{fffd}"))
}

impl OtherRecords {
    async fn of(store: &Store) -> Result<OtherRecords, Error> {
        let mut sums = BTreeMap::new();
        for base in store.bases().await? {
            for watched in store.watched_files(&base).await? {
                sums.insert(watched_key(&base, &watched.path), checksum::watched_file_checksum(&watched));
            }
        }
        for (path, place) in store.watched_folders().await? {
            sums.insert(
                format!("{WATCHED_FOLDER_LABEL} {}", path.replace('\0', "\u{fffd}")),
                checksum::folder_checksum(place),
            );
        }
        let mut after = 0;
        loop {
            let tasks = store.finished_tasks(after, BATCH_SIZE as u32).await?;
            let Some(last) = tasks.last() else { return Ok(OtherRecords(sums)) };
            after = last.key;
            sums.extend(tasks.iter().map(|task| (format!("{TASK_LABEL} {}", task.id), task.checksum())));
        }
    }

    /// The first record that the other store lacks or has with another checksum.
    fn first_difference(&self, other: &OtherRecords) -> Option<&str> {
        self.0.iter().find(|(name, sum)| other.0.get(*name) != Some(*sum)).map(|(name, _)| name.as_str())
    }

    fn count(&self, kind: &str) -> u64 {
        self.0.keys().filter(|name| name.starts_with(kind)).count() as u64
    }
}

impl StoreSummary {
    fn of(report: &CheckReport, documents: &BTreeMap<DocumentId, Checksum>, rest: &OtherRecords) -> StoreSummary {
        StoreSummary {
            documents: report.documents,
            pages: report.pages,
            chunks: report.chunks,
            vectors: report.vectors,
            tasks: rest.count(TASK_LABEL),
            watched: rest.count(WATCHED_FILE_LABEL),
            sha256: checksum::combined_checksum(documents.values().chain(rest.0.values())),
        }
    }
}

impl MigrationReport {
    fn add_problem(&mut self, problem: Option<String>) {
        if self.problems.len() < MAX_PROBLEMS {
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
            self.add_problem(Some(format!("expected {one} {what}, found {other}")));
        }
        let known: HashSet<_> = documents.iter().collect();
        if there.len() != known.len() || there.iter().any(|id| !known.contains(id)) {
            self.add_problem(Some("the documents differ".to_owned()));
        }
        if from.sha256 != to.sha256 {
            self.add_problem(Some("the checksums differ".to_owned()));
        }
    }
}
