//! Tasks, and whose they are.
//!
//! A task belongs to the instance that took it on. When that one has ended, whatever the reason, another may adopt it;
//! which instances live, their heartbeats tell (see `instance`).
//!
//! The row of a task is the first lock of all that is written for it. So whoever cancels it or takes it over waits for a
//! write that is being made, and no write is made afterwards.

use std::collections::HashMap;

use uuid::Uuid;

pub(super) use super::task_end::end_with;

use super::rows::Word;
use super::session::{Given, Session};
use super::task_rows::{self, TASKS, whole};
use super::{Store, instance, rows};
use crate::knowledge::document::{BaseName, DocumentId};
use crate::knowledge::store::{Error, Options, Whose};
use crate::knowledge::task::{NewTask, Progress, Task, TaskId, Unfinished, Work};

impl Store {
    /// Takes on a task; this instance is to do it.
    pub async fn add_task(&self, task: &NewTask) -> Result<(), Error> {
        let (me, options, request) = (self.me(), &self.0.options, rows::to_json(&task.request)?);
        let request = request.as_str();
        let added = self.write_surely(|session, _| add(session, me, task, request, options)).await;
        // Where nobody knows, and it is there after all, this instance takes it up.
        if let Err(Error::Away(_) | Error::Busy) = &added {
            self.0.doubt.note_taken(task.id.0);
        }
        let key = added?;
        // The bound is passed by a hundredth at most.
        let often = rows::signed(options.max_finished / 100).max(1);
        if key.is_some_and(|key| key % often == 0)
            && let Err(error) = self.forget_beyond(options.max_finished).await
        {
            // The task is taken on all the same.
            tracing::debug!(%error, "finished tasks are not forgotten yet");
        }
        Ok(())
    }

    pub async fn task(&self, id: TaskId) -> Result<Option<Task>, Error> {
        let sql = format!("SELECT {} FROM {TASKS} WHERE t.id = $2", whole());
        self.ask(&sql, &[&self.me(), &id.0]).await?.first().map(task_rows::told).transpose()
    }

    pub async fn whose_tasks(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, Whose>, Error> {
        let (me, ids): (_, Vec<Uuid>) = (self.me(), ids.iter().map(|id| id.0).collect());
        let sql = "SELECT id, state, runner IS NOT DISTINCT FROM $1 FROM tasks WHERE id = ANY($2)";
        let rows = self.ask(sql, &[&me, &ids]).await?;
        rows.iter()
            .map(|row| Ok((TaskId(rows::get(row, 0)?), Whose::of(rows::get(row, 1)?, rows::get(row, 2)?))))
            .collect()
    }

    /// The latest tasks, of one base or of all, the last one first.
    pub async fn tasks(&self, base: Option<&BaseName>, limit: u32) -> Result<Vec<Task>, Error> {
        let sql = format!(
            "SELECT {} FROM {TASKS} WHERE $2::text IS NULL OR b.name = $2 ORDER BY t.key DESC LIMIT $3",
            whole()
        );
        let base = base.map(BaseName::as_str);
        self.ask(&sql, &[&self.me(), &base, &i64::from(limit)]).await?.iter().map(task_rows::told).collect()
    }

    /// How many tasks are being worked on, by whatever instance, and how many wait.
    pub async fn unfinished_tasks(&self) -> Result<Unfinished, Error> {
        let lives = instance::lives("$1");
        let sql = format!(
            "SELECT t.state = 'running' AND {lives}, t.count FROM (SELECT runner, state, count(*) FROM tasks \
             WHERE state IN ('queued', 'running') GROUP BY 1, 2) AS t"
        );
        let mut unfinished = Unfinished::default();
        for row in self.ask(&sql, &[&self.me()]).await? {
            match rows::get(&row, 0)? {
                true => unfinished.running += rows::number(&row, 1)?,
                false => unfinished.queued += rows::number(&row, 1)?,
            }
        }
        Ok(unfinished)
    }

    /// The last task that was to bring a document, if it is not forgotten; one that did, or was cancelled, is not meant.
    pub async fn task_of_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<Task>, Error> {
        let sql = format!(
            "SELECT {} FROM {TASKS} WHERE t.document = $2 AND b.name = $3 AND t.state IN ('queued', 'running', 'failed') \
             ORDER BY t.key DESC LIMIT 1",
            whole()
        );
        self.ask(&sql, &[&self.me(), &id.0, &base.as_str()]).await?.first().map(task_rows::read).transpose()
    }

    /// Begins a task of this instance. False if it is not there to be begun: cancelled, or with somebody else.
    pub async fn start_task(&self, id: TaskId) -> Result<bool, Error> {
        let me = self.me();
        // One that was asked for before, and whose answer never came, may have begun then.
        let before = self.0.doubt.begun(id);
        let (now, is_doubtful) = (before.unwrap_or_else(rows::now), before.is_some());
        let begin = |session, is_again| start(session, me, id, now, is_again || is_doubtful);
        let begun = self.write_surely(begin).await;
        self.0.doubt.note_begun(id, now, &begun);
        begun
    }

    /// Tells how far a running task of this instance is. Each call is a write; now and then is enough.
    pub async fn note_progress(&self, id: TaskId, progress: Progress) -> Result<bool, Error> {
        let Progress { step, done, total, share } = progress;
        let [done, total, share] = [done, total, share].map(|number| i32::try_from(number).unwrap_or(i32::MAX));
        // While a document is written for it, the row is locked, and nobody waits here: the next call tells more.
        let sql = "WITH mine AS (SELECT key FROM tasks WHERE id = $1 AND state = 'running' AND runner = $2), \
                   free AS (SELECT t.key FROM tasks AS t JOIN mine ON mine.key = t.key FOR UPDATE OF t SKIP LOCKED), \
                   noted AS (UPDATE tasks AS t SET step = $3, done = $4, total = $5, updated = $6, share = $7 FROM free \
                   WHERE t.key = free.key AND t.state = 'running' AND t.runner = $2) \
                   SELECT EXISTS (SELECT 1 FROM mine)";
        let (me, step, now) = (self.me(), rows::text(&step), rows::now());
        let noted = self.ask(sql, &[&id.0, &me, &step, &done, &total, &now, &share]).await?;
        noted.first().map_or(Ok(false), |row| rows::get(row, 0))
    }

    pub(super) fn me(&self) -> Uuid {
        self.0.instance.id()
    }
}

/// A write for a task must not happen if that was cancelled or taken over meanwhile. From here to its end, nobody else does
/// so. The first lock of every write that has a task.
pub(super) async fn must_go_on(session: &Session, me: Uuid, work: &Work) -> Result<(), Error> {
    let id = match work {
        Work::Alone => return Ok(()),
        Work::PartOf(id) => *id,
        Work::Ends(end) => end.task,
    };
    let sql = "SELECT 1 FROM tasks WHERE id = $1 AND state IN ('queued', 'running') AND runner = $2 FOR UPDATE";
    session.maybe(sql, &[&id.0, &me]).await?.map(|_| ()).ok_or(Error::Cancelled)
}

/// The number of a task that was taken on now; none if it was before. Ids are random, so a row of that id was written by an
/// attempt whose end nobody heard of. It may be with somebody else by now, who goes on with it.
///
/// Several that are added at once may pass the bound by a few: they do not see each other, and none waits.
async fn add(
    session: Session,
    me: Uuid,
    task: &NewTask,
    request: &str,
    options: &Options,
) -> Result<Option<i64>, Error> {
    let base = rows::known_base(&session, &task.base).await?;
    let sql = "INSERT INTO tasks (id, base, owner, kind, request, document, filename, format, size_bytes, state, created, \
               updated, attempts, runner) SELECT $1::uuid, $2::bigint, $3::text, $4::text, $5::text, $6::uuid, $7::text, \
               $8::text, $9::bigint, 'queued', $10::bigint, $10, 0, $11::uuid WHERE (SELECT count(*) FROM (SELECT 1 \
               FROM tasks WHERE state IN ('queued', 'running') LIMIT $12) AS unfinished) < $12 \
               OR EXISTS (SELECT 1 FROM tasks WHERE id = $1) ON CONFLICT (id) DO NOTHING RETURNING key";
    let given: Given<'_> = &[
        &task.id.0,
        &base,
        &rows::text(&task.owner),
        &task.kind.word(),
        &request,
        &task.document.map(|document| document.0),
        &task.filename.as_deref().map(rows::text),
        &task.format.as_deref().map(rows::text),
        &task.size_bytes.map(rows::signed),
        &rows::now(),
        &me,
        &rows::signed(options.max_tasks),
    ];
    let key = session.maybe(sql, given).await?.map(|row| rows::get(&row, 0)).transpose()?;
    if key.is_none() && session.maybe("SELECT 1 FROM tasks WHERE id = $1", &[&task.id.0]).await?.is_none() {
        session.leave().await?;
        return Err(Error::TooManyTasks { bound: options.max_tasks });
    }
    session.commit().await?;
    Ok(key)
}

/// A task is begun once. Where an attempt before this one may have done it, a task that began at that very moment, and is
/// ours, is the one.
async fn start(session: Session, me: Uuid, id: TaskId, now: i64, is_again: bool) -> Result<bool, Error> {
    let sql = "UPDATE tasks SET state = 'running', started = $3, updated = $3, attempts = attempts + 1, step = '', done = 0, \
               total = 0, share = 0 WHERE id = $1 AND state = 'queued' AND runner = $2";
    let mut is_begun = session.execute(sql, &[&id.0, &me, &now]).await? > 0;
    if !is_begun && is_again {
        let sql = "SELECT 1 FROM tasks WHERE id = $1 AND state = 'running' AND runner = $2 AND started = $3";
        is_begun = session.maybe(sql, &[&id.0, &me, &now]).await?.is_some();
    }
    session.commit().await?;
    Ok(is_begun)
}
