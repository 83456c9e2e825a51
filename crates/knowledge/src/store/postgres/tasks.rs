//! Tasks and their ownership.
//!
//! A task belongs to the instance that accepted it. When that instance ends, for any reason, another instance may
//! adopt the task. Heartbeats show which instances are alive (see `instance`).
//!
//! The task row is the first lock of every write for the task. A transaction that cancels or adopts the task therefore
//! waits for a running write, and no write follows.

use std::collections::HashMap;

use uuid::Uuid;

use super::rows::StoredEnum;
use super::session::{Session, SqlParams};
use super::task_rows::{self, TASK_TABLES, all_columns};
use super::{Store, instance, rows};
use crate::document::{BaseName, DocumentId};
use crate::store::{Error, Options, TaskListQuery, TaskOwnership};
use crate::task::{NewTask, TaskId, TaskLink, TaskProgress, TaskRecord, UnfinishedTasks};

impl Store {
    /// Adds a task that this instance will run.
    pub async fn add_task(&self, task: &NewTask) -> Result<(), Error> {
        let (me, options, request) = (self.instance_id(), &self.0.options, rows::to_json(&task.request)?);
        let request = request.as_str();
        let added = self.write_with_retry(|session, _| add(session, me, task, request, options)).await;
        // If the outcome is unknown and the row exists after all, this instance adopts the task later.
        if let Err(Error::Unavailable(_) | Error::Busy) = &added {
            self.0.in_doubt.record_acquired(task.id.0);
        }
        let key = added?;
        // The limit is exceeded by one percent at most.
        let often = rows::to_i64(options.max_finished_tasks / 100).max(1);
        if key.is_some_and(|key| key % often == 0)
            && let Err(error) = self.delete_tasks_beyond(options.max_finished_tasks).await
        {
            // The task has been added in any case.
            tracing::debug!(%error, "cannot delete finished tasks; retrying later");
        }
        Ok(())
    }

    pub async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>, Error> {
        let sql = format!("SELECT {} FROM {TASK_TABLES} WHERE t.id = $2", all_columns());
        self.query_with_retry(&sql, &[&self.instance_id(), &id.0])
            .await?
            .first()
            .map(task_rows::read_with_liveness)
            .transpose()
    }

    pub async fn task_ownership(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, TaskOwnership>, Error> {
        let (me, ids): (_, Vec<Uuid>) = (self.instance_id(), ids.iter().map(|id| id.0).collect());
        let sql = "SELECT id, state, runner IS NOT DISTINCT FROM $1 FROM tasks WHERE id = ANY($2)";
        let rows = self.query_with_retry(sql, &[&me, &ids]).await?;
        rows.iter()
            .map(|row| Ok((TaskId(rows::get(row, 0)?), TaskOwnership::of(rows::get(row, 1)?, rows::get(row, 2)?))))
            .collect()
    }

    /// The latest tasks of one base or of all, newest first.
    pub async fn tasks(&self, base: Option<&BaseName>, limit: u32) -> Result<Vec<TaskRecord>, Error> {
        let sql = format!(
            "SELECT {} FROM {TASK_TABLES} WHERE $2::text IS NULL OR b.name = $2 ORDER BY t.key DESC LIMIT $3",
            all_columns()
        );
        let base = base.map(BaseName::as_str);
        self.query_with_retry(&sql, &[&self.instance_id(), &base, &i64::from(limit)])
            .await?
            .iter()
            .map(task_rows::read_with_liveness)
            .collect()
    }

    /// Tasks, newest first, with an empty `request` and without the files of their results.
    pub async fn latest_tasks(&self, list: TaskListQuery) -> Result<Vec<TaskRecord>, Error> {
        let TaskListQuery { bases, owner, states, limit } = list;
        let columns = task_rows::columns("'{}'", "t.result_brief");
        let sql = format!(
            "SELECT {columns} FROM {TASK_TABLES} WHERE b.name = ANY($2) AND ($4::text IS NULL OR t.owner = $4) \
             AND (cardinality($5::text[]) = 0 OR t.state = ANY($5)) \
             AND NOT (t.kind = 'add' AND t.state = 'failed' AND t.document IS NULL) ORDER BY t.key DESC LIMIT $3"
        );
        let bases: Vec<&str> = bases.iter().map(BaseName::as_str).collect();
        self.query_with_retry(&sql, &[&self.instance_id(), &bases, &i64::from(limit), &owner, &states])
            .await?
            .iter()
            .map(task_rows::read_with_liveness)
            .collect()
    }

    /// Number of running tasks (in any instance) and of queued tasks.
    pub async fn unfinished_tasks(&self) -> Result<UnfinishedTasks, Error> {
        let lives = instance::runner_is_alive("$1");
        let sql = format!(
            "SELECT t.state = 'running' AND {lives}, t.count FROM (SELECT runner, state, count(*) FROM tasks \
             WHERE state IN ('queued', 'running') GROUP BY 1, 2) AS t"
        );
        let mut unfinished = UnfinishedTasks::default();
        for row in self.query_with_retry(&sql, &[&self.instance_id()]).await? {
            match rows::get(&row, 0)? {
                true => unfinished.running += rows::get_u64(&row, 1)?,
                false => unfinished.queued += rows::get_u64(&row, 1)?,
            }
        }
        Ok(unfinished)
    }

    /// The last task for a document, if it is still retained. Completed and cancelled tasks are not considered.
    pub async fn task_of_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<TaskRecord>, Error> {
        let sql = format!(
            "SELECT {} FROM {TASK_TABLES} WHERE t.document = $2 AND b.name = $3 AND t.state IN ('queued', 'running', 'failed') \
             ORDER BY t.key DESC LIMIT 1",
            all_columns()
        );
        self.query_with_retry(&sql, &[&self.instance_id(), &id.0, &base.as_str()])
            .await?
            .first()
            .map(task_rows::read)
            .transpose()
    }

    /// Starts a task of this instance. Returns false if it cannot start: it was cancelled, or another instance owns
    /// it.
    pub async fn start_task(&self, id: TaskId) -> Result<bool, Error> {
        let me = self.instance_id();
        // An earlier call without an acknowledgement may have started the task.
        let before = self.0.in_doubt.start_time(id);
        let (now, is_doubtful) = (before.unwrap_or_else(rows::now), before.is_some());
        let begin = |session, is_again| start(session, me, id, now, is_again || is_doubtful);
        let begun = self.write_with_retry(begin).await;
        self.0.in_doubt.record_start(id, now, &begun);
        begun
    }

    /// Records the progress of a running task of this instance. Each call is a write, so callers should throttle it.
    pub async fn record_progress(&self, id: TaskId, progress: TaskProgress) -> Result<bool, Error> {
        let TaskProgress { step, done, total, permille: share } = progress;
        let [done, total, share] = [done, total, share].map(|number| i32::try_from(number).unwrap_or(i32::MAX));
        // The row is locked while a document is written for the task. This statement skips it; the next call catches
        // up.
        let sql = "WITH mine AS (SELECT key FROM tasks WHERE id = $1 AND state = 'running' AND runner = $2), \
                   free AS (SELECT t.key FROM tasks AS t JOIN mine ON mine.key = t.key FOR UPDATE OF t SKIP LOCKED), \
                   noted AS (UPDATE tasks AS t SET step = $3, done = $4, total = $5, updated = $6, share = $7 FROM free \
                   WHERE t.key = free.key AND t.state = 'running' AND t.runner = $2) \
                   SELECT EXISTS (SELECT 1 FROM mine)";
        let (me, step, now) = (self.instance_id(), rows::without_nul(&step), rows::now());
        let noted = self.query_with_retry(sql, &[&id.0, &me, &step, &done, &total, &now, &share]).await?;
        noted.first().map_or(Ok(false), |row| rows::get(row, 0))
    }

    pub(super) fn instance_id(&self) -> Uuid {
        self.0.instance.id()
    }
}

/// Fails if the task of a write was cancelled or adopted by another instance, and locks it until the end of the
/// transaction. The first lock of every write for a task.
pub(super) async fn lock_active_task(session: &Session, me: Uuid, work: &TaskLink) -> Result<(), Error> {
    let id = match work {
        TaskLink::Standalone => return Ok(()),
        TaskLink::PartOf(id) => *id,
        TaskLink::Ends(end) => end.task,
    };
    let sql = "SELECT 1 FROM tasks WHERE id = $1 AND state IN ('queued', 'running') AND runner = $2 FOR UPDATE";
    session.opt_row(sql, &[&id.0, &me]).await?.map(|_| ()).ok_or(Error::Cancelled)
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
    let base = rows::get_or_create_base(&session, &task.base).await?;
    let sql = "INSERT INTO tasks (id, base, owner, kind, request, document, filename, format, size_bytes, state, created, \
               updated, attempts, runner) SELECT $1::uuid, $2::bigint, $3::text, $4::text, $5::text, $6::uuid, $7::text, \
               $8::text, $9::bigint, 'queued', $10::bigint, $10, 0, $11::uuid WHERE (SELECT count(*) FROM (SELECT 1 \
               FROM tasks WHERE state IN ('queued', 'running') LIMIT $12) AS unfinished) < $12 \
               OR EXISTS (SELECT 1 FROM tasks WHERE id = $1) ON CONFLICT (id) DO NOTHING RETURNING key";
    let given: SqlParams<'_> = &[
        &task.id.0,
        &base,
        &rows::without_nul(&task.owner),
        &task.kind.stored_name(),
        &request,
        &task.document.map(|document| document.0),
        &task.filename.as_deref().map(rows::without_nul),
        &task.format.as_deref().map(rows::without_nul),
        &task.size_bytes.map(rows::to_i64),
        &rows::now(),
        &me,
        &rows::to_i64(options.max_tasks),
    ];
    let key = session.opt_row(sql, given).await?.map(|row| rows::get(&row, 0)).transpose()?;
    if key.is_none() && session.opt_row("SELECT 1 FROM tasks WHERE id = $1", &[&task.id.0]).await?.is_none() {
        session.rollback().await?;
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
        is_begun = session.opt_row(sql, &[&id.0, &me, &now]).await?.is_some();
    }
    session.commit().await?;
    Ok(is_begun)
}
