//! List of the latest tasks, without requests and per-file results.

use super::Store;
use super::task_rows::{self, TASKS};
use crate::knowledge::document::BaseName;
use crate::knowledge::store::{Error, TaskList};
use crate::knowledge::task::Task;

impl Store {
    /// Tasks, newest first, with an empty `request` and without the files of their results.
    pub async fn latest_tasks(&self, list: TaskList) -> Result<Vec<Task>, Error> {
        let TaskList { bases, owner, active, limit } = list;
        let only = if active { "AND t.state IN ('queued', 'running')" } else { "" };
        let columns = task_rows::columns("'{}'", "t.result_brief");
        let sql = format!(
            "SELECT {columns} FROM {TASKS} WHERE b.name = ANY($2) {only} AND ($4::text IS NULL OR t.owner = $4) \
             ORDER BY t.key DESC LIMIT $3"
        );
        let bases: Vec<&str> = bases.iter().map(BaseName::as_str).collect();
        self.ask(&sql, &[&self.me(), &bases, &i64::from(limit), &owner]).await?.iter().map(task_rows::told).collect()
    }
}
