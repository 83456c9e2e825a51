//! Takes over changed settings while the server runs: trust, tokens and providers.
//!
//! Files are looked at once a second, and read again on SIGHUP. A file with mistakes changes nothing but the log; nor does
//! a project file whose new content the user has not approved, until it is approved.
//! Whatever else was changed counts from the next start, and that is said.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use corbie_mcp::{AuditEvent, Server};
use tokio::sync::Notify;

use crate::access::Access;
use crate::changes::{Changes, Stamp};
use crate::config::trust::Via;
use crate::config::{Approval, ApprovalFile, Config, Layer, Loaded, Scope, Sources, State, approved_place};
use crate::locked::locked;
use crate::providers::pool::Pool;

/// Sections that are taken over at once. The taxonomy has its own way of being followed.
const TAKEN_OVER: [&str; 3] = ["trust", "providers", "defaults"];

/// What is followed, and those who take it over. Clones follow the same.
#[derive(Debug, Clone)]
pub struct Followed {
    /// The settings in force: what comes next is compared with them, whoever follows by then.
    loaded: Arc<Mutex<Loaded>>,
    access: Access,
    pool: Pool,
    server: Server,
    /// Somebody knows that a file has changed.
    again: Arc<Notify>,
}

/// What the files looked like.
type Seen = Vec<(PathBuf, Option<Stamp>)>;

impl Followed {
    pub fn new(loaded: Loaded, access: Access, pool: Pool, server: Server) -> Followed {
        Followed { loaded: Arc::new(Mutex::new(loaded)), access, pool, server, again: Arc::default() }
    }

    /// Has the files read without waiting for them to be looked at.
    pub fn look_again(&self) {
        self.again.notify_one();
    }

    /// Listens for the signal from this call on; the future follows it, and the files, until it is dropped.
    pub fn follow(self) -> impl Future<Output = ()> + Send {
        let mut changes = Changes::follow();
        async move {
            // Nothing was seen yet: a file may have changed since it was read at start, so all are read once more.
            let mut seen = Seen::new();
            loop {
                tokio::select! {
                    () = changes.next(|| stamps(&locked(&self.loaded)), &seen) => {}
                    () = self.again.notified() => {}
                    () = self.server.stopped() => return,
                }
                // What was seen stays what it was before reading: a change that comes meanwhile is one more.
                seen = stamps(&locked(&self.loaded));
                self.read_again().await;
            }
        }
    }

    async fn read_again(&self) {
        let loaded = locked(&self.loaded).clone();
        let before = loaded.clone();
        // Reading files takes its time.
        let read = tokio::task::spawn_blocking(move || before.load_again()).await;
        let next = match read {
            Ok(Ok(next)) => next,
            Ok(Err(error)) => {
                tracing::error!("the new settings are refused and the old ones stay:\n{error}");
                self.server.audit().event(AuditEvent::new("reload_refused").detail("settings"));
                // Who was revoked must go, whatever else is wrong.
                return self.take_over_tokens(&loaded.config);
            }
            Err(_) => return tracing::error!("the new settings cannot be read and the old ones stay"),
        };
        for warning in next.warnings.iter().filter(|warning| !loaded.warnings.contains(warning)) {
            tracing::warn!("{warning}");
        }
        let is_outdated = |loaded: &Loaded| loaded.layers.iter().any(|layer| layer.approval == Approval::Outdated);
        if is_outdated(&next) && !is_outdated(&loaded) {
            self.server.audit().event(AuditEvent::new("reload_refused").detail("settings that are not approved"));
        }
        let (before, after) = (loaded.digests(), next.digests());
        // A file that is gone, or empty while it is written anew, is not taken for one that says nothing; one that said
        // nothing before has nothing to lose. Settings whose approval the user has withdrawn do not stay in force.
        let differs = before.differing(after).next().is_some();
        let was_read = |layer: &&Layer| differs && layer.state == State::Active && !layer.is_unapproved();
        let is_gone = |layer: &&Layer| std::fs::metadata(&layer.path).map_or(true, |file| file.len() == 0);
        let stays = |layer: &&Layer| is_gone(layer) && !is_withdrawn(layer, &loaded.sources);
        if let Some(gone) = loaded.layers.iter().filter(was_read).find(stays) {
            let path = gone.path.display();
            tracing::error!(%path, "a file of settings is gone or empty; the old settings stay");
            self.server.audit().event(AuditEvent::new("reload_refused").detail("settings"));
            return self.take_over_tokens(&loaded.config);
        }
        self.take_over_tokens(&next.config);
        self.server.ask_person(next.config.trust.ask_person);
        if !before.same(after, "providers") || !before.same(after, "defaults") {
            let is_same = |name: &str| before.same(after, &format!("providers.{name}"));
            self.pool.replace(&next.config.providers, &next.config.defaults, is_same).await;
            tracing::info!(providers = self.pool.providers().len(), "providers were read again");
            self.server.audit().event(AuditEvent::new("reload").detail("providers"));
        }
        if !before.same(after, "trust") {
            let trust = &next.config.trust;
            let level = |via| trust.level(via).as_str();
            let (stdio, loopback, remote) = (level(Via::Stdio), level(Via::Loopback), level(Via::Remote));
            tracing::info!(stdio, loopback, remote, "trust was read again");
            let detail = format!("trust: stdio {stdio}, loopback {loopback}, remote {remote}");
            self.server.audit().event(AuditEvent::new("reload").detail(detail));
        }
        for section in before.differing(after).filter(|section| !TAKEN_OVER.contains(section)) {
            tracing::warn!(section, "settings of this section have changed and count from the next start");
        }
        *locked(&self.loaded) = next;
    }

    /// How everybody stands, as these settings and the file of tokens say.
    fn take_over_tokens(&self, config: &Config) {
        match self.access.apply(config) {
            Ok(changed) => {
                for (names, event) in [
                    (&changed.added, "token_added"),
                    (&changed.changed, "token_changed"),
                    (&changed.revoked, "token_revoked"),
                ] {
                    for name in names {
                        tracing::info!(token = name, "{event}");
                        self.server.audit().event(AuditEvent::new(event).detail(format!("token `{name}`")));
                    }
                }
            }
            Err(error) => tracing::error!("the new tokens are refused and the old ones stay: {error}"),
        }
    }
}

/// Whether the user has withdrawn the approval of a project file: no file in its folder is approved any more, as after
/// `corbie config untrust`. Approvals that cannot be read withdraw none.
fn is_withdrawn(layer: &Layer, sources: &Sources) -> bool {
    if layer.scope != Scope::Project {
        return false;
    }
    // A folder that is gone has no canonical path.
    let place = approved_place(&layer.path).unwrap_or_else(|_| layer.path.clone());
    let approvals = ApprovalFile::of(&sources.variables).and_then(|file| file.read().ok());
    approvals.is_some_and(|approvals| approvals.keys().all(|path| path.parent() != place.parent()))
}

/// Every place a file of settings may be, the approvals, and the file of tokens.
fn stamps(loaded: &Loaded) -> Seen {
    let files = loaded.layers.iter().map(|layer| layer.path.clone());
    let stamp = |path: PathBuf| {
        let stamp = Stamp::of(Some(&path));
        (path, stamp)
    };
    let approvals = ApprovalFile::of(&loaded.sources.variables).map(|file| file.path().to_owned());
    files.chain(approvals).chain(loaded.config.tokens_file()).map(stamp).collect()
}
