//! Retention of finished tasks by age and number.

use std::time::Duration;

use super::{Store, rows};
use crate::knowledge::document::Millis;
use crate::knowledge::store::Error;

/// Minimum retention of finished tasks.
const MIN_RETENTION: Duration = Duration::from_secs(60 * 60);
/// Number of rows per DELETE, so that no statement takes long.
const DELETE_BATCH_SIZE: u32 = 10_000;

impl Store {
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
