//! Which instances there are, and which of them still live.
//!
//! Each writes its heartbeat (see `pulse`). One that has not for [`LIVES`] counts as ended, and others take over its tasks.
//! It may live all the same, cut off or asleep; then it finds that its tasks are others' now, and writes nothing for them.

use deadpool_postgres::Pool;
use uuid::Uuid;

use super::session::Session;
use crate::knowledge::store::Error;

/// After so long without a heartbeat an instance is taken for dead.
pub(super) const LIVES: &str = "interval '8 seconds'";

/// This process, for the others.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    id: Uuid,
    name: String,
    host: String,
}

impl Instance {
    pub(super) async fn take(pool: &Pool) -> Result<Instance, Error> {
        let id = Uuid::new_v4();
        let host = host();
        let session = Session::plain(pool).await?;
        session.execute("INSERT INTO instances (name, host) VALUES ($1, $2)", &[&id, &host]).await?;
        Ok(Instance { id, name: id.to_string(), host })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn id(&self) -> Uuid {
        self.id
    }

    /// Which machine it is on.
    pub(super) fn host(&self) -> &str {
        &self.host
    }
}

/// What this machine is called, as far as is easily told.
pub(super) fn host() -> String {
    let told = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let told = told.or_else(|| std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).ok());
    told.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

/// Whether the runner of a task lives: an expression over `t.runner`, where `me` is this instance's parameter.
pub(super) fn lives(me: &str) -> String {
    format!(
        "(t.runner IS NOT NULL AND (t.runner = {me} OR EXISTS (SELECT 1 FROM instances AS i WHERE i.name = t.runner \
         AND i.beat > now() - {LIVES})))"
    )
}
