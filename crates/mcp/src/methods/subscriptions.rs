//! Change notifications: `resources/subscribe` for legacy peers, `subscriptions/listen` for modern ones.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;

use crate::client::{ClientFeature, META_SUBSCRIPTION};
use crate::connected_caller::ConnectedCaller;
use crate::dispatch::{MethodCall, truncate_owned};
use crate::error::Error;
use crate::event::SubscriptionFilter;
use crate::message;
use crate::reply::MethodReply;

/// Bounds on the subscriptions of a peer, in number and length.
const MAX_SUBSCRIPTIONS: usize = 1000;
const MAX_URI_BYTES: usize = 2048;

#[derive(Deserialize)]
struct ResourceParams {
    uri: String,
}

#[derive(Deserialize)]
struct ListenParams {
    #[serde(default)]
    notifications: SubscriptionFilter,
}

pub(crate) fn subscribe(call: &MethodCall) -> Result<MethodReply, Error> {
    let ResourceParams { uri } = call.params.parse()?;
    check_uri_len(&uri)?;
    let server = &call.server;
    let known = server.resources().contains_key(&uri)
        || server.inner().templates.iter().any(|template| template.matches(&uri).is_some());
    if !known {
        return Err(Error::ResourceNotFound { uri: truncate_owned(&uri) });
    }
    let mut subscriptions = call.transport.session.subscriptions();
    if subscriptions.len() >= MAX_SUBSCRIPTIONS {
        return Err(Error::RateLimited(format!(
            "too many subscriptions (maximum {MAX_SUBSCRIPTIONS} resources per \
            connection)"
        )));
    }
    subscriptions.insert(uri);
    Ok(MethodReply::default())
}

pub(crate) fn unsubscribe(call: &MethodCall) -> Result<MethodReply, Error> {
    let ResourceParams { uri } = call.params.parse()?;
    call.transport.session.subscriptions().remove(&uri);
    Ok(MethodReply::default())
}

/// Runs until the client disconnects or the server stops; every message carries the id of this request.
pub(crate) async fn listen(call: MethodCall) -> Result<MethodReply, Error> {
    let ListenParams { notifications: mut filter } = call.params.parse()?;
    if !call.transport.sink.is_open() {
        return Err(Error::InvalidRequest("`subscriptions/listen` requires `Accept: text/event-stream`".into()));
    }
    if filter.resource_subscriptions.len() + filter.task_ids.len() > MAX_SUBSCRIPTIONS {
        return Err(Error::invalid_params(format!(
            "too many subscriptions (maximum {MAX_SUBSCRIPTIONS} resources and tasks)"
        )));
    }
    filter.resource_subscriptions.iter().chain(&filter.task_ids).try_for_each(|text| check_uri_len(text))?;
    if !call.client.supports(ClientFeature::Tasks) {
        filter.task_ids.clear();
    }
    let _listening = call.server.acquire_listener()?;
    // Subscribe before the acknowledgement, so that no later event is missed.
    let mut events = call.server.events();
    let meta = json!({ META_SUBSCRIPTION: call.id });
    let acknowledged = json!({ "_meta": meta, "notifications": filter });
    if !send(&call, "notifications/subscriptions/acknowledged", &acknowledged).await {
        return Err(Error::Cancelled);
    }
    let is_gone = || call.transport.connected_caller.as_ref().is_some_and(ConnectedCaller::is_revoked);
    let mut looks = tokio::time::interval(call.server.limits().keep_alive_interval);
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            // A token may expire while no event arrives.
            _ = looks.tick() => match is_gone() {
                true => break,
                false => continue,
            },
            () = call.transport.cancel.cancelled() => return Err(Error::Cancelled),
            () = call.server.inner().draining.cancelled() => break,
            () = call.transport.closing.cancelled() => break,
        };
        let event = match event {
            Ok(event) => event,
            // The stream was too slow and lost some events; continue with the next one.
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => break,
        };
        if is_gone() {
            break;
        }
        if let Some(notification) = event.for_listener(&filter, &call.id, &call.transport.caller.identity)
            && !call.transport.sink.send(notification).await
        {
            return Err(Error::Cancelled);
        }
    }
    // Two pages of the specification require different closing messages; send both.
    let goodbye = json!({ "requestId": call.id, "reason": "the stream ends", "_meta": meta });
    send(&call, "notifications/cancelled", &goodbye).await;
    Ok(MethodReply::new(json!({ "_meta": meta })))
}

fn check_uri_len(uri: &str) -> Result<(), Error> {
    if uri.len() <= MAX_URI_BYTES {
        return Ok(());
    }
    Err(Error::invalid_params(format!("URI is too long (maximum {MAX_URI_BYTES} bytes, this one has {})", uri.len())))
}

async fn send(call: &MethodCall, method: &str, params: &Value) -> bool {
    match message::encode_call(None, method, params) {
        Ok(notification) => call.transport.sink.send(notification).await,
        Err(_) => false,
    }
}
