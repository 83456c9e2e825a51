//! Log of routing decisions, shared by all instances.

use tokio_postgres::Row;

use super::{Store, rows};
use crate::decision_log::{DecisionScope, StoredDecision};
use crate::store::Error;

/// Number of rows per DELETE, so that no statement takes long.
const DELETE_BATCH_SIZE: u32 = 10_000;

impl Store {
    /// Returns a number that is unique to this process, for the upper bits of IDs. It repeats only after two million
    /// process starts.
    pub async fn next_decider_id(&self) -> Result<u32, Error> {
        let given = self.query_with_retry("SELECT nextval('decider')::int", &[]).await?;
        given.first().map_or_else(|| Err(Error::unreadable("decider")), |row| rows::get_u32(row, 0))
    }

    /// Stores decisions. Existing decisions are not changed.
    pub async fn store_decisions(&self, decisions: &[StoredDecision]) -> Result<(), Error> {
        let ids: Vec<i64> = decisions.iter().map(|decision| rows::to_i64(decision.id)).collect();
        let times: Vec<i64> = decisions.iter().map(|decision| rows::to_i64(decision.at_ms)).collect();
        let callers: Vec<Option<&str>> =
            decisions.iter().map(|decision| storable_caller(decision.caller.as_deref())).collect();
        let records: Vec<&str> = decisions.iter().map(|decision| decision.record.as_str()).collect();
        let sql = "INSERT INTO decisions (id, at, caller, record) \
                   SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING";
        self.query_with_retry(sql, &[&ids, &times, &callers, &records]).await?;
        Ok(())
    }

    /// The latest decisions, newest first.
    pub async fn latest_decisions(&self, whose: DecisionScope<'_>, most: usize) -> Result<Vec<StoredDecision>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let found = match whose {
            DecisionScope::All => {
                let sql = "SELECT id, at, caller, record FROM decisions ORDER BY at DESC, id DESC LIMIT $1";
                self.query_with_retry(sql, &[&most]).await?
            }
            DecisionScope::Caller(caller) => {
                let sql = "SELECT id, at, caller, record FROM decisions WHERE caller = $2 \
                           ORDER BY at DESC, id DESC LIMIT $1";
                self.query_with_retry(sql, &[&most, &caller]).await?
            }
        };
        found.iter().map(read_decision).collect()
    }

    /// Returns one decision.
    pub async fn decision(&self, id: u64, whose: DecisionScope<'_>) -> Result<Option<StoredDecision>, Error> {
        let id = rows::to_i64(id);
        let found = match whose {
            DecisionScope::All => {
                self.query_with_retry("SELECT id, at, caller, record FROM decisions WHERE id = $1", &[&id]).await?
            }
            DecisionScope::Caller(caller) => {
                let sql = "SELECT id, at, caller, record FROM decisions WHERE id = $1 AND caller = $2";
                self.query_with_retry(sql, &[&id, &caller]).await?
            }
        };
        found.first().map(read_decision).transpose()
    }

    /// Deletes the oldest decisions beyond the limit. Rows that another instance is deleting are skipped.
    pub async fn prune_decisions(&self, most: usize) -> Result<(), Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let sql = format!(
            "WITH beyond AS MATERIALIZED (SELECT id FROM decisions ORDER BY kept DESC, id DESC OFFSET $1 LIMIT {DELETE_BATCH_SIZE}), \
             free AS (SELECT d.id FROM decisions AS d JOIN beyond AS b ON b.id = d.id FOR UPDATE OF d SKIP LOCKED) \
             DELETE FROM decisions AS d USING free WHERE d.id = free.id"
        );
        self.query_with_retry(&sql, &[&most]).await?;
        Ok(())
    }
}

fn read_decision(row: &Row) -> Result<StoredDecision, Error> {
    let caller: Option<&str> = rows::get(row, 2)?;
    Ok(StoredDecision {
        id: rows::get_u64(row, 0)?,
        at_ms: rows::get_u64(row, 1)?,
        caller: caller.map(Into::into),
        record: rows::get(row, 3)?,
    })
}

/// The caller as the column can store it. PostgreSQL text cannot contain NUL, and replacing the character could
/// produce the name of another caller.
fn storable_caller(caller: Option<&str>) -> Option<&str> {
    caller.filter(|caller| !caller.contains('\0'))
}
