//! In-process calls: the command line and tests use the same dispatch as any client.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::client::RequestMeta;
use crate::dispatch::Exchange;
use crate::error::Error;
use crate::message::{Id, Params, Request};
use crate::outcome::Style;
use crate::server::Server;
use crate::session::{Outlet, Session};
use crate::trace::Trail;
use crate::trust::{Caller, TrustLevel, Via};
use crate::version::Opening;

impl Server {
    /// Sends one request and waits for its result, as a peer that declared no protocol version.
    pub async fn request(&self, trust: TrustLevel, method: &str, params: &Value) -> Result<Value, Error> {
        let exchange = Exchange {
            caller: Caller::new(Via::Internal, "internal", trust),
            session: Arc::new(Session::new()),
            style: Style::Standard,
            opening: Opening::JsonRpc,
            outlet: Outlet::Closed,
            cancel: CancellationToken::new(),
            closing: self.never().clone(),
            party: None,
            bucket: None,
            trail: Trail::new(),
        };
        let params = Params::from_value(params);
        let meta = RequestMeta::of(&params);
        let request = Request { id: Id::Integer(0), method: method.into(), params, bare: false };
        let answer = self.answer(request, meta, exchange).await;
        answer.outcome.map(|reply| reply.to_value(answer.era, self))
    }
}
