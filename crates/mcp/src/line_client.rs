//! Newline-delimited JSON-RPC client, used by the command line to call a running server over its Unix socket.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::error::ErrorObject;
use crate::message::{self, DecodeLimits, Id, Incoming, Message, Notification, Response};
use crate::transport::{InputLine, LineReader};

/// One connection to a server. Calls may run concurrently; dropping it closes the connection.
pub struct LineClient {
    writer: tokio::sync::Mutex<Box<dyn AsyncWrite + Send + Unpin>>,
    last_id: AtomicI64,
    pending: Arc<PendingCalls>,
    reader_task: JoinHandle<()>,
}

/// Why a call failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    #[error("{}", .0.message)]
    ErrorResponse(ErrorObject),
    #[error("the server closed the connection; restart it and try again")]
    ConnectionClosed,
}

/// Pending calls; `None` once the connection is closed.
#[derive(Debug)]
struct PendingCalls(Mutex<Option<HashMap<Id, oneshot::Sender<Response>>>>);

/// Bounds the memory of a response, which may contain whole documents.
const MAX_RESPONSE_BYTES: usize = 64 * 1024 * 1024;

const DECODE_LIMITS: DecodeLimits = DecodeLimits { bare_allowed: false, max_batch: 100, max_depth: 128 };

impl LineClient {
    /// Uses these streams. `notified` gets the method and params of every notification.
    pub fn new<R, W>(reader: R, writer: W, notified: impl FnMut(&str, Value) + Send + 'static) -> LineClient
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let waiting = Arc::new(PendingCalls(Mutex::new(Some(HashMap::new()))));
        let reading = tokio::spawn(read_loop(LineReader::new(reader, MAX_RESPONSE_BYTES), waiting.clone(), notified));
        let writer: Box<dyn AsyncWrite + Send + Unpin> = Box::new(writer);
        LineClient { writer: writer.into(), last_id: AtomicI64::new(0), pending: waiting, reader_task: reading }
    }

    /// Sends one request and waits for its result.
    pub async fn call(&self, method: &str, params: &Value) -> Result<Value, CallError> {
        let id = Id::Integer(self.last_id.fetch_add(1, Ordering::Relaxed).into());
        let mut line = message::encode_call(Some(&id), method, params).map_err(|_| CallError::ConnectionClosed)?;
        line.push(b'\n');
        let answer = self.pending.register(&id).ok_or(CallError::ConnectionClosed)?;
        let _forget = PendingCallGuard { pending: &self.pending, id: &id };
        {
            let mut writer = self.writer.lock().await;
            // A partially written line corrupts the connection, so a caller that is cancelled here breaks it.
            writer.write_all(&line).await.map_err(|_| CallError::ConnectionClosed)?;
            writer.flush().await.map_err(|_| CallError::ConnectionClosed)?;
        }
        answer.await.map_err(|_| CallError::ConnectionClosed)?.parse().map_err(CallError::ErrorResponse)
    }
}

impl Drop for LineClient {
    fn drop(&mut self) {
        self.reader_task.abort();
    }
}

impl fmt::Debug for LineClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LineClient").finish_non_exhaustive()
    }
}

impl PendingCalls {
    fn register(&self, id: &Id) -> Option<oneshot::Receiver<Response>> {
        let (answer, receiver) = oneshot::channel();
        self.lock().as_mut()?.insert(id.clone(), answer);
        Some(receiver)
    }

    fn complete(&self, response: Response) {
        let waiter = response.id.as_ref().and_then(|id| self.lock().as_mut()?.remove(id));
        if let Some(waiter) = waiter {
            let _ = waiter.send(response);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<HashMap<Id, oneshot::Sender<Response>>>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Removes the pending call when the caller stops waiting.
struct PendingCallGuard<'a> {
    pending: &'a PendingCalls,
    id: &'a Id,
}

impl Drop for PendingCallGuard<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.pending.lock().as_mut() {
            waiting.remove(self.id);
        }
    }
}

/// Dispatches incoming lines until the server closes the connection; then fails all pending calls.
async fn read_loop<R>(
    mut lines: LineReader<R>,
    waiting: Arc<PendingCalls>,
    mut notified: impl FnMut(&str, Value) + Send,
) where
    R: AsyncRead + Unpin,
{
    let mut more = true;
    'open: while more {
        more = lines.fill().await.unwrap_or(false);
        while let Some(line) = lines.take() {
            // The response cannot be attributed to a call, so fail all pending ones.
            let InputLine::Message(line) = line else { break 'open };
            match message::decode(line, DECODE_LIMITS) {
                Incoming::Single(Ok(Message::Response(response))) => waiting.complete(response),
                Incoming::Single(Ok(Message::Notification(Notification { method, params }))) => {
                    notified(&method, params.parse().unwrap_or_default());
                }
                // We offer no client features, and send no batches.
                _ => tracing::debug!("ignored a line from the server that is not a JSON-RPC message"),
            }
        }
    }
    *waiting.lock() = None;
}
