//! Reloads settings while the server runs: trust levels, tokens and providers.
//!
//! Files are checked for changes once a second, and reloaded on SIGHUP. An invalid file is logged and changes nothing;
//! nor does a project file whose new content the user has not approved, until it is approved. Changes in other
//! sections take effect at the next start, and cause a warning.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use corbie_mcp::{AuditEvent, Server};
use tokio::sync::Notify;

use crate::access::Access;
use crate::config::trust::Via;
use crate::config::{
    Approval, ApprovalFile, Config, ConfigError, Layer, LoadedConfig, Scope, Sources, State, approved_place,
};
use crate::providers::registry::ProviderRegistry;
use crate::util::file_watch::{FileFingerprint, FileWatcher};
use crate::util::lock::lock;

/// Sections that are reloaded. The taxonomy has a separate reload mechanism.
const RELOADABLE_SECTIONS: [&str; 3] = ["trust", "providers", "defaults"];

/// Reloads settings into the components that use them. Clones share the state.
#[derive(Debug, Clone)]
pub struct ConfigReloader {
    /// The settings in effect, shared by clones. New settings are compared with them.
    loaded: Arc<Mutex<LoadedConfig>>,
    access: Access,
    providers: ProviderRegistry,
    server: Server,
    /// Whether listeners are open, so that a weak token is refused, and whether one of them requires a token.
    is_listening: bool,
    requires_token: bool,
    /// Notified when a file has changed.
    reload_requested: Arc<Notify>,
}

/// State of the watched files.
type FileFingerprints = Vec<(PathBuf, Option<FileFingerprint>)>;

impl ConfigReloader {
    pub fn new(loaded: LoadedConfig, access: Access, pool: ProviderRegistry, server: Server) -> ConfigReloader {
        let loaded = Arc::new(Mutex::new(loaded));
        let (is_listening, requires_token) = (false, false);
        ConfigReloader {
            loaded,
            access,
            providers: pool,
            server,
            is_listening,
            requires_token,
            reload_requested: Arc::default(),
        }
    }

    /// Sets that listeners are open, and whether one of them requires a token. A weak token is refused from then on.
    pub fn listening(self, requires_token: bool) -> ConfigReloader {
        ConfigReloader { is_listening: true, requires_token, ..self }
    }

    /// Reloads immediately, without waiting for the next check.
    pub fn request_reload(&self) {
        self.reload_requested.notify_one();
    }

    /// Registers for the signal immediately; the returned future watches the signal and the files until it is dropped.
    pub fn watch(self) -> impl Future<Output = ()> + Send {
        let mut changes = FileWatcher::register();
        async move {
            // Initially empty: a file may have changed since startup, so the first check reloads all of them.
            let mut seen = FileFingerprints::new();
            loop {
                tokio::select! {
                    () = changes.changed(|| file_fingerprints(&lock(&self.loaded)), &seen) => {}
                    () = self.reload_requested.notified() => {}
                    () = self.server.stopped() => return,
                }
                // Taken before reading, so that a concurrent change of a file triggers another reload.
                seen = file_fingerprints(&lock(&self.loaded));
                self.reload().await;
            }
        }
    }

    async fn reload(&self) {
        let loaded = lock(&self.loaded).clone();
        let (before, is_listening, requires_token) = (loaded.clone(), self.is_listening, self.requires_token);
        // Reading files blocks.
        let read = tokio::task::spawn_blocking(move || {
            let next = before.reload()?;
            if is_listening {
                next.check_token(requires_token)?;
            }
            Ok::<_, ConfigError>(next)
        });
        let read = read.await;
        let mut next = match read {
            Ok(Ok(next)) => next,
            Ok(Err(error)) => {
                tracing::error!("rejected the new settings and kept the previous ones:\n{error}");
                self.server.audit().record_event(AuditEvent::new("reload_refused").detail("settings"));
                // Revoked tokens are removed even if other settings are invalid.
                return self.apply_tokens(&loaded.config);
            }
            Err(_) => return tracing::error!("cannot load the new settings; keeping the previous ones"),
        };
        // A project file that restricted callers no longer takes effect, such as after `corbie config untrust`. At start
        // corbie would not listen; open listeners keep the lower levels.
        if let Some(refusal) = next.listen_refusal().filter(|_| is_listening).cloned() {
            next.config.trust = next.config.trust.restricted_by(&loaded.config.trust);
            if loaded.listen_refusal() != Some(&refusal) {
                tracing::error!("trust levels are not raised, and corbie will not listen at the next start: {refusal}");
                self.server.audit().record_event(AuditEvent::new("reload_refused").detail("trust levels"));
            }
        }
        for warning in next.warnings.iter().filter(|warning| !loaded.warnings.contains(warning)) {
            tracing::warn!("{warning}");
        }
        let is_outdated =
            |loaded: &LoadedConfig| loaded.layers.iter().any(|layer| layer.approval == Approval::Outdated);
        if is_outdated(&next) && !is_outdated(&loaded) {
            self.server.audit().record_event(AuditEvent::new("reload_refused").detail("unapproved settings"));
        }
        let (before, after) = (loaded.fingerprints(), next.fingerprints());
        // A missing file, or a file that is empty while it is being rewritten, is not treated as one without settings,
        // unless it had none before. Settings whose approval the user has withdrawn do not stay in effect.
        let differs = before.differing(after).next().is_some();
        let was_read = |layer: &&Layer| differs && layer.state == State::Active && !layer.is_unapproved();
        let is_gone = |layer: &&Layer| std::fs::metadata(&layer.path).map_or(true, |file| file.len() == 0);
        let stays = |layer: &&Layer| is_gone(layer) && !is_withdrawn(layer, &loaded.sources);
        if let Some(gone) = loaded.layers.iter().filter(was_read).find(stays) {
            let path = gone.path.display();
            tracing::error!(%path, "settings file is missing or empty; keeping the previous settings");
            self.server.audit().record_event(AuditEvent::new("reload_refused").detail("settings"));
            return self.apply_tokens(&loaded.config);
        }
        self.apply_tokens(&next.config);
        self.server.set_confirm_destructive(next.config.trust.confirm_destructive);
        if !before.same(after, "providers") || !before.same(after, "defaults") {
            let is_same = |name: &str| before.same(after, &format!("providers.{name}"));
            self.providers.replace(&next.config.providers, &next.config.defaults, is_same).await;
            tracing::info!(providers = self.providers.providers().len(), "providers reloaded");
            self.server.audit().record_event(AuditEvent::new("reload").detail("providers"));
        }
        if !before.same(after, "trust") {
            let trust = &next.config.trust;
            let level = |via| trust.level(via).as_str();
            let (stdio, loopback, remote) = (level(Via::Stdio), level(Via::Loopback), level(Via::Remote));
            tracing::info!(stdio, loopback, remote, "trust settings reloaded");
            let detail = format!("trust: stdio {stdio}, loopback {loopback}, remote {remote}");
            self.server.audit().record_event(AuditEvent::new("reload").detail(detail));
        }
        for section in before.differing(after).filter(|section| !RELOADABLE_SECTIONS.contains(section)) {
            tracing::warn!(section, "changed settings of this section take effect after a restart");
        }
        *lock(&self.loaded) = next;
    }

    /// Applies trust levels and tokens from these settings and the token file.
    fn apply_tokens(&self, config: &Config) {
        match self.access.apply(config) {
            Ok(changed) => {
                for (names, event) in [
                    (&changed.added, "token_added"),
                    (&changed.changed, "token_changed"),
                    (&changed.revoked, "token_revoked"),
                ] {
                    for name in names {
                        tracing::info!(token = name, "{event}");
                        self.server.audit().record_event(AuditEvent::new(event).detail(format!("token `{name}`")));
                    }
                }
            }
            Err(error) => tracing::error!("rejected the new tokens and kept the previous ones: {error}"),
        }
    }
}

/// Whether the user has withdrawn the approval of a project file: no file in its folder is approved, as after
/// `corbie config untrust`. If approvals cannot be read, none counts as withdrawn.
fn is_withdrawn(layer: &Layer, sources: &Sources) -> bool {
    if layer.scope != Scope::Project {
        return false;
    }
    // A deleted folder has no canonical path.
    let place = approved_place(&layer.path).unwrap_or_else(|_| layer.path.clone());
    let approvals = ApprovalFile::of(&sources.variables).and_then(|file| file.read().ok());
    approvals.is_some_and(|approvals| approvals.keys().all(|path| path.parent() != place.parent()))
}

/// All possible configuration files, the approvals and the token file.
fn file_fingerprints(loaded: &LoadedConfig) -> FileFingerprints {
    let files = loaded.layers.iter().map(|layer| layer.path.clone());
    let stamp = |path: PathBuf| {
        let stamp = FileFingerprint::of(Some(&path));
        (path, stamp)
    };
    let approvals = ApprovalFile::of(&loaded.sources.variables).map(|file| file.path().to_owned());
    files.chain(approvals).chain(loaded.config.tokens_file()).map(stamp).collect()
}
