//! Adoption and release of tasks.

use std::sync::Mutex;

use tokio_postgres::Row;
use uuid::Uuid;

use super::heartbeat::STABILIZATION_TIME;
use super::session::Session;
use super::task_rows::{self, all_columns};
use super::{Store, instance, rows};
use crate::store::Error;
use crate::task::TaskRecord;
use corbie_util::lock::lock;

/// Number of tasks adopted per call. Other instances poll too and may adopt the rest.
const MAX_ADOPTED_TASKS: u32 = 1000;

impl Store {
    /// Adopts the unfinished tasks of dead instances and queues them for this one, oldest first. One transaction, so
    /// no two instances adopt the same task.
    pub async fn adopt_orphaned_tasks(&self) -> Result<Vec<TaskRecord>, Error> {
        // A previous attempt may have committed without an acknowledgement, so some of these tasks may already be
        // ours.
        let (me, taken) = (self.instance_id(), Mutex::new(self.0.in_doubt.acquired()));
        let (taken, is_steady) = (&taken, self.0.heartbeat.is_stable());
        let adopted = self.write_with_retry(|session, _| async move {
            let before = lock(taken).clone();
            let adopted = adopt(&session, me, &before, is_steady).await?;
            let tasks = task_rows::oldest_first(&adopted)?;
            lock(taken).extend(tasks.iter().map(|task: &TaskRecord| task.id.0));
            session.commit().await?;
            Ok(tasks)
        });
        let adopted = adopted.await;
        let known: &[TaskRecord] = adopted.as_deref().unwrap_or_default();
        self.0.in_doubt.resolve(&lock(taken), known);
        adopted
    }

    /// Releases the unfinished tasks of this instance for adoption. This is an orderly shutdown, so it does not count
    /// as a failed attempt of the task.
    pub async fn release_tasks(&self) -> Result<u64, Error> {
        let me = self.instance_id();
        self.write_with_retry(|session, _| async move {
            let sql = "WITH mine AS (SELECT key FROM tasks WHERE runner = $1 AND state IN ('queued', 'running') \
                       ORDER BY key FOR UPDATE) \
                       UPDATE tasks AS t SET runner = NULL, state = 'queued', updated = $2, \
                       attempts = greatest(t.attempts - (t.state = 'running')::int, 0) FROM mine WHERE t.key = mine.key";
            let handed = session.execute(sql, &[&me, &rows::now()]).await?;
            session.commit().await?;
            Ok(handed)
        })
        .await
    }
}

/// Adopts tasks that have no owner or are in doubt. Rows that another instance has locked are skipped. Tasks of
/// apparently dead instances are adopted only if their death is certain: not right after the database or the
/// connection to it has recovered.
async fn adopt(session: &Session, me: Uuid, doubtful: &[Uuid], is_steady: bool) -> Result<Vec<Row>, Error> {
    let (lives, columns, steady) = (instance::runner_is_alive("$1"), all_columns(), STABILIZATION_TIME.as_secs());
    let sql = format!(
        "WITH orphans AS (SELECT t.key FROM tasks AS t WHERE t.state IN ('queued', 'running') \
         AND (t.runner IS NULL OR NOT {lives} AND $4 AND pg_postmaster_start_time() < now() - interval '{steady} seconds' \
         OR t.runner = $1 AND t.id = ANY($3)) ORDER BY t.key LIMIT {MAX_ADOPTED_TASKS} FOR UPDATE OF t SKIP LOCKED) \
         UPDATE tasks AS t SET state = 'queued', runner = $1, updated = $2 FROM orphans AS o, bases AS b \
         WHERE t.key = o.key AND b.key = t.base RETURNING {columns}"
    );
    session.rows(&sql, &[&me, &rows::now(), &doubtful, &is_steady]).await
}
