//! `resources/read`: a fixed resource, or else the first matching template.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::recorded::Recorded;
use super::rounds::{Brought, Round, Stopped};
use crate::audit::AuditOutcome;
use crate::dispatch::{Call, clip};
use crate::error::Error;
use crate::reply::{Cache, Reply};

#[derive(Deserialize)]
struct Params {
    uri: String,
    #[serde(flatten)]
    brought: Brought,
}

pub(crate) async fn read(call: Call) -> Result<Reply, Error> {
    let Params { uri, brought } = call.params.parse()?;
    let server = call.server.clone();
    let found = server.resources().get(&uri).map(|resource| (resource.read.clone(), HashMap::new())).or_else(|| {
        let mut templates = server.inner().templates.iter();
        templates.find_map(|template| Some((template.read.clone(), template.matches(&uri)?)))
    });
    let Some((read, variables)) = found else {
        return Err(Error::ResourceNotFound { uri: clip(&uri) });
    };
    let mut recorded = Recorded::open("resources/read", &call);
    let round = Round::begin(&call, "resources/read", &uri, &Value::Null, brought)?;
    let context = call.context(round.asking.clone());
    let limit = Some(server.limits().tool_timeout);
    match round.run(&context, &uri, limit, read(context.clone(), uri.clone(), variables)).await? {
        Stopped::Asks(open) => {
            recorded.outcome = AuditOutcome::Success;
            Ok(round.ask(&call, "resources/read", &uri, &Value::Null, open))
        }
        Stopped::Finished(contents) => {
            let (contents, cache) = (contents?, Cache { ttl_ms: 0, scope: "private" });
            recorded.outcome = AuditOutcome::Success;
            Ok(Reply::new(json!({ "contents": contents })).cached(cache))
        }
    }
}
