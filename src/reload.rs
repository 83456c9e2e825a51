//! Takes over changed settings while the server runs: trust, tokens and providers.
//!
//! Files are looked at once a second, and read again on SIGHUP. A file with mistakes changes nothing but the log.
//! Whatever else was changed counts from the next start, and that is said.

use std::path::PathBuf;

use corbie_mcp::{AuditEvent, Server};

use crate::access::Access;
use crate::changes::{Changes, Stamp};
use crate::config::trust::Via;
use crate::config::{Config, Layer, Loaded, State};
use crate::providers::pool::Pool;

/// Sections that are taken over at once. The taxonomy has its own way of being followed.
const TAKEN_OVER: [&str; 3] = ["trust", "providers", "defaults"];

/// What is followed, and what it looked like when it was last read.
struct Followed {
    loaded: Loaded,
    access: Access,
    pool: Pool,
    server: Server,
    seen: Vec<(PathBuf, Option<Stamp>)>,
}

/// Listens for the signal from this call on; the future follows it, and the files, until it is dropped.
pub fn follow(loaded: Loaded, access: Access, pool: Pool, server: Server) -> impl Future<Output = ()> + Send {
    let mut changes = Changes::follow();
    // Nothing was seen yet: a file may have changed since it was read at start, so all are read once more.
    let mut followed = Followed { seen: Vec::new(), loaded, access, pool, server };
    async move {
        loop {
            tokio::select! {
                () = changes.next(|| stamps(&followed.loaded), &followed.seen) => {}
                () = followed.server.stopped() => return,
            }
            followed.read_again().await;
        }
    }
}

impl Followed {
    async fn read_again(&mut self) {
        self.seen = stamps(&self.loaded);
        let sources = self.loaded.sources.clone();
        // Reading files takes its time.
        let read = tokio::task::spawn_blocking(move || Config::load(sources)).await;
        let next = match read {
            Ok(Ok(next)) => next,
            Ok(Err(error)) => {
                tracing::error!("the new settings are refused and the old ones stay:\n{error}");
                self.server.audit().event(AuditEvent::new("reload_refused").detail("settings"));
                // Who was revoked must go, whatever else is wrong.
                return self.take_over_tokens(&self.loaded.config);
            }
            Err(_) => return tracing::error!("the new settings cannot be read and the old ones stay"),
        };
        let (before, after) = (self.loaded.digests(), next.digests());
        // A file that is gone, or empty while it is written anew, is not taken for one that says nothing; one that said
        // nothing before has nothing to lose.
        let differs = before.differing(after).next().is_some();
        let was_read = |layer: &&Layer| differs && layer.state == State::Active;
        let is_gone = |layer: &&Layer| std::fs::metadata(&layer.path).map_or(true, |file| file.len() == 0);
        if let Some(gone) = self.loaded.layers.iter().filter(was_read).find(is_gone) {
            let path = gone.path.display();
            tracing::error!(%path, "a file of settings is gone or empty; the old settings stay");
            self.server.audit().event(AuditEvent::new("reload_refused").detail("settings"));
            return self.take_over_tokens(&self.loaded.config);
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
        // What was seen stays what it was before reading: a change that came meanwhile is one more.
        self.loaded = next;
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

/// Every place a file of settings may be, and the file of tokens.
fn stamps(loaded: &Loaded) -> Vec<(PathBuf, Option<Stamp>)> {
    let files = loaded.layers.iter().map(|layer| layer.path.clone());
    let stamp = |path: PathBuf| {
        let stamp = Stamp::of(Some(&path));
        (path, stamp)
    };
    files.chain(loaded.config.tokens_file()).map(stamp).collect()
}
