//! Completion, failure, cancellation and retention of tasks.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use super::{Store, WriterContext, import_checkpoint, rows, watched_files};
use crate::document::Millis;
use crate::store::Error;
use crate::task::{TaskEnd, TaskId, TaskLink, TaskOutcome};

/// Minimum retention of finished tasks.
const MIN_RETENTION: Duration = Duration::from_secs(60 * 60);

/// The part of the request to retain after the task has ended. The request may be large and is no longer needed; only
/// the path of an upload is retained, because the upload is deleted with its task.
pub(super) const RETAINED_REQUEST: &str = "CASE json_valid(request) WHEN 1 THEN \
     CASE json_extract(request, '$.add.origin') WHEN 'uploaded' \
     THEN json_object('upload', json_extract(request, '$.add.file_path')) ELSE '{}' END ELSE '{}' END";

/// The file that a task adds, from its request: the path, or the name of an upload. NULL for an import.
const ADDED_FILE: &str = "CASE WHEN kind = 'add' AND json_valid(request) THEN \
     CASE json_extract(request, '$.add.origin') WHEN 'uploaded' THEN filename \
     ELSE json_extract(request, '$.add.file_path') END END";

impl Store {
    /// Ends a task of this process; any process may cancel a task. Returns false if the task has already ended, does
    /// not exist, or belongs to another process.
    pub async fn end_task(&self, end: TaskEnd) -> Result<bool, Error> {
        self.write(move |transaction, pen| end_row(transaction, pen, &end, rows::now())).await
    }

    /// Cancels a task in any process. Returns false if it has already ended or does not exist.
    pub async fn cancel_task(&self, id: TaskId) -> Result<bool, Error> {
        self.end_task(TaskEnd::cancelled(id)).await
    }

    /// Cancels a task. If it has failed, it is no longer listed.
    pub async fn dismiss_task(&self, id: TaskId) -> Result<(), Error> {
        self.write(move |transaction, pen| {
            end_row(transaction, pen, &TaskEnd::cancelled(id), rows::now())?;
            watched_files::mark_task_done(transaction, id)?;
            let sql = "UPDATE tasks SET document = NULL WHERE id = ?1 AND state = 'failed'";
            transaction.prepare_cached(sql)?.execute([id])?;
            Ok(())
        })
        .await
    }

    /// Deletes tasks that ended longer ago than `keep`, and at least an hour ago; younger ones only if there are too
    /// many. Returns the number of deleted tasks.
    pub async fn prune_tasks(&self, now: Millis, keep: Duration) -> Result<u64, Error> {
        let keep = i64::try_from(keep.max(MIN_RETENTION).as_millis()).unwrap_or(i64::MAX);
        let most = self.0.options.max_finished_tasks;
        self.write(move |transaction, _| {
            let mut statement = transaction.prepare_cached(
                "DELETE FROM tasks WHERE state IN ('completed', 'failed', 'cancelled') AND ended < ?1",
            )?;
            let old = statement.execute([now.saturating_sub(keep)])? as u64;
            Ok(old + delete_tasks_beyond(transaction, most)?)
        })
        .await
    }
}

/// Ends the task of a write, if the write ends one.
pub(super) fn end_task_of_write(
    connection: &Connection,
    pen: &WriterContext,
    work: &TaskLink,
    now: Millis,
) -> Result<(), Error> {
    if let TaskLink::Ends(end) = work {
        end_row(connection, pen, end, now)?;
    }
    Ok(())
}

/// Ends a task. Only its owner may complete or fail it; any process may cancel it.
fn end_row(connection: &Connection, pen: &WriterContext, end: &TaskEnd, now: Millis) -> Result<bool, Error> {
    let runner = match end.outcome {
        TaskOutcome::Cancelled => None,
        TaskOutcome::Completed(_) | TaskOutcome::Failed { .. } => Some(&pen.instance),
    };
    let (state, result, error) = match &end.outcome {
        TaskOutcome::Completed(result) => ("completed", Some(rows::to_json(result)?), None),
        TaskOutcome::Failed { code, message } => ("failed", None, Some((code, message))),
        TaskOutcome::Cancelled => ("cancelled", None, None),
    };
    let sql = format!("SELECT base, {ADDED_FILE} FROM tasks WHERE id = ?1");
    let added: Option<(i64, Option<String>)> =
        connection.prepare_cached(&sql)?.query_row([end.task], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let mut statement = connection.prepare_cached(&format!(
        "UPDATE tasks SET state = ?2, result = ?3, error_code = ?4, error_message = ?5, ended = ?6, updated = ?6, \
         request = iif(?2 = 'failed' AND {ADDED_FILE} IS NOT NULL, json_set({RETAINED_REQUEST}, '$.file', {ADDED_FILE}), \
         {RETAINED_REQUEST}) WHERE id = ?1 AND state IN ('queued', 'running') AND (?7 IS NULL OR runner = ?7)"
    ))?;
    let (code, message) = error.unzip();
    let is_ended = statement.execute(params![end.task, state, result, code, message, now, runner])? > 0;
    if is_ended {
        import_checkpoint::delete(connection, end.task)?;
    }
    match (added, &end.outcome) {
        (Some((base, Some(file))), TaskOutcome::Completed(_) | TaskOutcome::Failed { .. }) if is_ended => {
            hide_failures(connection, base, &file, Some(end.task))?;
            if matches!(end.outcome, TaskOutcome::Failed { .. }) {
                link_to_document(connection, base, &file, end.task)?;
            }
        }
        _ => {}
    }
    Ok(is_ended)
}

/// Hides earlier failures of a file, which was added again. Their tasks can still be queried by their IDs.
pub(super) fn hide_failures(
    connection: &Connection,
    base: i64,
    file: &str,
    except: Option<TaskId>,
) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(
        "UPDATE tasks SET document = NULL WHERE state = 'failed' AND base = ?1 AND kind = 'add' AND document IS NOT NULL \
         AND id IS NOT ?3 AND iif(json_valid(request), json_extract(request, '$.file'), NULL) = ?2",
    )?;
    statement.execute(params![base, file, except])?;
    Ok(())
}

/// Links a failure to the document that the file has from an earlier success.
fn link_to_document(connection: &Connection, base: i64, path: &str, task: TaskId) -> Result<(), Error> {
    let mut statement = connection.prepare_cached(
        "UPDATE tasks SET document = ifnull((SELECT d.id FROM documents AS d WHERE d.base = ?1 AND d.path = ?2), document) \
         WHERE id = ?3",
    )?;
    statement.execute(params![base, path, task])?;
    Ok(())
}

/// Deletes the oldest finished tasks beyond a limit. Returns the number of deleted tasks.
pub(super) fn delete_tasks_beyond(connection: &Connection, most: u64) -> Result<u64, Error> {
    let mut statement = connection.prepare_cached(
        "DELETE FROM tasks WHERE key IN (SELECT key FROM tasks WHERE state IN ('completed', 'failed', 'cancelled') \
         ORDER BY ended DESC, key DESC LIMIT -1 OFFSET ?1)",
    )?;
    Ok(statement.execute([most])? as u64)
}
