//! Registry of instances and their liveness.
//!
//! Each instance writes a heartbeat (see `heartbeat`). An instance without a heartbeat for [`DEAD_AFTER`] counts as
//! dead, and other instances adopt its tasks. It may still be running, partitioned or suspended; it then finds that its
//! tasks have new owners and writes nothing for them.

use deadpool_postgres::Pool;
use uuid::Uuid;

use super::session::Session;
use crate::store::Error;

/// An instance without a heartbeat for this long counts as dead.
pub(super) const DEAD_AFTER: &str = "interval '8 seconds'";

/// This process, as other instances see it.
#[derive(Debug, Clone)]
pub(super) struct Instance {
    id: Uuid,
    name: String,
    host: String,
}

impl Instance {
    pub(super) async fn register(pool: &Pool) -> Result<Instance, Error> {
        let id = Uuid::new_v4();
        let host = host();
        let session = Session::autocommit(pool).await?;
        session.execute("INSERT INTO instances (name, host) VALUES ($1, $2)", &[&id, &host]).await?;
        Ok(Instance { id, name: id.to_string(), host })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn id(&self) -> Uuid {
        self.id
    }

    /// Its host name.
    pub(super) fn host(&self) -> &str {
        &self.host
    }
}

/// Host name of this machine, on a best-effort basis.
pub(super) fn host() -> String {
    let told = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let told = told.or_else(|| std::env::var("HOSTNAME").or_else(|_| std::env::var("COMPUTERNAME")).ok());
    told.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

/// SQL expression over `t.runner`: whether the runner of a task is alive. `me` is the parameter of this instance.
pub(super) fn runner_is_alive(me: &str) -> String {
    format!(
        "(t.runner IS NOT NULL AND (t.runner = {me} OR EXISTS (SELECT 1 FROM instances AS i WHERE i.name = t.runner \
         AND i.beat > now() - {DEAD_AFTER})))"
    )
}
