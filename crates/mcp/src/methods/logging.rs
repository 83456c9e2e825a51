//! `logging/setLevel`: minimum log level of a legacy client.

use serde::Deserialize;

use crate::client::LogLevel;
use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::reply::MethodReply;

pub(crate) fn set_level(call: &MethodCall) -> Result<MethodReply, Error> {
    #[derive(Deserialize)]
    struct Params {
        level: LogLevel,
    }
    let Params { level } = call.params.parse()?;
    call.transport.session.set_log_level(level);
    Ok(MethodReply::default())
}
