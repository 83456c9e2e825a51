//! In-process calls: the command line and tests use the same dispatch as any client.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::client::RequestMeta;
use crate::dispatch::TransportContext;
use crate::error::Error;
use crate::message::{Id, Params, Request};
use crate::outcome::RequestStyle;
use crate::server::Server;
use crate::session::{MessageSink, Session};
use crate::trace::RequestTrace;
use crate::trust::{Caller, Transport, TrustLevel};
use crate::version::InitializeOrigin;

impl Server {
    /// Sends one request and waits for its result, as a peer that declared no protocol version.
    pub async fn request(&self, trust: TrustLevel, method: &str, params: &Value) -> Result<Value, Error> {
        let exchange = TransportContext {
            caller: Caller::new(Transport::Internal, "internal", trust),
            session: Arc::new(Session::new()),
            style: RequestStyle::Standard,
            initialize_origin: InitializeOrigin::JsonRpc,
            sink: MessageSink::Closed,
            cancel: CancellationToken::new(),
            closing: self.never_cancelled().clone(),
            connected_caller: None,
            bucket: None,
            request_trace: RequestTrace::new(),
        };
        let params = Params::from_value(params);
        let meta = RequestMeta::parse(&params);
        let request = Request { id: Id::Integer(0), method: method.into(), params, bare: false };
        let answer = self.handle_request(request, meta, exchange).await;
        answer.outcome.map(|reply| reply.to_value(answer.era, self))
    }
}
