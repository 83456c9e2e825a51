//! Tasks and their ownership.
//!
//! A task belongs to the process that accepted it. When that process ends, for any reason, another process may adopt
//! the task. File locks show which processes are alive (see `instance`).

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};

use super::instance::Liveness;
use super::{Store, WriterContext, rows, task_completion};
use crate::document::{BaseName, DocumentId};
use crate::store::{Error, Options, TaskListQuery, TaskOwnership};
use crate::task::{NewTask, TaskId, TaskLink, TaskProgress, TaskRecord, TaskState, UnfinishedTasks};

/// An import may list ten thousand files, and a task list two hundred imports.
const RESULT_WITHOUT_FILES: &str = "json_remove(t.result, '$.files')";

impl Store {
    /// Adds a task that this process will run.
    pub async fn add_task(&self, task: &NewTask) -> Result<(), Error> {
        let (task, options) = (task.clone(), self.0.options.clone());
        self.write(move |transaction, pen| add(transaction, pen, &task, &options)).await
    }

    pub async fn task(&self, id: TaskId) -> Result<Option<TaskRecord>, Error> {
        let living = self.liveness();
        self.read(move |transaction| Ok(find_task(transaction, id)?.map(|task| with_liveness(&living, task)))).await
    }

    pub async fn task_ownership(&self, ids: &[TaskId]) -> Result<HashMap<TaskId, TaskOwnership>, Error> {
        let (ids, me) = (ids.to_vec(), self.instance().to_owned());
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached("SELECT state, runner IS ?2 FROM tasks WHERE id = ?1")?;
            let mut whose = |id: &TaskId| {
                let found = statement
                    .query_row(params![id, me], |row| Ok(TaskOwnership::of(row.get_ref(0)?.as_str()?, row.get(1)?)))
                    .optional()?;
                Ok(found.map(|found| (*id, found)))
            };
            ids.iter().filter_map(|id| whose(id).transpose()).collect()
        })
        .await
    }

    /// The latest tasks of one base or of all, newest first.
    pub async fn tasks(&self, base: Option<&BaseName>, limit: u32) -> Result<Vec<TaskRecord>, Error> {
        let (base, living) = (base.cloned(), self.liveness());
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached(&format!(
                "SELECT {} WHERE ?1 IS NULL OR b.name = ?1 ORDER BY t.key DESC LIMIT ?2",
                all_columns()
            ))?;
            let rows = statement.query_map((base, limit), read)?;
            rows.map(|task| Ok(with_liveness(&living, task?))).collect()
        })
        .await
    }

    /// Tasks, newest first, with an empty `request` and without the files of their results.
    pub async fn latest_tasks(&self, list: TaskListQuery) -> Result<Vec<TaskRecord>, Error> {
        let living = self.liveness();
        self.read(move |transaction| {
            let TaskListQuery { bases, owner, states, limit } = list;
            let mut statement = transaction.prepare_cached(&format!(
                "SELECT {} WHERE b.name IN (SELECT value FROM json_each(?1)) AND \
                 (?2 = '[]' OR t.state IN (SELECT value FROM json_each(?2))) AND (?4 IS NULL OR t.owner = ?4) \
                 AND NOT (t.kind = 'add' AND t.state = 'failed' AND t.document IS NULL) ORDER BY t.key DESC LIMIT ?3",
                columns("'{}'", RESULT_WITHOUT_FILES)
            ))?;
            let rows =
                statement.query_map(params![rows::to_json(&bases)?, rows::to_json(&states)?, limit, owner], read)?;
            rows.map(|task| Ok(with_liveness(&living, task?))).collect()
        })
        .await
    }

    /// Number of running tasks (in any process) and of queued tasks.
    pub async fn unfinished_tasks(&self) -> Result<UnfinishedTasks, Error> {
        let living = self.liveness();
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached(
                "SELECT runner, state = 'running', count(*) FROM tasks WHERE state IN ('queued', 'running') GROUP BY 1, 2",
            )?;
            let mut rows = statement.query([])?;
            let mut unfinished = UnfinishedTasks::default();
            while let Some(row) = rows.next()? {
                let (runner, is_running, count): (Option<String>, bool, u64) = (row.get(0)?, row.get(1)?, row.get(2)?);
                match is_running && living.is_alive(runner.as_deref()) {
                    true => unfinished.running += count,
                    false => unfinished.queued += count,
                }
            }
            Ok(unfinished)
        })
        .await
    }

    /// The last task for a document, if it is still retained. Completed and cancelled tasks are not considered.
    pub async fn task_of_document(&self, base: &BaseName, id: DocumentId) -> Result<Option<TaskRecord>, Error> {
        let base = base.clone();
        self.read(move |transaction| {
            let mut statement = transaction.prepare_cached(&format!(
                "SELECT {} WHERE t.document = ?1 AND b.name = ?2 AND t.state IN ('queued', 'running', 'failed') \
                 ORDER BY t.key DESC LIMIT 1",
                all_columns()
            ))?;
            Ok(statement.query_row((id, base), read).optional()?)
        })
        .await
    }

    /// Starts a task of this process. Returns false if it cannot start: it was cancelled, or another process owns it.
    pub async fn start_task(&self, id: TaskId) -> Result<bool, Error> {
        self.write(move |transaction, pen| {
            let mut statement = transaction.prepare_cached(
                "UPDATE tasks SET state = 'running', started = ?3, updated = ?3, attempts = attempts + 1, step = '', \
                 done = 0, total = 0, share = 0 WHERE id = ?1 AND state = 'queued' AND runner = ?2",
            )?;
            Ok(statement.execute(params![id, pen.instance, rows::now()])? > 0)
        })
        .await
    }

    /// Records the progress of a running task of this process. Each call is a write, so callers should throttle it.
    pub async fn record_progress(&self, id: TaskId, progress: TaskProgress) -> Result<bool, Error> {
        self.write(move |transaction, pen| {
            let mut statement = transaction.prepare_cached(
                "UPDATE tasks SET step = ?3, done = ?4, total = ?5, updated = ?6, share = ?7 \
                 WHERE id = ?1 AND state = 'running' AND runner = ?2",
            )?;
            let TaskProgress { step, done, total, permille: share } = progress;
            Ok(statement.execute(params![id, pen.instance, step, done, total, rows::now(), share])? > 0)
        })
        .await
    }

    /// Adopts the unfinished tasks of dead processes and queues them for this process, oldest first. One transaction,
    /// so no two processes adopt the same task.
    pub async fn adopt_orphaned_tasks(&self) -> Result<Vec<TaskRecord>, Error> {
        let living = self.liveness();
        self.write(move |transaction, pen| adopt(transaction, pen, &living)).await
    }

    /// Releases the unfinished tasks of this process for adoption. This is an orderly shutdown, so it does not count
    /// as a failed attempt of the task.
    pub async fn release_tasks(&self) -> Result<u64, Error> {
        self.write(move |transaction, pen| {
            let mut statement = transaction.prepare_cached(
                "UPDATE tasks SET runner = NULL, attempts = max(attempts - (state = 'running'), 0), state = 'queued', \
                 updated = ?2 WHERE runner = ?1 AND state IN ('queued', 'running')",
            )?;
            Ok(statement.execute(params![pen.instance, rows::now()])? as u64)
        })
        .await
    }
}

/// Fails if the task of a write was cancelled or adopted by another process.
pub(super) fn check_active_task(connection: &Connection, pen: &WriterContext, work: &TaskLink) -> Result<(), Error> {
    let id = match work {
        TaskLink::Standalone => return Ok(()),
        TaskLink::PartOf(id) => *id,
        TaskLink::Ends(end) => end.task,
    };
    let mut statement = connection
        .prepare_cached("SELECT 1 FROM tasks WHERE id = ?1 AND state IN ('queued', 'running') AND runner = ?2")?;
    statement.exists(params![id, pen.instance])?.then_some(()).ok_or(Error::Cancelled)
}

fn add(connection: &Connection, pen: &WriterContext, task: &NewTask, options: &Options) -> Result<(), Error> {
    let bound = options.max_tasks;
    let unfinished: u64 = connection
        .prepare_cached("SELECT count(*) FROM tasks WHERE state IN ('queued', 'running')")?
        .query_row([], |row| row.get(0))?;
    if unfinished >= bound {
        return Err(Error::TooManyTasks { bound });
    }
    let now = rows::now();
    // A task alone does not change a base, but the base must exist.
    let base = rows::get_or_create_base(connection, &task.base, now)?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO tasks (id, base, owner, kind, request, document, filename, format, size_bytes, state, created, updated, \
         attempts, runner) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'queued', ?10, ?10, 0, ?11)",
    )?;
    statement.execute(params![
        task.id,
        base,
        task.owner,
        task.kind,
        rows::to_json(&task.request)?,
        task.document,
        task.filename,
        task.format,
        task.size_bytes,
        now,
        pen.instance,
    ])?;
    // The limit is exceeded by one percent at most.
    let often = i64::try_from(options.max_finished_tasks / 100).unwrap_or(i64::MAX).max(1);
    if connection.last_insert_rowid() % often == 0 {
        task_completion::delete_tasks_beyond(connection, options.max_finished_tasks)?;
    }
    Ok(())
}

/// A task as reported to callers. The process that wrote the row may have died since.
fn with_liveness(living: &Liveness, task: TaskRecord) -> TaskRecord {
    match task.state.is_finished() || living.is_alive(task.runner.as_deref()) {
        true => task,
        false => TaskRecord { state: TaskState::Queued, interrupted: true, ..task },
    }
}

fn find_task(connection: &Connection, id: TaskId) -> Result<Option<TaskRecord>, Error> {
    let mut statement = connection.prepare_cached(&format!("SELECT {} WHERE t.id = ?1", all_columns()))?;
    Ok(statement.query_row([id], read).optional()?)
}

fn adopt(connection: &Connection, pen: &WriterContext, living: &Liveness) -> Result<Vec<TaskRecord>, Error> {
    let runners = connection
        .prepare_cached("SELECT DISTINCT runner FROM tasks WHERE state IN ('queued', 'running') AND runner IS NOT ?1")?
        .query_map([&pen.instance], |row| row.get(0))?
        .collect::<Result<Vec<Option<String>>, _>>()?;
    let mut update = connection.prepare_cached(
        "UPDATE tasks SET state = 'queued', runner = ?2, updated = ?3 \
         WHERE state IN ('queued', 'running') AND runner IS ?1 RETURNING key, id",
    )?;
    let mut adopted = Vec::new();
    for dead in runners.iter().filter(|runner| !living.is_alive(runner.as_deref())) {
        let rows = update.query_map(params![dead, pen.instance, rows::now()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        for row in rows {
            adopted.push(row?);
        }
    }
    adopted.sort_unstable();
    let tasks = adopted.into_iter().map(|(_, id): (u64, TaskId)| find_task(connection, id));
    tasks.filter_map(Result::transpose).collect()
}

/// Columns and FROM clause for [`read`].
fn all_columns() -> String {
    columns("t.request", "t.result")
}

/// The same columns with replacements for the large ones.
fn columns(request: &str, result: &str) -> String {
    format!(
        "t.id, b.name, t.owner, t.kind, {request}, t.document, t.filename, t.format, t.size_bytes, t.state, t.step, t.done, \
         t.total, {result}, t.error_code, t.error_message, t.created, t.started, t.ended, t.updated, t.attempts, t.runner, \
         t.share FROM tasks AS t JOIN bases AS b ON b.key = t.base"
    )
}

fn read(row: &Row<'_>) -> rusqlite::Result<TaskRecord> {
    let state = match row.get_ref(9)?.as_str()? {
        "queued" => TaskState::Queued,
        "running" => TaskState::Running(TaskProgress {
            step: row.get(10)?,
            done: row.get(11)?,
            total: row.get(12)?,
            permille: row.get(22)?,
        }),
        "completed" => TaskState::Completed(rows::get_json(row, 13)?),
        "failed" => TaskState::Failed { code: row.get(14)?, message: row.get(15)? },
        "cancelled" => TaskState::Cancelled,
        other => return Err(rusqlite::Error::InvalidColumnType(9, other.to_owned(), rusqlite::types::Type::Text)),
    };
    Ok(TaskRecord {
        id: row.get(0)?,
        base: row.get(1)?,
        owner: row.get(2)?,
        kind: row.get(3)?,
        request: rows::get_json(row, 4)?,
        document: row.get(5)?,
        filename: row.get(6)?,
        format: row.get(7)?,
        size_bytes: row.get(8)?,
        state,
        created: row.get(16)?,
        started: row.get(17)?,
        ended: row.get(18)?,
        updated: row.get(19)?,
        attempts: row.get(20)?,
        runner: row.get(21)?,
        interrupted: false,
    })
}
