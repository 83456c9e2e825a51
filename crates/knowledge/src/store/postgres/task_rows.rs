//! Conversion of rows to tasks.

use tokio_postgres::Row;
use uuid::Uuid;

use super::{instance, rows};
use crate::document::DocumentId;
use crate::store::Error;
use crate::task::{TaskId, TaskProgress, TaskRecord, TaskState};

/// Columns for [`read`], from `tasks AS t` and `bases AS b`. `$1` is this instance.
pub(super) fn all_columns() -> String {
    columns("t.request", "t.result")
}

/// The same columns with replacements for the large ones.
pub(super) fn columns(request: &str, result: &str) -> String {
    let lives = instance::runner_is_alive("$1");
    format!(
        "t.id, b.name, t.owner, t.kind, {request}, t.document, t.filename, t.format, t.size_bytes, t.state, t.step, t.done, \
         t.total, {result}, t.error_code, t.error_message, t.created, t.started, t.ended, t.updated, t.attempts, t.runner, \
         t.share, {lives}, t.key"
    )
}

/// The FROM clause for these columns.
pub(super) const TASK_TABLES: &str = "tasks AS t JOIN bases AS b ON b.key = t.base";

/// A task as stored.
pub(super) fn read(row: &Row) -> Result<TaskRecord, Error> {
    let state = match rows::get(row, 9)? {
        "queued" => TaskState::Queued,
        "running" => TaskState::Running(TaskProgress {
            step: rows::get(row, 10)?,
            done: rows::get_u32(row, 11)?,
            total: rows::get_u32(row, 12)?,
            permille: rows::get_u32(row, 22)?,
        }),
        "completed" => TaskState::Completed(rows::get_json(row, 13)?),
        "failed" => TaskState::Failed { code: rows::get(row, 14)?, message: rows::get(row, 15)? },
        "cancelled" => TaskState::Cancelled,
        other => return Err(Error::unreadable(other)),
    };
    let size: Option<i64> = rows::get(row, 8)?;
    Ok(TaskRecord {
        id: TaskId(rows::get(row, 0)?),
        base: rows::get_base_name(row, 1)?,
        owner: rows::get(row, 2)?,
        kind: rows::get_enum(row, 3)?,
        request: rows::get_json(row, 4)?,
        document: rows::get::<Option<Uuid>>(row, 5)?.map(DocumentId),
        filename: rows::get(row, 6)?,
        format: rows::get(row, 7)?,
        size_bytes: size.map(|size| u64::try_from(size).map_err(|_| Error::unreadable("size"))).transpose()?,
        state,
        created: rows::get(row, 16)?,
        started: rows::get(row, 17)?,
        ended: rows::get(row, 18)?,
        updated: rows::get(row, 19)?,
        attempts: rows::get_u32(row, 20)?,
        runner: rows::get::<Option<Uuid>>(row, 21)?.map(|runner| runner.to_string()),
        interrupted: false,
    })
}

/// A task as reported to callers. The instance that wrote the row may have died since.
pub(super) fn read_with_liveness(row: &Row) -> Result<TaskRecord, Error> {
    let (task, lives) = (read(row)?, rows::get::<bool>(row, 23)?);
    match task.state.is_finished() || lives {
        true => Ok(task),
        false => Ok(TaskRecord { state: TaskState::Queued, interrupted: true, ..task }),
    }
}

/// The key of a task.
pub(super) fn key(row: &Row) -> Result<i64, Error> {
    rows::get(row, 24)
}

/// Tasks in the order in which they were added.
pub(super) fn oldest_first(rows: &[Row]) -> Result<Vec<TaskRecord>, Error> {
    let keyed = rows.iter().map(|row| Ok((key(row)?, read(row)?)));
    let mut tasks = keyed.collect::<Result<Vec<_>, Error>>()?;
    tasks.sort_unstable_by_key(|(key, _)| *key);
    Ok(tasks.into_iter().map(|(_, task)| task).collect())
}
