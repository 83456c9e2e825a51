//! `resources/read`: a fixed resource, or else the first matching template.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::audited::AuditedCall;
use super::multi_round_trip::{RoundTrip, RoundTripInput, RoundTripOutcome};
use crate::audit::AuditOutcome;
use crate::dispatch::{MethodCall, truncate_owned};
use crate::error::Error;
use crate::reply::{CacheHint, MethodReply};

#[derive(Deserialize)]
struct Params {
    uri: String,
    #[serde(flatten)]
    input: RoundTripInput,
}

pub(crate) async fn read(call: MethodCall) -> Result<MethodReply, Error> {
    let Params { uri, input: brought } = call.params.parse()?;
    let server = call.server.clone();
    let found = server.resources().get(&uri).map(|resource| (resource.read.clone(), HashMap::new())).or_else(|| {
        let mut templates = server.inner().templates.iter();
        templates.find_map(|template| Some((template.read.clone(), template.matches(&uri)?)))
    });
    let Some((read, variables)) = found else {
        return Err(Error::ResourceNotFound { uri: truncate_owned(&uri) });
    };
    let mut recorded = AuditedCall::begin_authorized("resources/read", &call);
    let round = RoundTrip::begin(&call, "resources/read", &uri, &Value::Null, brought)?;
    let context = call.context(round.channel.clone());
    let limit = Some(server.limits().tool_timeout);
    match round.run(&context, &uri, limit, read(context.clone(), uri.clone(), variables)).await? {
        RoundTripOutcome::InputRequired(open) => {
            recorded.outcome = AuditOutcome::Success;
            Ok(round.input_required_reply(&call, "resources/read", &uri, &Value::Null, open))
        }
        RoundTripOutcome::Finished(contents) => {
            let (contents, cache) = (contents?, CacheHint { ttl_ms: 0, scope: "private" });
            recorded.outcome = AuditOutcome::Success;
            Ok(MethodReply::new(json!({ "contents": contents })).with_cache(cache))
        }
    }
}
