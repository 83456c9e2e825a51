//! Rate-limit usage shared by all instances (GCRA). Each row holds the time, by the database clock, at which the
//! caller's allowance will be full again.
//!
//! A row only matters while that time is in the future or only just past. A missing row is therefore valid, and old
//! rows are swept.

use std::collections::HashMap;
use std::time::Duration;

use corbie_mcp::transport::RateUsage;
use sha2::{Digest, Sha256};

use super::Store;
use crate::hex;
use crate::store::Error;

/// Callers per statement, so that none takes long.
const SYNC_BATCH_SIZE: usize = 500;

/// Adds usage and returns when each allowance will be full again. Rows are locked in caller order, so that two
/// instances do not deadlock. Callers without new usage are only read. A time too far in the future is ignored,
/// because it was written before the clock was set back.
const SYNC_SQL: &str = "\
    WITH told AS ( \
        SELECT * FROM unnest($1::text[], $2::float8[], $3::float8[], $4::float8[]) AS told (caller, cost, age, most) \
    ), added AS ( \
        INSERT INTO rates AS known (caller, whole) \
        SELECT caller, clock_timestamp() + least(cost - age, most) * interval '1 second' \
        FROM told WHERE cost > 0 ORDER BY caller \
        ON CONFLICT (caller) DO UPDATE SET whole = least( \
            greatest(known.whole + ($2::float8[])[array_position($1, excluded.caller)] * interval '1 second', excluded.whole), \
            clock_timestamp() + ($4::float8[])[array_position($1, excluded.caller)] * interval '1 second') \
        RETURNING caller, whole \
    ), heard AS ( \
        SELECT rates.caller, rates.whole FROM rates JOIN told ON told.caller = rates.caller \
        WHERE told.cost = 0 AND rates.whole <= clock_timestamp() + told.most * interval '1 second' \
    ) \
    SELECT caller, extract(epoch FROM whole - clock_timestamp())::float8 \
    FROM (SELECT * FROM added UNION ALL SELECT * FROM heard) AS all_callers";

/// Skips locked rows: waiting for one could cause a deadlock.
const SWEEP_SQL: &str = "\
    DELETE FROM rates WHERE caller IN ( \
        SELECT caller FROM rates WHERE whole < clock_timestamp() - interval '1 minute' FOR UPDATE SKIP LOCKED)";

impl Store {
    /// Adds local usage to the usage of all instances and updates each local limiter with the sum. The callers with
    /// the highest usage come first, in case there is not enough time for all.
    pub(crate) async fn sync_rate_usage(&self, mut spent: Vec<RateUsage>) -> Result<(), Error> {
        spent.sort_by_key(|one| one.cost);
        while !spent.is_empty() {
            let some = spent.split_off(spent.len().saturating_sub(SYNC_BATCH_SIZE));
            self.sync_rate_batch(some).await?;
        }
        Ok(())
    }

    async fn sync_rate_batch(&self, mut spent: Vec<RateUsage>) -> Result<(), Error> {
        let session = self.autocommit().await?;
        spent.iter_mut().for_each(RateUsage::mark_reported);
        let seconds =
            |of: fn(&RateUsage) -> Duration| -> Vec<f64> { spent.iter().map(|one| of(one).as_secs_f64()).collect() };
        let (cost, age, most) = (seconds(|one| one.cost), seconds(|one| one.age), seconds(|one| one.max));
        let callers: Vec<String> = spent.iter().map(|one| caller_hash(&one.caller)).collect();
        let rows = session.rows(SYNC_SQL, &[&callers, &cost, &age, &most]).await?;
        let mut spent: HashMap<String, RateUsage> = callers.into_iter().zip(spent).collect();
        for row in rows {
            if let Some(one) = spent.remove(row.get::<_, &str>(0)) {
                one.apply_total(Duration::try_from_secs_f64(row.get::<_, f64>(1).max(0.0)).unwrap_or(Duration::MAX));
            }
        }
        Ok(())
    }

    /// Deletes callers with an allowance that has long been full.
    pub(crate) async fn sweep_rate_usage(&self) -> Result<u64, Error> {
        self.autocommit().await?.execute(SWEEP_SQL, &[]).await
    }
}

/// Hashes the caller name: it may be long, may contain NUL, and should not be visible in the database.
fn caller_hash(caller: &str) -> String {
    hex(&Sha256::digest(caller))
}
