//! Log of routing decisions, shared by all instances.

use tokio_postgres::Row;

use super::{Store, rows};
use crate::knowledge::decisions::{Decision, Whose};
use crate::knowledge::store::Error;

/// Number of rows per DELETE, so that no statement takes long.
const AT_ONCE: u32 = 10_000;

impl Store {
    /// Returns a number that is unique to this process, for the upper bits of IDs. It repeats only after two million
    /// process starts.
    pub async fn decider(&self) -> Result<u32, Error> {
        let given = self.ask("SELECT nextval('decider')::int", &[]).await?;
        given.first().map_or_else(|| Err(Error::unreadable("decider")), |row| rows::small(row, 0))
    }

    /// Stores decisions. Existing decisions are not changed.
    pub async fn keep_decisions(&self, decisions: &[Decision]) -> Result<(), Error> {
        let ids: Vec<i64> = decisions.iter().map(|decision| rows::signed(decision.id)).collect();
        let times: Vec<i64> = decisions.iter().map(|decision| rows::signed(decision.at_ms)).collect();
        let callers: Vec<Option<&str>> = decisions.iter().map(|decision| owner(decision.caller.as_deref())).collect();
        let records: Vec<&str> = decisions.iter().map(|decision| decision.record.as_str()).collect();
        let sql = "INSERT INTO decisions (id, at, caller, record) \
                   SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) ON CONFLICT DO NOTHING";
        self.ask(sql, &[&ids, &times, &callers, &records]).await?;
        Ok(())
    }

    /// The latest decisions, newest first.
    pub async fn newest_decisions(&self, whose: Whose<'_>, most: usize) -> Result<Vec<Decision>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let found = match whose {
            Whose::Everybodys => {
                let sql = "SELECT id, at, caller, record FROM decisions ORDER BY at DESC, id DESC LIMIT $1";
                self.ask(sql, &[&most]).await?
            }
            Whose::Of(caller) => {
                let sql = "SELECT id, at, caller, record FROM decisions WHERE caller = $2 \
                           ORDER BY at DESC, id DESC LIMIT $1";
                self.ask(sql, &[&most, &caller]).await?
            }
        };
        found.iter().map(decision).collect()
    }

    /// Returns one decision.
    pub async fn decision(&self, id: u64, whose: Whose<'_>) -> Result<Option<Decision>, Error> {
        let id = rows::signed(id);
        let found = match whose {
            Whose::Everybodys => self.ask("SELECT id, at, caller, record FROM decisions WHERE id = $1", &[&id]).await?,
            Whose::Of(caller) => {
                let sql = "SELECT id, at, caller, record FROM decisions WHERE id = $1 AND caller = $2";
                self.ask(sql, &[&id, &caller]).await?
            }
        };
        found.first().map(decision).transpose()
    }

    /// Deletes the oldest decisions beyond the limit. Rows that another instance is deleting are skipped.
    pub async fn forget_decisions(&self, most: usize) -> Result<(), Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let sql = format!(
            "WITH beyond AS MATERIALIZED (SELECT id FROM decisions ORDER BY kept DESC, id DESC OFFSET $1 LIMIT {AT_ONCE}), \
             free AS (SELECT d.id FROM decisions AS d JOIN beyond AS b ON b.id = d.id FOR UPDATE OF d SKIP LOCKED) \
             DELETE FROM decisions AS d USING free WHERE d.id = free.id"
        );
        self.ask(&sql, &[&most]).await?;
        Ok(())
    }
}

fn decision(row: &Row) -> Result<Decision, Error> {
    let caller: Option<&str> = rows::get(row, 2)?;
    Ok(Decision {
        id: rows::number(row, 0)?,
        at_ms: rows::number(row, 1)?,
        caller: caller.map(Into::into),
        record: rows::get(row, 3)?,
    })
}

/// The caller as the column can store it. PostgreSQL text cannot contain NUL, and replacing the character could
/// produce the name of another caller.
fn owner(caller: Option<&str>) -> Option<&str> {
    caller.filter(|caller| !caller.contains('\0'))
}
