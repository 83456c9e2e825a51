//! Bidirectional message connection, common to stdio and WebSocket, which differ only in framing.

use std::sync::Arc;
use std::task::Poll;

use futures_util::future::{BoxFuture, join_all};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::body::Reserved;
use super::queue::{self, Sender, queue};
use crate::client::RequestMeta;
use crate::dispatch::Exchange;
use crate::error::Error;
use crate::event::Event;
use crate::message::{self, Bounds, Id, Incoming, Message, Rejection, Request};
use crate::outcome::Style;
use crate::party::Party;
use crate::reply::Answer;
use crate::server::Server;
use crate::session::{Outlet, Session};
use crate::trace::Trail;
use crate::transport::Bucket;
use crate::trust::{Caller, Via};
use crate::version::{Era, Opening};

/// One peer. Dropping it ends its notifications; wait for running requests with [`Connection::finished`].
pub(crate) struct Connection {
    server: Server,
    session: Arc<Session>,
    party: Party,
    out: Sender,
    running: TaskTracker,
    in_flight: Arc<Semaphore>,
    /// Parent token of requests that end with the connection.
    requests: CancellationToken,
    bucket: Option<Arc<Bucket>>,
    /// Cancelled when the peer disconnects: ends its notifications and its modern requests.
    _gone: DropGuard,
    closing: CancellationToken,
}

/// A rejected request, with the era for its error.
struct Refused {
    rejection: Rejection,
    era: Era,
}

/// Memory reservation of a message, shared by its requests; `None` where memory is not counted.
type Memory = Result<Option<Arc<Reserved>>, Error>;

/// A request in progress.
struct Started {
    id: Id,
    cancel: CancellationToken,
    work: BoxFuture<'static, Answer>,
    _place: OwnedSemaphorePermit,
    _reserved: Option<Arc<Reserved>>,
}

impl Connection {
    /// The receiver yields messages for the peer, one frame each.
    pub(crate) fn new(server: Server, party: Party, bucket: Option<Arc<Bucket>>) -> (Connection, queue::Receiver) {
        let (out, outgoing) = queue(server.limits().max_outgoing, server.limits().max_outgoing_bytes);
        let session = Arc::new(Session::new());
        session.take_over_news(out.clone());
        let gone = CancellationToken::new();
        // Subscribe here, so that no later event is missed.
        server.spawn(tell_news(server.events(), session.clone(), party.clone(), out.clone(), gone.clone()));
        let running = TaskTracker::new();
        running.close();
        let in_flight = Arc::new(Semaphore::new(server.limits().max_in_flight));
        (
            Connection {
                server,
                session,
                party,
                out,
                running,
                in_flight,
                requests: gone.clone(),
                bucket,
                _gone: gone.drop_guard(),
                closing: CancellationToken::new(),
            },
            outgoing.open(),
        )
    }

    /// Handles one frame. Immediate responses are written to `reply`; other requests run concurrently with the next
    /// frames and respond through the queue (T-02).
    pub(crate) async fn receive(&self, frame: &[u8], reply: &mut Vec<u8>) {
        let limits = self.server.limits();
        let bounds = Bounds { bare_allowed: false, max_batch: limits.max_batch, max_depth: limits.max_json_depth };
        match message::decode(frame, bounds) {
            Incoming::One(Ok(Message::Request(request))) => self.start(request, &self.memory(frame), reply).await,
            Incoming::One(Ok(other)) => self.take(other),
            Incoming::One(Err(rejection)) => reply.extend(reject(&self.charged(rejection))),
            Incoming::Batch(members) => self.start_batch(members, &self.memory(frame)),
        }
    }

    /// Invalid messages count against the rate limit too.
    fn charged(&self, rejection: Rejection) -> Rejection {
        match self.bucket.as_ref().map(|bucket| bucket.charge()) {
            Some(Err(error)) => Rejection { error, ..rejection },
            _ => rejection,
        }
    }

    /// A frame that could not be decoded at all.
    pub(crate) fn refuse(&self, error: Error, reply: &mut Vec<u8>) {
        reply.extend(reject(&Rejection { id: None, error }));
    }

    /// The peer sends no more: event streams end with their closing result.
    pub(crate) fn no_more_input(&self) {
        self.closing.cancel();
    }

    /// Waits until every request in flight has been answered.
    pub(crate) async fn finished(&self) {
        self.running.wait().await;
    }

    /// Whether its token is no longer valid, so that the connection should be closed.
    pub(crate) fn is_over(&self) -> bool {
        self.party.is_gone()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// A Unix socket or stdin peer is bounded by its line buffer; only WebSocket clients, which may be many, are
    /// counted.
    fn memory(&self, frame: &[u8]) -> Memory {
        match self.party.via {
            Via::WebSocket => self.server.reserve(frame.len()).map(|reserved| Some(Arc::new(reserved))),
            _ => Ok(None),
        }
    }

    async fn start(&self, request: Request, memory: &Memory, reply: &mut Vec<u8>) {
        let mut started = match self.begin(request, memory) {
            Ok(started) => started,
            Err(refused) => return reply.extend(refused.encode()),
        };
        // Poll once inline: most calls finish here and need no separate task.
        if let Poll::Ready(answer) = futures_util::poll!(&mut started.work) {
            return answer.encode_into(reply);
        }
        let (session, out) = (self.session.clone(), self.out.clone());
        session.started(started.id.clone(), started.cancel.clone());
        self.running.spawn(async move {
            if let Some(answer) = started.finish(&session).await {
                out.send(answer).await;
            }
        });
    }

    /// Runs members concurrently; the responses form one array, without entries for notifications (M-08).
    fn start_batch(&self, members: Vec<Result<Message, Rejection>>, memory: &Memory) {
        let mut answers: Vec<BoxFuture<'static, Option<Vec<u8>>>> = Vec::new();
        for member in members {
            let begun = match member {
                Ok(Message::Request(request)) => self.begin(request, memory),
                Ok(other) => {
                    self.take(other);
                    continue;
                }
                Err(rejection) => Err(Refused { rejection: self.charged(rejection), era: Era::Legacy }),
            };
            answers.push(match begun {
                Ok(started) => {
                    let session = self.session.clone();
                    session.started(started.id.clone(), started.cancel.clone());
                    Box::pin(async move { started.finish(&session).await })
                }
                Err(refused) => Box::pin(std::future::ready(Some(refused.encode()))),
            });
        }
        let out = self.out.clone();
        self.running.spawn(async move {
            let answers: Vec<_> = join_all(answers).await.into_iter().flatten().collect();
            if !answers.is_empty() {
                out.send(array(answers)).await;
            }
        });
    }

    /// Acquires an in-flight permit for a request, or rejects it.
    fn begin(&self, request: Request, memory: &Memory) -> Result<Started, Refused> {
        let meta = RequestMeta::of(&request.params);
        let era = meta.as_ref().map_or(Era::Legacy, RequestMeta::era);
        let Some(caller) = self.party.caller() else {
            let error = Error::Authentication("the token of this connection is not valid any more".into());
            return Err(Refused { rejection: Rejection { id: Some(request.id), error }, era });
        };
        let Ok(place) = self.in_flight.clone().try_acquire_owned() else {
            let most = self.server.limits().max_in_flight;
            let error = Error::RateLimited(format!(
                "{most} requests are in flight on this connection; wait for answers before sending more"
            ));
            return Err(Refused { rejection: Rejection { id: Some(request.id), error }, era });
        };
        let reserved = match memory {
            Ok(reserved) => reserved.clone(),
            Err(error) => {
                return Err(Refused { rejection: Rejection { id: Some(request.id), error: error.clone() }, era });
            }
        };
        // A disconnected modern peer has cancelled its requests; a legacy one has not.
        let cancel = match era {
            Era::Modern => self.gone_token(),
            Era::Legacy => CancellationToken::new(),
        };
        let id = request.id.clone();
        let (server, exchange) = (self.server.clone(), self.exchange(caller, cancel.clone()));
        let work = Box::pin(async move { server.answer(request, meta, exchange).await });
        Ok(Started { id, cancel, work, _place: place, _reserved: reserved })
    }

    /// A token that is cancelled with the connection.
    fn gone_token(&self) -> CancellationToken {
        self.requests.child_token()
    }

    /// Handles messages without a response; drops them if the token is no longer valid.
    fn take(&self, message: Message) {
        let Some(caller) = self.party.caller() else { return };
        match message {
            Message::Notification(notification) => {
                // It counts like a request, but there is no response to report the rate limit.
                if self.bucket.as_ref().is_some_and(|bucket| bucket.charge().is_err()) {
                    return;
                }
                self.server.notified(&notification, &self.exchange(caller, CancellationToken::new()));
            }
            Message::Response(response) => self.server.answered(response, &caller),
            Message::Request(_) => {}
        }
    }

    /// Queues a frame of the reader.
    pub(crate) async fn send(&self, frame: Vec<u8>) {
        // A failure means that the writer has ended; the reader will notice.
        self.out.send(frame).await;
    }

    fn exchange(&self, caller: Caller, cancel: CancellationToken) -> Exchange {
        Exchange {
            caller,
            session: self.session.clone(),
            style: Style::Standard,
            opening: Opening::JsonRpc,
            outlet: Outlet::Open(self.out.clone()),
            cancel,
            closing: self.closing.clone(),
            party: None,
            bucket: self.bucket.clone(),
            trail: Trail::new(),
        }
    }
}

/// Removes the stream from the session, which may be referenced elsewhere: the writer ends when all senders are
/// dropped.
impl Drop for Connection {
    fn drop(&mut self) {
        self.session.end_news();
    }
}

impl Refused {
    fn encode(&self) -> Vec<u8> {
        message::encode_error(self.rejection.id.as_ref(), &self.rejection.error.to_object(self.era))
    }
}

impl Started {
    /// Waits for the response. A cancelled request has none: its sender no longer expects it.
    async fn finish(self, session: &Session) -> Option<Vec<u8>> {
        let answer = self.work.await;
        session.ended(&self.id);
        (!self.cancel.is_cancelled()).then(|| answer.encode())
    }
}

/// Joins encoded messages into a JSON array.
pub(crate) fn array(members: Vec<Vec<u8>>) -> Vec<u8> {
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

pub(crate) fn reject(rejection: &Rejection) -> Vec<u8> {
    message::encode_error(rejection.id.as_ref(), &rejection.error.to_object(Era::Legacy))
}

/// Forwards events to a peer that called `initialize`; other peers did not subscribe.
async fn tell_news(
    mut events: Receiver<Event>,
    session: Arc<Session>,
    party: Party,
    out: Sender,
    gone: CancellationToken,
) {
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            () = gone.cancelled() => return,
        };
        match event {
            Ok(_) if party.is_gone() => return,
            Ok(event) if session.version().is_some() => {
                let notification = event.for_legacy(&session.subscriptions(), &party.identity);
                if let Some(notification) = notification {
                    out.offer(notification);
                }
            }
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}
