//! List of the latest tasks, without requests and per-file results.

use rusqlite::params;

use super::{Store, rows, tasks};
use crate::knowledge::store::{Error, TaskListQuery};
use crate::knowledge::task::TaskRecord;

/// An import may list ten thousand files, and a task list two hundred imports.
const RESULT_WITHOUT_FILES: &str = "json_remove(t.result, '$.files')";

impl Store {
    /// Tasks, newest first, with an empty `request` and without the files of their results.
    pub async fn latest_tasks(&self, list: TaskListQuery) -> Result<Vec<TaskRecord>, Error> {
        let living = self.liveness();
        self.read(move |transaction| {
            let TaskListQuery { bases, owner, active_only: active, limit } = list;
            let mut statement = transaction.prepare_cached(&format!(
                "SELECT {} WHERE b.name IN (SELECT value FROM json_each(?1)) AND \
                 (NOT ?2 OR t.state IN ('queued', 'running')) AND (?4 IS NULL OR t.owner = ?4) \
                 ORDER BY t.key DESC LIMIT ?3",
                tasks::columns("'{}'", RESULT_WITHOUT_FILES)
            ))?;
            let rows = statement.query_map(params![rows::to_json(&bases)?, active, limit, owner], tasks::read)?;
            rows.map(|task| Ok(tasks::with_liveness(&living, task?))).collect()
        })
        .await
    }
}
