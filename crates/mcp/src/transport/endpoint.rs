//! `/mcp`: JSON-RPC over POST, notifications over GET, session termination with DELETE.

use std::sync::Arc;

use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts, Request, State};
use axum::response::{IntoResponse, Response};
use futures_util::future::{BoxFuture, join_all};
use futures_util::stream;
use http::header::{ACCEPT, ALLOW, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::body::{BodyReservation, ReceivedBody, read_body};
use super::connection::{encode_batch, encode_rejection};
use super::inflight::{InflightRequest, respond};
use super::listener::ConnectionPermit;
use super::middleware::{Endpoint, error_response, json_response};
use super::modern_headers;
use super::outgoing_queue::queue;
use super::{sse, websocket};
use crate::client::{ClientCapabilities, RequestMeta};
use crate::dispatch::TransportContext;
use crate::error::Error;
use crate::message::{self, DecodeError, DecodeLimits, Incoming, Message};
use crate::outcome::RequestStyle;
use crate::session::{MessageSink, Session};
use crate::trace::RequestTrace;
use crate::trust::{Caller, Transport};
use crate::version::{Era, InitializeOrigin, Version};

const SESSION_ID_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// `POST /mcp`.
pub(crate) async fn post(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (mut head, body) = request.into_parts();
    let headers = std::mem::take(&mut head.headers);
    let ReceivedBody { bytes, reserved } = match read_body(&endpoint.server, &headers, body).await {
        Ok(received) => received,
        Err(refused) => return *refused,
    };
    let limits = endpoint.server.limits();
    let bounds = DecodeLimits { bare_allowed: true, max_batch: limits.max_batch, max_depth: limits.max_json_depth };
    let incoming = message::decode_shared(bytes, bounds);
    let meta = match &incoming {
        Incoming::Single(Ok(Message::Request(request))) => RequestMeta::parse(&request.params),
        _ => Ok(RequestMeta::default()),
    };
    let peer = match PostRequest::resolve(&endpoint, &headers, &head.extensions, &meta, reserved) {
        Ok(peer) => peer,
        Err(refused) => return *refused,
    };
    match incoming {
        Incoming::Single(Ok(Message::Request(request))) => peer.handle(request, meta).await,
        Incoming::Single(Ok(other)) => {
            peer.handle_message(other);
            StatusCode::ACCEPTED.into_response()
        }
        Incoming::Single(Err(rejection)) => {
            json_response(rejection.error.code().json_rpc_status(Era::Legacy), encode_rejection(&rejection))
        }
        // One set of headers cannot match several bodies, and a gateway that relies on the headers must not be misled.
        Incoming::Batch(_) if is_modern(&headers) => {
            let error = Error::InvalidRequest("batches are not supported over HTTP in 2026-07-28".into());
            error_response(StatusCode::BAD_REQUEST, &error, Era::Modern)
        }
        Incoming::Batch(members) => peer.handle_batch(members).await,
    }
}

/// `GET /mcp`: a WebSocket, or the notification stream of a legacy client.
pub(crate) async fn get(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (mut head, _) = request.into_parts();
    if head.headers.contains_key(UPGRADE) {
        // A proxy in front of us might take a body for frames, or frames for the next request (request smuggling).
        let has_length = head.headers.get_all(CONTENT_LENGTH).iter().any(|length| length != "0");
        if has_length || head.headers.contains_key(TRANSFER_ENCODING) {
            let error = Error::InvalidRequest("a WebSocket handshake must not have a body".into());
            return error_response(StatusCode::BAD_REQUEST, &error, Era::Legacy);
        }
        return match WebSocketUpgrade::from_request_parts(&mut head, &endpoint).await {
            Ok(upgrade) => {
                if let Some(refused) = endpoint.reject_in_reserve(&head.extensions) {
                    return refused;
                }
                let bucket = endpoint.bucket(head.extensions.get(), &head.extensions);
                let place = head.extensions.get::<ConnectionPermit>().cloned();
                let party = endpoint.connected_caller(Transport::WebSocket, &head.extensions);
                websocket::accept(endpoint.server.clone(), party, bucket, place, upgrade)
            }
            Err(rejection) => {
                let status = rejection.status();
                error_response(status, &Error::InvalidRequest(rejection.body_text()), Era::Legacy)
            }
        };
    }
    if let Err(refused) = check_version(&head.headers) {
        return *refused;
    }
    if is_modern(&head.headers) || !accepts_events(&head.headers) {
        return (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, HeaderValue::from_static("POST"))]).into_response();
    }
    let party = endpoint.connected_caller(Transport::Http, &head.extensions);
    let session = match session_header(&head.headers) {
        None => Arc::new(Session::new()),
        Some(id) => match id.to_str().ok().and_then(|id| endpoint.sessions.find(id, &party.identity)) {
            Some(session) => session,
            None => return session_not_found(),
        },
    };
    if let Some(refused) = endpoint.reject_in_reserve(&head.extensions) {
        return refused;
    }
    let server = endpoint.server.clone();
    let keep_alive = server.limits().keep_alive_interval;
    let place = match server.acquire_listener() {
        Ok(place) => place,
        Err(error) => return error_response(StatusCode::TOO_MANY_REQUESTS, &error, Era::Legacy),
    };
    // One stream per session: the newest replaces the previous one, so that no message is sent twice.
    let (out, own) = queue(server.limits().max_outgoing, server.limits().max_outgoing_bytes);
    let replaced = session.replace_notification_stream(out);
    let state = (server.events(), own.open(), server, session, party, replaced, place);
    let news = stream::unfold(state, |(mut events, mut own, server, session, party, replaced, place)| async move {
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                // A token may expire while no event arrives.
                () = tokio::time::sleep(server.limits().keep_alive_interval) => match party.is_revoked() {
                    true => return None,
                    false => continue,
                },
                Some(mut message) = own.recv() => {
                    if party.is_revoked() {
                        return None;
                    }
                    let bytes = std::mem::take(&mut message.bytes);
                    return Some((bytes, (events, own, server, session, party, replaced, place)));
                }
                () = replaced.cancelled() => return None,
                () = server.inner().draining.cancelled() => return None,
            };
            match event {
                // Only callers with a valid token receive events.
                Ok(_) if party.is_revoked() => return None,
                Ok(event) => {
                    let notification = server.legacy_notification(&event, &session, &party.identity);
                    if let Some(notification) = notification {
                        return Some((notification, (events, own, server, session, party, replaced, place)));
                    }
                }
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    });
    sse::event_stream_response(news, keep_alive)
}

/// `DELETE /mcp`: terminates a legacy session.
pub(crate) async fn delete(State(endpoint): State<Arc<Endpoint>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let (headers, caller) = (head.headers, endpoint.caller(Transport::Http, &head.extensions));
    if let Err(refused) = check_version(&headers) {
        return *refused;
    }
    match session_header(&headers)
        .map(|id| id.to_str().is_ok_and(|id| endpoint.sessions.terminate(id, &caller.identity)))
    {
        Some(true) => StatusCode::NO_CONTENT.into_response(),
        Some(false) => session_not_found(),
        None => (StatusCode::METHOD_NOT_ALLOWED, [(ALLOW, HeaderValue::from_static("POST"))]).into_response(),
    }
}

/// The sender of one POST.
struct PostRequest<'a> {
    endpoint: &'a Endpoint,
    headers: &'a HeaderMap,
    session: Arc<Session>,
    /// The client has the session id, so a cancellation can arrive in another POST.
    has_session: bool,
    accepts_events: bool,
    caller: Caller,
    extensions: &'a http::Extensions,
    /// Memory reservation of the body, shared by its requests until they are done.
    reserved: Arc<BodyReservation>,
    request_trace: RequestTrace,
}

impl<'a> PostRequest<'a> {
    fn resolve(
        endpoint: &'a Endpoint,
        headers: &'a HeaderMap,
        extensions: &'a http::Extensions,
        meta: &Result<RequestMeta, Error>,
        reserved: BodyReservation,
    ) -> Result<PostRequest<'a>, Box<Response>> {
        let version = version_header(headers).and_then(Version::parse);
        let claims_modern = meta.as_ref().is_ok_and(|meta| meta.version.is_some());
        // Modern requests get their version error in modern form, below.
        if !claims_modern {
            check_version(headers)?;
        }
        let modern = claims_modern || version.is_some_and(|version| version.era() == Era::Modern);
        let caller = endpoint.caller(Transport::Http, extensions);
        let (session, is_known) = match session_header(headers).filter(|_| !modern) {
            Some(id) => match id.to_str().ok().and_then(|id| endpoint.sessions.find(id, &caller.identity)) {
                Some(session) => (session, true),
                None => return Err(Box::new(session_not_found())),
            },
            None => {
                let session = Session::new();
                if let Some(version) = version.filter(|version| version.era() == Era::Legacy) {
                    session.initialize(version, ClientCapabilities::default());
                }
                (Arc::new(session), false)
            }
        };
        Ok(PostRequest {
            endpoint,
            headers,
            session,
            has_session: is_known,
            accepts_events: accepts_events(headers),
            caller,
            extensions,
            reserved: Arc::new(reserved),
            request_trace: extensions.get().cloned().unwrap_or_else(RequestTrace::new),
        })
    }

    async fn handle(&self, request: message::Request, meta: Result<RequestMeta, Error>) -> Response {
        let server = &self.endpoint.server;
        let modern = is_modern(self.headers) || meta.as_ref().is_ok_and(|meta| meta.version.is_some());
        if modern && let Err(error) = self.check_modern(&request, &meta) {
            let body = message::encode_error(Some(&request.id), &error.to_object(Era::Modern));
            return json_response(StatusCode::BAD_REQUEST, body);
        }
        let opens = &*request.method == "initialize" && !modern;
        let (out, outgoing) = queue(server.limits().max_outgoing, server.limits().max_outgoing_bytes);
        let outlet = if self.accepts_events { MessageSink::Open(out) } else { MessageSink::Closed };
        let running = self.run(request, meta, outlet, modern);
        let mut response = respond(running, outgoing, server).await;
        if opens
            && self.session.version().is_some()
            && let Ok(id) =
                HeaderValue::from_str(&self.endpoint.sessions.add(self.session.clone(), self.caller.identity.clone()))
        {
            response.headers_mut().insert(SESSION_ID_HEADER, id);
        }
        response
    }

    fn check_modern(&self, request: &message::Request, meta: &Result<RequestMeta, Error>) -> Result<(), Error> {
        let meta = meta.as_ref().map_err(Clone::clone)?;
        modern_headers::check(self.headers, request, meta)?;
        modern_headers::check_parameters(self.headers, request, &self.endpoint.server.registry())
    }

    async fn handle_batch(&self, members: Vec<Result<Message, DecodeError>>) -> Response {
        let mut answers: Vec<BoxFuture<'_, Vec<u8>>> = Vec::new();
        let bucket = self.endpoint.bucket(self.extensions.get(), self.extensions);
        for (number, member) in members.into_iter().enumerate() {
            // The middleware has charged the first member; each further one counts as a message.
            let charged = bucket.as_ref().filter(|_| number > 0).map_or(Ok(()), |bucket| bucket.charge());
            match member {
                Ok(Message::Request(request)) => answers.push(self.handle_batch_member(request, charged.err())),
                Ok(other) => {
                    if charged.is_ok() {
                        self.handle_message(other);
                    }
                }
                Err(rejection) => answers.push(Box::pin(std::future::ready(encode_rejection(&rejection)))),
            }
        }
        if answers.is_empty() {
            return StatusCode::ACCEPTED.into_response();
        }
        json_response(StatusCode::OK, encode_batch(join_all(answers).await))
    }

    fn handle_batch_member(&self, request: message::Request, over: Option<Error>) -> BoxFuture<'static, Vec<u8>> {
        let meta = RequestMeta::parse(&request.params);
        let refusal = if meta.as_ref().is_ok_and(|meta| meta.version.is_some()) {
            Some(Error::InvalidRequest("batches are not supported over HTTP in 2026-07-28".into()))
        } else {
            over
        };
        if let Some(error) = refusal {
            let era = meta.as_ref().map_or(Era::Legacy, RequestMeta::era);
            let body = message::encode_error(Some(&request.id), &error.to_object(era));
            return Box::pin(std::future::ready(body));
        }
        let running = self.run(request, meta, MessageSink::Closed, false);
        Box::pin(async move { running.await.encode() })
    }

    /// Starts a request and registers it for cancellation by id.
    fn run(
        &self,
        request: message::Request,
        meta: Result<RequestMeta, Error>,
        outlet: MessageSink,
        modern: bool,
    ) -> InflightRequest {
        let (server, cancel, id) = (self.endpoint.server.clone(), CancellationToken::new(), request.id.clone());
        let style = if request.bare { RequestStyle::Plain } else { RequestStyle::Standard };
        let exchange = self.transport_context(style, outlet, cancel.clone());
        let detach = (!modern).then(|| server.clone());
        let reserved = self.reserved.clone();
        let work = Box::pin(async move {
            let _reserved = reserved;
            server.handle_request(request, meta, exchange).await
        });
        let mut running = InflightRequest::new(work, detach);
        running.cancel = cancel.clone();
        if self.has_session && !modern {
            self.session.register_request(id.clone(), cancel);
            running.registered = Some((self.session.clone(), id));
        }
        running
    }

    fn handle_message(&self, message: Message) {
        let server = &self.endpoint.server;
        match message {
            Message::Notification(notification) => {
                let exchange =
                    self.transport_context(RequestStyle::Standard, MessageSink::Closed, CancellationToken::new());
                server.handle_notification(&notification, &exchange);
            }
            Message::Response(response) => server.deliver_response(response, &self.caller),
            Message::Request(_) => {}
        }
    }

    fn transport_context(
        &self,
        style: RequestStyle,
        outlet: MessageSink,
        cancel: CancellationToken,
    ) -> TransportContext {
        TransportContext {
            caller: self.caller.clone(),
            session: self.session.clone(),
            style,
            initialize_origin: InitializeOrigin::JsonRpc,
            sink: outlet,
            cancel,
            closing: self.endpoint.server.never_cancelled().clone(),
            // Created for each request; only long-lived streams check it again.
            connected_caller: Some(self.endpoint.connected_caller(Transport::Http, self.extensions)),
            bucket: None,
            request_trace: self.request_trace.clone(),
        }
    }
}

/// Rejects a version header with an unknown version.
fn check_version(headers: &HeaderMap) -> Result<(), Box<Response>> {
    match version_header(headers) {
        Some(stated) if Version::parse(stated).is_none() => {
            let error = Error::UnsupportedVersion { requested: crate::dispatch::truncate_owned(stated) };
            Err(Box::new(error_response(StatusCode::BAD_REQUEST, &error, Era::Legacy)))
        }
        _ => Ok(()),
    }
}

/// An unknown session, for example after a restart: on a 404 clients open a new one, on anything else they hang.
fn session_not_found() -> Response {
    let error = Error::InvalidRequest("unknown session; send `initialize` again".into());
    error_response(StatusCode::NOT_FOUND, &error, Era::Legacy)
}

/// The session id; duplicate headers count as an unknown id.
fn session_header(headers: &HeaderMap) -> Option<&HeaderValue> {
    static UNKNOWN_SESSION: HeaderValue = HeaderValue::from_static("");
    let mut ids = headers.get_all(SESSION_ID_HEADER).iter();
    let first = ids.next()?;
    Some(if ids.next().is_some() { &UNKNOWN_SESSION } else { first })
}

fn version_header(headers: &HeaderMap) -> Option<&str> {
    headers.get(modern_headers::VERSION_HEADER)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
}

/// Whether the headers declare the modern era.
pub(crate) fn is_modern(headers: &HeaderMap) -> bool {
    version_header(headers).and_then(Version::parse).is_some_and(|version| version.era() == Era::Modern)
}

/// Only an explicit `text/event-stream` permits a stream; clients without stream support send `*/*`.
fn accepts_events(headers: &HeaderMap) -> bool {
    headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream")))
}
