//! Retention of finished tasks by age and number.

use std::time::Duration;

use super::{Store, rows};
use crate::knowledge::document::Millis;
use crate::knowledge::store::Error;

/// Minimum retention of finished tasks.
const LEAST_KEPT: Duration = Duration::from_secs(60 * 60);
/// Number of rows per DELETE, so that no statement takes long.
const AT_ONCE: u32 = 10_000;

impl Store {
    /// Deletes tasks that ended longer ago than `keep`, and at least an hour ago; younger ones only if there are too
    /// many. Returns the number of deleted tasks.
    pub async fn prune_tasks(&self, now: Millis, keep: Duration) -> Result<u64, Error> {
        let keep = i64::try_from(keep.max(LEAST_KEPT).as_millis()).unwrap_or(i64::MAX);
        let old = "SELECT key FROM tasks WHERE ended < $1 ORDER BY ended";
        let forgotten = self.forget_tasks(old, now.saturating_sub(keep)).await?;
        Ok(forgotten + self.forget_beyond(self.0.options.max_finished).await?)
    }

    /// Deletes the oldest finished tasks beyond a limit. Returns the number of deleted tasks.
    pub(super) async fn forget_beyond(&self, most: u64) -> Result<u64, Error> {
        let beyond = "SELECT key FROM tasks WHERE ended IS NOT NULL ORDER BY ended DESC, key DESC OFFSET $1";
        self.forget_tasks(beyond, rows::signed(most)).await
    }

    /// Deletes the tasks that a query selects. Rows that another transaction has locked are skipped.
    async fn forget_tasks(&self, found: &str, by: i64) -> Result<u64, Error> {
        let sql = format!(
            "WITH found AS MATERIALIZED ({found} LIMIT {AT_ONCE}), \
             free AS (SELECT t.key FROM tasks AS t JOIN found AS f ON f.key = t.key WHERE t.ended IS NOT NULL \
             FOR UPDATE OF t SKIP LOCKED) \
             DELETE FROM tasks AS t USING free WHERE t.key = free.key"
        );
        let mut forgotten = 0;
        loop {
            let some = self.plain().await?.execute(&sql, &[&by]).await?;
            forgotten += some;
            if some < u64::from(AT_ONCE) {
                return Ok(forgotten);
            }
        }
    }
}
