//! Tasks and their ownership.
//!
//! A task belongs to the instance that accepted it. When that instance ends, for any reason, another instance may
//! adopt the task. Heartbeats show which instances are alive (see `instance`).
//!
//! The task row is the first lock of every write for the task. A transaction that cancels or adopts the task therefore
//! waits for a running write, and no write follows.

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
    /// Adds a task that this instance will run.
    pub async fn add_task(&self, task: &NewTask) -> Result<(), Error> {
        let (me, options, request) = (self.me(), &self.0.options, rows::to_json(&task.request)?);
        let request = request.as_str();
        let added = self.write_surely(|session, _| add(session, me, task, request, options)).await;
        // If the outcome is unknown and the row exists after all, this instance adopts the task later.
        if let Err(Error::Away(_) | Error::Busy) = &added {
            self.0.doubt.note_taken(task.id.0);
        }
        let key = added?;
        // The limit is exceeded by one percent at most.
        let often = rows::signed(options.max_finished / 100).max(1);
        if key.is_some_and(|key| key % often == 0)
            && let Err(error) = self.forget_beyond(options.max_finished).await
        {
            // The task has been added in any case.
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

    /// The latest tasks of one base or of all, newest first.
    pub async fn tasks(&self, base: Option<&BaseName>, limit: u32) -> Result<Vec<Task>, Error> {
        let sql = format!(
            "SELECT {} FROM {TASKS} WHERE $2::text IS NULL OR b.name = $2 ORDER BY t.key DESC LIMIT $3",
            whole()
        );
        let base = base.map(BaseName::as_str);
        self.ask(&sql, &[&self.me(), &base, &i64::from(limit)]).await?.iter().map(task_rows::told).collect()
    }

    /// Number of running tasks (in any instance) and of queued tasks.
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

    /// The last task for a document, if it is still retained. Completed and cancelled tasks are not considered.
    pub async fn task_of_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<Task>, Error> {
        let sql = format!(
            "SELECT {} FROM {TASKS} WHERE t.document = $2 AND b.name = $3 AND t.state IN ('queued', 'running', 'failed') \
             ORDER BY t.key DESC LIMIT 1",
            whole()
        );
        self.ask(&sql, &[&self.me(), &id.0, &base.as_str()]).await?.first().map(task_rows::read).transpose()
    }

    /// Starts a task of this instance. Returns false if it cannot start: it was cancelled, or another instance owns
    /// it.
    pub async fn start_task(&self, id: TaskId) -> Result<bool, Error> {
        let me = self.me();
        // An earlier call without an acknowledgement may have started the task.
        let before = self.0.doubt.begun(id);
        let (now, is_doubtful) = (before.unwrap_or_else(rows::now), before.is_some());
        let begin = |session, is_again| start(session, me, id, now, is_again || is_doubtful);
        let begun = self.write_surely(begin).await;
        self.0.doubt.note_begun(id, now, &begun);
        begun
    }

    /// Records the progress of a running task of this instance. Each call is a write, so callers should throttle it.
    pub async fn note_progress(&self, id: TaskId, progress: Progress) -> Result<bool, Error> {
        let Progress { step, done, total, share } = progress;
        let [done, total, share] = [done, total, share].map(|number| i32::try_from(number).unwrap_or(i32::MAX));
        // The row is locked while a document is written for the task. This statement skips it; the next call catches
        // up.
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

/// Fails if the task of a write was cancelled or adopted by another instance, and locks it until the end of the
/// transaction. The first lock of every write for a task.
pub(super) async fn must_go_on(session: &Session, me: Uuid, work: &Work) -> Result<(), Error> {
    let id = match work {
        Work::Alone => return Ok(()),
        Work::PartOf(id) => *id,
        Work::Ends(end) => end.task,
    };
    let sql = "SELECT 1 FROM tasks WHERE id = $1 AND state IN ('queued', 'running') AND runner = $2 FOR UPDATE";
    session.maybe(sql, &[&id.0, &me]).await?.map(|_| ()).ok_or(Error::Cancelled)
}

/// Returns the key of the new task; None if it already existed. IDs are random, so a row with this ID comes from an
/// attempt with a lost acknowledgement. Another instance may have adopted it and continues it.
///
/// Concurrent inserts may exceed the limit slightly: they do not see each other, and none waits.
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

/// A task starts only once. If an earlier attempt may have started it, a task of this instance with this exact start
/// time counts as started.
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
