//! Completion, failure, cancellation and retention of tasks.
//!
//! Requests contain user input as JSON, which may contain an escaped NUL; the server's JSON functions reject it.
//! Requests are therefore parsed here.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use super::session::Session;
use super::upsert_document::find_by_path;
use super::{Store, import_checkpoint, rows, watched_files};
use crate::document::Millis;
use crate::store::Error;
use crate::task::{TaskEnd, TaskId, TaskLink, TaskOutcome};

/// The request of a task, if it may refer to an upload.
const UPLOAD_REQUEST: &str = "CASE WHEN kind = 'add' AND strpos(request, '\"uploaded\"') > 0 THEN request END";

/// Replacement for a request that is not retained.
const EMPTY_REQUEST: &str = "{}";

/// Minimum retention of finished tasks.
const MIN_RETENTION: Duration = Duration::from_secs(60 * 60);
/// Number of rows per DELETE, so that no statement takes long.
const DELETE_BATCH_SIZE: u32 = 10_000;

impl Store {
    /// Ends a task of this instance; any instance may cancel a task. Returns false if the task has already ended, does
    /// not exist, or belongs to another instance.
    pub async fn end_task(&self, end: TaskEnd) -> Result<bool, Error> {
        let (me, now, end) = (self.instance_id(), rows::now(), &end);
        self.write_with_retry(|session, is_again| async move {
            let is_ended =
                end_row(&session, me, end, now).await? || (is_again && has_ended(&session, end, now).await?);
            session.commit().await?;
            Ok(is_ended)
        })
        .await
    }

    /// Cancels a task in any instance. Returns false if it has already ended or does not exist.
    pub async fn cancel_task(&self, id: TaskId) -> Result<bool, Error> {
        self.end_task(TaskEnd::cancelled(id)).await
    }

    /// Cancels a task. If it has failed, it is no longer listed.
    pub async fn dismiss_task(&self, id: TaskId) -> Result<(), Error> {
        let me = self.instance_id();
        self.write_with_retry(|session, _| async move {
            end_row(&session, me, &TaskEnd::cancelled(id), rows::now()).await?;
            let unlist = "UPDATE tasks SET document = NULL WHERE id = $1 AND state = 'failed'";
            session.execute(unlist, &[&id.0]).await?;
            watched_files::mark_task_done(&session, id).await?;
            session.commit().await
        })
        .await
    }

    /// Deletes tasks that ended longer ago than `keep`, and at least an hour ago; younger ones only if there are too
    /// many. Returns the number of deleted tasks.
    pub async fn prune_tasks(&self, now: Millis, keep: Duration) -> Result<u64, Error> {
        let keep = i64::try_from(keep.max(MIN_RETENTION).as_millis()).unwrap_or(i64::MAX);
        let old = "SELECT key FROM tasks WHERE ended < $1 ORDER BY ended";
        let forgotten = self.delete_tasks(old, now.saturating_sub(keep)).await?;
        Ok(forgotten + self.delete_tasks_beyond(self.0.options.max_finished_tasks).await?)
    }

    /// Deletes the oldest finished tasks beyond a limit. Returns the number of deleted tasks.
    pub(super) async fn delete_tasks_beyond(&self, most: u64) -> Result<u64, Error> {
        let beyond = "SELECT key FROM tasks WHERE ended IS NOT NULL ORDER BY ended DESC, key DESC OFFSET $1";
        self.delete_tasks(beyond, rows::to_i64(most)).await
    }

    /// Deletes the tasks that a query selects. Rows that another transaction has locked are skipped.
    async fn delete_tasks(&self, found: &str, by: i64) -> Result<u64, Error> {
        let sql = format!(
            "WITH found AS MATERIALIZED ({found} LIMIT {DELETE_BATCH_SIZE}), \
             free AS (SELECT t.key FROM tasks AS t JOIN found AS f ON f.key = t.key WHERE t.ended IS NOT NULL \
             FOR UPDATE OF t SKIP LOCKED) \
             DELETE FROM tasks AS t USING free WHERE t.key = free.key"
        );
        let mut forgotten = 0;
        loop {
            let some = self.autocommit().await?.execute(&sql, &[&by]).await?;
            forgotten += some;
            if some < u64::from(DELETE_BATCH_SIZE) {
                return Ok(forgotten);
            }
        }
    }
}

/// Ends the task of a write, if the write ends one.
pub(super) async fn end_task_of_write(session: &Session, me: Uuid, work: &TaskLink, now: i64) -> Result<(), Error> {
    if let TaskLink::Ends(end) = work {
        end_row(session, me, end, now).await?;
    }
    Ok(())
}

/// Ends a task. Only its owner may complete or fail it; any instance may cancel it.
async fn end_row(session: &Session, me: Uuid, end: &TaskEnd, now: i64) -> Result<bool, Error> {
    let runner = match end.outcome {
        TaskOutcome::Cancelled => None,
        TaskOutcome::Completed(_) | TaskOutcome::Failed { .. } => Some(me),
    };
    let sql = "SELECT key, base, filename, CASE WHEN kind = 'add' THEN request END FROM tasks WHERE id = $1 \
               AND state IN ('queued', 'running') AND ($2::uuid IS NULL OR runner = $2) FOR UPDATE";
    let Some(row) = session.opt_row(sql, &[&end.task.0, &runner]).await? else { return Ok(false) };
    let (key, base): (i64, i64) = (rows::get(&row, 0)?, rows::get(&row, 1)?);
    let (filename, request): (Option<String>, Option<&str>) = (rows::get(&row, 2)?, rows::get(&row, 3)?);
    let file = added_file(request, filename.as_deref());
    let left = match &end.outcome {
        TaskOutcome::Failed { .. } => retained_failure(request, file.as_deref()),
        TaskOutcome::Completed(_) | TaskOutcome::Cancelled => retained_request(request),
    };
    let (result, brief) = match &end.outcome {
        TaskOutcome::Completed(result) => (Some(rows::to_json(result)?), Some(rows::to_json(&without_files(result))?)),
        TaskOutcome::Failed { .. } | TaskOutcome::Cancelled => (None, None),
    };
    let (code, message) = match &end.outcome {
        TaskOutcome::Failed { code, message } => (Some(rows::without_nul(code)), Some(rows::without_nul(message))),
        TaskOutcome::Completed(_) | TaskOutcome::Cancelled => (None, None),
    };
    let sql = "UPDATE tasks SET state = $2, result = $3, result_brief = $4, error_code = $5, error_message = $6, ended = $7, \
               updated = $7, request = $8 WHERE key = $1";
    session.execute(sql, &[&key, &state_name(&end.outcome), &result, &brief, &code, &message, &now, &left]).await?;
    import_checkpoint::delete(session, &[key]).await?;
    match (file, &end.outcome) {
        (Some(file), TaskOutcome::Completed(_)) => {
            hide_failures(session, base, &file, filename.as_deref(), key).await?;
        }
        (Some(file), TaskOutcome::Failed { .. }) => {
            hide_failures(session, base, &file, filename.as_deref(), key).await?;
            // The document that the file has from an earlier success.
            if let Some(document) = find_by_path(session, base, &file, 0).await? {
                session.execute("UPDATE tasks SET document = $2 WHERE key = $1", &[&key, &document.0]).await?;
            }
        }
        _ => {}
    }
    Ok(true)
}

/// Hides earlier failures of a file, which was added again (X-48). Their tasks can still be queried by their IDs.
/// `except` is the key of a task, or 0.
pub(super) async fn hide_failures(
    session: &Session,
    base: i64,
    file: &str,
    filename: Option<&str>,
    except: i64,
) -> Result<(), Error> {
    let sql = "SELECT key, request FROM tasks WHERE base = $1 AND state = 'failed' AND kind = 'add' \
               AND document IS NOT NULL AND key <> $2 AND filename IS NOT DISTINCT FROM $3";
    let mut earlier = Vec::<i64>::new();
    for row in session.rows(sql, &[&base, &except, &filename.map(rows::without_nul)]).await? {
        let request: Value = serde_json::from_str(rows::get(&row, 1)?).unwrap_or_default();
        if request["file"] == file {
            earlier.push(rows::get(&row, 0)?);
        }
    }
    if !earlier.is_empty() {
        session.execute("UPDATE tasks SET document = NULL WHERE key = ANY($1)", &[&earlier]).await?;
    }
    Ok(())
}

/// The file that a task adds, from its request: the path, or the name of an upload.
fn added_file(request: Option<&str>, filename: Option<&str>) -> Option<String> {
    let request: Value = serde_json::from_str(request?).ok()?;
    let add = &request["add"];
    match add["origin"] == "uploaded" {
        true => filename.map(str::to_owned),
        false => add["file_path"].as_str().map(str::to_owned),
    }
}

/// The part of the request of a failed task to retain, with the file that it could not add.
fn retained_failure(request: Option<&str>, file: Option<&str>) -> String {
    let mut retained: Value = serde_json::from_str(&retained_request(request)).unwrap_or_default();
    if let (Value::Object(members), Some(file)) = (&mut retained, file) {
        members.insert("file".into(), file.into());
    }
    retained.to_string()
}

/// Whether the task ended with this outcome at this timestamp, that is, by an earlier attempt of ours.
pub(super) async fn has_ended(session: &Session, end: &TaskEnd, now: i64) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM tasks WHERE id = $1 AND state = $2 AND ended = $3";
    Ok(session.opt_row(sql, &[&end.task.0, &state_name(&end.outcome), &now]).await?.is_some())
}

/// Cancels all tasks of a base and hides failed tasks from the document list. Returns the cancelled tasks in row
/// order.
pub(super) async fn cancel_all(session: &Session, base: i64, now: i64) -> Result<Vec<TaskId>, Error> {
    let sql = format!(
        "SELECT key, id, {UPLOAD_REQUEST}, state = 'failed' FROM tasks \
         WHERE base = $1 AND state IN ('queued', 'running', 'failed') ORDER BY key FOR UPDATE"
    );
    let (mut failed, mut cancelled, mut ids, mut lefts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for row in session.rows(&sql, &[&base]).await? {
        let key: i64 = rows::get(&row, 0)?;
        match rows::get(&row, 3)? {
            true => failed.push(key),
            false => {
                cancelled.push(key);
                ids.push(TaskId(rows::get(&row, 1)?));
                lefts.push(retained_request(rows::get(&row, 2)?));
            }
        }
    }
    let unlist = "UPDATE tasks SET document = NULL WHERE key = ANY($1) AND document IS NOT NULL";
    session.execute(unlist, &[&failed]).await?;
    let cancel = "UPDATE tasks AS t SET state = 'cancelled', ended = $3, updated = $3, request = o.request \
                  FROM unnest($1::bigint[], $2::text[]) AS o (key, request) WHERE t.key = o.key";
    session.execute(cancel, &[&cancelled, &lefts, &now]).await?;
    import_checkpoint::delete(session, &cancelled).await?;
    Ok(ids)
}

/// The part of the request to retain after the task has ended. The request may be large and is no longer needed; only
/// the path of an upload is retained, because the upload is deleted with its task.
fn retained_request(request: Option<&str>) -> String {
    let request: Value = request.and_then(|request| serde_json::from_str(request).ok()).unwrap_or_default();
    let add = &request["add"];
    match add["origin"] == "uploaded" {
        true => json!({ "upload": add["file_path"] }).to_string(),
        false => EMPTY_REQUEST.to_owned(),
    }
}

/// The same for a serialized result.
pub(super) fn brief_json(result: &str) -> Result<String, Error> {
    let result: Value = serde_json::from_str(result).map_err(|error| Error::Corrupt(error.to_string()))?;
    rows::to_json(&without_files(&result))
}

/// A result without its per-file outcomes: an import may list ten thousand files, and a task list two hundred imports.
fn without_files(result: &Value) -> Value {
    match result {
        Value::Object(members) => Value::Object(
            members.iter().filter(|(name, _)| *name != "files").map(|(n, v)| (n.clone(), v.clone())).collect(),
        ),
        other => other.clone(),
    }
}

/// The stored word for an outcome.
fn state_name(outcome: &TaskOutcome) -> &'static str {
    match outcome {
        TaskOutcome::Completed(_) => "completed",
        TaskOutcome::Failed { .. } => "failed",
        TaskOutcome::Cancelled => "cancelled",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_request_only_the_place_of_an_upload_is_kept() {
        let upload = r#"{"add":{"file_path":"/up/a\u0000.pdf","origin":"uploaded","metadata":{"a":1}}}"#;
        assert_eq!(retained_request(Some(upload)), r#"{"upload":"/up/a\u0000.pdf"}"#);
        assert_eq!(retained_request(Some(r#"{"add":{"file_path":"/a","metadata":{"origin":"uploaded"}}}"#)), "{}");
        assert_eq!(retained_request(Some("not JSON")), "{}");
        assert_eq!(retained_request(None), "{}");
    }

    #[test]
    fn a_brief_result_names_no_files() {
        assert_eq!(without_files(&json!({ "added": 2, "files": [1, 2] })), json!({ "added": 2 }));
        assert_eq!(without_files(&json!("done")), json!("done"));
    }
}
