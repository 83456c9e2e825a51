//! Per-connection state of legacy peers.
//!
//! No call depends on it for correctness: it holds the result of `initialize`, subscriptions, and running
//! requests for cancellation. HTTP creates one for every request without a session, so construction is cheap.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio_util::sync::CancellationToken;

use crate::client::{ClientCapabilities, LogLevel};
use crate::message::Id;
use crate::transport::Sender;
use crate::version::Version;

/// One connection (stdio, WebSocket) or one `Mcp-Session-Id` (HTTP).
#[derive(Debug)]
pub(crate) struct Session {
    /// Index into [`Version::ALL`] plus one; zero before `initialize`.
    version: AtomicU8,
    log_level: AtomicU8,
    client: Mutex<Arc<ClientCapabilities>>,
    subscriptions: Mutex<HashSet<String>>,
    running: Mutex<HashMap<Id, CancellationToken>>,
    notifications: Mutex<Option<NotificationStream>>,
}

/// The stream for messages that belong to the session and not to a request.
#[derive(Debug)]
struct NotificationStream {
    stream: Sender,
    /// Cancelled when another stream replaces this one.
    replaced: CancellationToken,
}

/// The sink for messages of a request: its event stream, or the connection.
#[derive(Debug, Clone)]
pub(crate) enum MessageSink {
    /// Only the response can be sent.
    Closed,
    Open(Sender),
}

impl Session {
    pub(crate) fn new() -> Session {
        Session {
            version: AtomicU8::new(0),
            log_level: AtomicU8::new(LogLevel::Info as u8),
            client: Mutex::new(ClientCapabilities::none()),
            subscriptions: Mutex::default(),
            running: Mutex::default(),
            notifications: Mutex::default(),
        }
    }

    pub(crate) fn initialize(&self, version: Version, client: ClientCapabilities) {
        let index = Version::ALL.iter().position(|known| *known == version).unwrap_or_default();
        *self.client.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = client.into();
        self.version.store(index as u8 + 1, Ordering::Release);
    }

    /// The version negotiated by `initialize`, if any.
    pub(crate) fn version(&self) -> Option<Version> {
        let index = usize::from(self.version.load(Ordering::Acquire)).checked_sub(1)?;
        Version::ALL.get(index).copied()
    }

    pub(crate) fn client(&self) -> Arc<ClientCapabilities> {
        self.client.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    pub(crate) fn log_level(&self) -> LogLevel {
        LogLevel::ALL[usize::from(self.log_level.load(Ordering::Relaxed))]
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.log_level.store(level as u8, Ordering::Relaxed);
    }

    /// Resource URIs this peer subscribed to. Hold the guard for a lookup only, never across an await.
    pub(crate) fn subscriptions(&self) -> MutexGuard<'_, HashSet<String>> {
        self.subscriptions.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Makes this the session's notification stream and ends the previous one. The returned token is cancelled when it
    /// is replaced.
    pub(crate) fn replace_notification_stream(&self, stream: Sender) -> CancellationToken {
        let replaced = CancellationToken::new();
        self.set_notification_stream(Some(NotificationStream { stream, replaced: replaced.clone() }));
        replaced
    }

    pub(crate) fn close_notification_stream(&self) {
        self.set_notification_stream(None);
    }

    /// The stream for messages without a request. Do not store it: a stream ends when all senders are dropped.
    pub(crate) fn notification_stream(&self) -> Option<Sender> {
        self.notifications
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .as_ref()
            .map(|news| news.stream.clone())
    }

    fn set_notification_stream(&self, next: Option<NotificationStream>) {
        let mut news = self.notifications.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(before) = std::mem::replace(&mut *news, next) {
            before.replaced.cancel();
        }
    }

    pub(crate) fn register_request(&self, id: Id, cancel: CancellationToken) {
        self.running().insert(id, cancel);
    }

    pub(crate) fn unregister_request(&self, id: &Id) {
        self.running().remove(id);
    }

    /// Cancels a running request; unknown or finished ones are ignored.
    pub(crate) fn cancel(&self, id: &Id) {
        if let Some(cancel) = self.running().remove(id) {
            cancel.cancel();
        }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl MessageSink {
    /// Sends if there is room. Notifications to a client that does not read may be dropped; the work must not block on
    /// it.
    pub(crate) fn try_send(&self, message: Vec<u8>) {
        if let MessageSink::Open(sender) = self {
            sender.try_send(message);
        }
    }

    /// Sends and waits for room; false when the stream is closed.
    pub(crate) async fn send(&self, message: Vec<u8>) -> bool {
        match self {
            MessageSink::Open(sender) => sender.send(message).await,
            MessageSink::Closed => false,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self, MessageSink::Open(_))
    }
}
