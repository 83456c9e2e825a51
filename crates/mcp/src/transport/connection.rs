//! Bidirectional message connection, common to stdio and WebSocket, which differ only in framing.

use std::sync::Arc;
use std::task::Poll;

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::body::BodyReservation;
use super::outgoing_queue::{self, Sender, queue};
use crate::client::RequestMeta;
use crate::connected_caller::ConnectedCaller;
use crate::dispatch::TransportContext;
use crate::error::Error;
use crate::event::Event;
use crate::message::{self, DecodeError, DecodeLimits, Id, Incoming, Message, Request};
use crate::outcome::RequestStyle;
use crate::reply::ServerResponse;
use crate::server::Server;
use crate::session::{MessageSink, Session};
use crate::trace::RequestTrace;
use crate::transport::CallerBucket;
use crate::trust::{Caller, Transport};
use crate::version::{Era, InitializeOrigin};

/// One peer. Dropping it ends its notifications; wait for running requests with [`Connection::finished`].
pub(crate) struct Connection {
    server: Server,
    session: Arc<Session>,
    connected_caller: ConnectedCaller,
    out: Sender,
    running: TaskTracker,
    in_flight: Arc<Semaphore>,
    /// Parent token of requests that end with the connection.
    requests: CancellationToken,
    bucket: Option<Arc<CallerBucket>>,
    /// Cancelled when the peer disconnects: ends its notifications and its modern requests.
    _disconnected: DropGuard,
    closing: CancellationToken,
}

/// A rejected request, with the era for its error.
struct RejectedRequest {
    rejection: DecodeError,
    era: Era,
}

/// Memory reservation of a message, shared by its requests; `None` where memory is not counted.
type MessageReservation = Result<Option<Arc<BodyReservation>>, Error>;

/// A request in progress.
struct StartedRequest {
    id: Id,
    cancel: CancellationToken,
    work: BoxFuture<'static, ServerResponse>,
    _permit: OwnedSemaphorePermit,
    _reserved: Option<Arc<BodyReservation>>,
}

impl Connection {
    /// The receiver yields messages for the peer, one frame each.
    pub(crate) fn new(
        server: Server,
        party: ConnectedCaller,
        bucket: Option<Arc<CallerBucket>>,
    ) -> (Connection, outgoing_queue::Receiver) {
        let (out, outgoing) = queue(server.limits().max_outgoing, server.limits().max_outgoing_bytes);
        let session = Arc::new(Session::new());
        session.replace_notification_stream(out.clone());
        let gone = CancellationToken::new();
        // Subscribe here, so that no later event is missed.
        server.spawn(forward_events(
            server.clone(),
            server.events(),
            session.clone(),
            party.clone(),
            out.clone(),
            gone.clone(),
        ));
        let running = TaskTracker::new();
        running.close();
        let in_flight = Arc::new(Semaphore::new(server.limits().max_in_flight));
        (
            Connection {
                server,
                session,
                connected_caller: party,
                out,
                running,
                in_flight,
                requests: gone.clone(),
                bucket,
                _disconnected: gone.drop_guard(),
                closing: CancellationToken::new(),
            },
            outgoing.open(),
        )
    }

    /// Handles one frame. Immediate responses are written to `reply`; other requests run concurrently with the next
    /// frames and respond through the queue (T-02).
    pub(crate) async fn receive(&self, frame: &[u8], reply: &mut Vec<u8>) {
        let limits = self.server.limits();
        let bounds =
            DecodeLimits { bare_allowed: false, max_batch: limits.max_batch, max_depth: limits.max_json_depth };
        match message::decode(frame, bounds) {
            Incoming::Single(Ok(Message::Request(request))) => {
                self.start(request, &self.reserve_memory(frame), reply).await
            }
            Incoming::Single(Ok(other)) => self.handle_message(other),
            Incoming::Single(Err(rejection)) => reply.extend(encode_rejection(&self.charge_rejection(rejection))),
            Incoming::Batch(members) => self.start_batch(members, &self.reserve_memory(frame)),
        }
    }

    /// Invalid messages count against the rate limit too.
    fn charge_rejection(&self, rejection: DecodeError) -> DecodeError {
        match self.bucket.as_ref().map(|bucket| bucket.charge()) {
            Some(Err(error)) => DecodeError { error, ..rejection },
            _ => rejection,
        }
    }

    /// A frame that could not be decoded at all.
    pub(crate) fn reject_frame(&self, error: Error, reply: &mut Vec<u8>) {
        reply.extend(encode_rejection(&DecodeError { id: None, error }));
    }

    /// The peer sends no more: event streams end with their closing result.
    pub(crate) fn end_input(&self) {
        self.closing.cancel();
    }

    /// Waits until every request in flight has been answered.
    pub(crate) async fn finished(&self) {
        self.running.wait().await;
    }

    /// Whether its token is no longer valid, so that the connection should be closed.
    pub(crate) fn is_revoked(&self) -> bool {
        self.connected_caller.is_revoked()
    }

    /// The requests in progress.
    pub(super) fn running(&self) -> TaskTracker {
        self.running.clone()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// A Unix socket or stdin peer is bounded by its line buffer; only WebSocket clients, which may be many, are
    /// counted.
    fn reserve_memory(&self, frame: &[u8]) -> MessageReservation {
        match self.connected_caller.transport {
            Transport::WebSocket => {
                self.server.reserve_body_memory(frame.len()).map(|reserved| Some(Arc::new(reserved)))
            }
            _ => Ok(None),
        }
    }

    async fn start(&self, request: Request, memory: &MessageReservation, reply: &mut Vec<u8>) {
        let mut started = match self.begin(request, memory) {
            Ok(started) => started,
            Err(refused) => return reply.extend(refused.encode()),
        };
        // Poll once inline: most calls finish here and need no separate task.
        if let Poll::Ready(answer) = futures_util::poll!(&mut started.work) {
            return answer.encode_into(reply);
        }
        let (session, out) = (self.session.clone(), self.out.clone());
        session.register_request(started.id.clone(), started.cancel.clone());
        self.running.spawn(async move {
            if let Some(answer) = started.finish(&session).await {
                out.send(answer).await;
            }
        });
    }

    /// Runs members concurrently; the responses form one array, without entries for notifications (M-08).
    fn start_batch(&self, members: Vec<Result<Message, DecodeError>>, memory: &MessageReservation) {
        let mut answers: Vec<BoxFuture<'static, Option<Vec<u8>>>> = Vec::new();
        for member in members {
            let begun = match member {
                Ok(Message::Request(request)) => self.begin(request, memory),
                Ok(other) => {
                    self.handle_message(other);
                    continue;
                }
                Err(rejection) => {
                    Err(RejectedRequest { rejection: self.charge_rejection(rejection), era: Era::Legacy })
                }
            };
            answers.push(match begun {
                Ok(started) => {
                    let session = self.session.clone();
                    session.register_request(started.id.clone(), started.cancel.clone());
                    Box::pin(async move { started.finish(&session).await })
                }
                Err(refused) => Box::pin(std::future::ready(Some(refused.encode()))),
            });
        }
        let out = self.out.clone();
        self.running.spawn(async move {
            let answers: Vec<_> = join_all(answers).await.into_iter().flatten().collect();
            if !answers.is_empty() {
                out.send(encode_batch(answers)).await;
            }
        });
    }

    /// Acquires an in-flight permit for a request, or rejects it.
    fn begin(&self, request: Request, memory: &MessageReservation) -> Result<StartedRequest, RejectedRequest> {
        let meta = RequestMeta::parse(&request.params);
        let era = meta.as_ref().map_or(Era::Legacy, RequestMeta::era);
        let Some(caller) = self.connected_caller.caller() else {
            let error = Error::Authentication(
                "the token of this connection is no longer valid; reconnect with a new \
                one"
                .into(),
            );
            return Err(RejectedRequest { rejection: DecodeError { id: Some(request.id), error }, era });
        };
        let Ok(place) = self.in_flight.clone().try_acquire_owned() else {
            let most = self.server.limits().max_in_flight;
            let error = Error::RateLimited(format!(
                "too many requests in flight on this connection (maximum {most}); wait for responses"
            ));
            return Err(RejectedRequest { rejection: DecodeError { id: Some(request.id), error }, era });
        };
        let reserved = match memory {
            Ok(reserved) => reserved.clone(),
            Err(error) => {
                return Err(RejectedRequest {
                    rejection: DecodeError { id: Some(request.id), error: error.clone() },
                    era,
                });
            }
        };
        // A disconnected modern peer has cancelled its requests; a legacy one has not.
        let cancel = match era {
            Era::Modern => self.disconnect_token(),
            Era::Legacy => CancellationToken::new(),
        };
        let id = request.id.clone();
        let (server, exchange) = (self.server.clone(), self.transport_context(caller, cancel.clone()));
        let work = Box::pin(async move { server.handle_request(request, meta, exchange).await });
        Ok(StartedRequest { id, cancel, work, _permit: place, _reserved: reserved })
    }

    /// A token that is cancelled with the connection.
    fn disconnect_token(&self) -> CancellationToken {
        self.requests.child_token()
    }

    /// Handles messages without a response; drops them if the token is no longer valid.
    fn handle_message(&self, message: Message) {
        let Some(caller) = self.connected_caller.caller() else { return };
        match message {
            Message::Notification(notification) => {
                // It counts like a request, but there is no response to report the rate limit.
                if self.bucket.as_ref().is_some_and(|bucket| bucket.charge().is_err()) {
                    return;
                }
                self.server
                    .handle_notification(&notification, &self.transport_context(caller, CancellationToken::new()));
            }
            Message::Response(response) => self.server.deliver_response(response, &caller),
            Message::Request(_) => {}
        }
    }

    /// Queues a frame of the reader.
    pub(crate) async fn send(&self, frame: Vec<u8>) {
        // A failure means that the writer has ended; the reader will notice.
        self.out.send(frame).await;
    }

    fn transport_context(&self, caller: Caller, cancel: CancellationToken) -> TransportContext {
        TransportContext {
            caller,
            session: self.session.clone(),
            style: RequestStyle::Standard,
            initialize_origin: InitializeOrigin::JsonRpc,
            sink: MessageSink::Open(self.out.clone()),
            cancel,
            closing: self.closing.clone(),
            connected_caller: None,
            bucket: self.bucket.clone(),
            request_trace: RequestTrace::new(),
        }
    }
}

/// Removes the stream from the session, which may be referenced elsewhere: the writer ends when all senders are
/// dropped.
impl Drop for Connection {
    fn drop(&mut self) {
        self.session.close_notification_stream();
    }
}

impl RejectedRequest {
    fn encode(&self) -> Vec<u8> {
        message::encode_error(self.rejection.id.as_ref(), &self.rejection.error.to_object(self.era))
    }
}

impl StartedRequest {
    /// Waits for the response. A cancelled request has none: its sender no longer expects it.
    async fn finish(self, session: &Session) -> Option<Vec<u8>> {
        let answer = self.work.await;
        session.unregister_request(&self.id);
        (!self.cancel.is_cancelled()).then(|| answer.encode())
    }
}

/// Joins encoded messages into a JSON array.
pub(crate) fn encode_batch(members: Vec<Vec<u8>>) -> Vec<u8> {
    let mut joined = Vec::with_capacity(members.iter().map(|member| member.len() + 1).sum::<usize>() + 2);
    joined.push(b'[');
    for (index, member) in members.iter().enumerate() {
        if index > 0 {
            joined.push(b',');
        }
        joined.extend_from_slice(member);
    }
    joined.push(b']');
    joined
}

pub(crate) fn encode_rejection(rejection: &DecodeError) -> Vec<u8> {
    message::encode_error(rejection.id.as_ref(), &rejection.error.to_object(Era::Legacy))
}

/// Forwards events to a peer that called `initialize`; other peers did not subscribe.
async fn forward_events(
    server: Server,
    mut events: Receiver<Event>,
    session: Arc<Session>,
    party: ConnectedCaller,
    out: Sender,
    gone: CancellationToken,
) {
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = gone.cancelled() => return,
        };
        match event {
            Ok(_) if party.is_revoked() => return,
            Ok(event) if session.version().is_some() => {
                let notification = server.legacy_notification(&event, &session, &party.identity);
                if let Some(notification) = notification {
                    out.try_send(notification);
                }
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
