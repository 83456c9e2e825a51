//! List of the latest tasks, without requests and per-file results.

use super::Store;
use super::task_rows::{self, TASK_TABLES};
use crate::knowledge::document::BaseName;
use crate::knowledge::store::{Error, TaskListQuery};
use crate::knowledge::task::TaskRecord;

impl Store {
    /// Tasks, newest first, with an empty `request` and without the files of their results.
    pub async fn latest_tasks(&self, list: TaskListQuery) -> Result<Vec<TaskRecord>, Error> {
        let TaskListQuery { bases, owner, active_only: active, limit } = list;
        let only = if active { "AND t.state IN ('queued', 'running')" } else { "" };
        let columns = task_rows::columns("'{}'", "t.result_brief");
        let sql = format!(
            "SELECT {columns} FROM {TASK_TABLES} WHERE b.name = ANY($2) {only} AND ($4::text IS NULL OR t.owner = $4) \
             ORDER BY t.key DESC LIMIT $3"
        );
        let bases: Vec<&str> = bases.iter().map(BaseName::as_str).collect();
        self.query_with_retry(&sql, &[&self.instance_id(), &bases, &i64::from(limit), &owner])
            .await?
            .iter()
            .map(task_rows::read_with_liveness)
            .collect()
    }
}
