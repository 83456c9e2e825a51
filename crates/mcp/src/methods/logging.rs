//! `logging/setLevel`: minimum log level of a legacy client.

use serde::Deserialize;

use crate::client::LogLevel;
use crate::dispatch::Call;
use crate::error::Error;
use crate::reply::Reply;

pub(crate) fn set_level(call: &Call) -> Result<Reply, Error> {
    #[derive(Deserialize)]
    struct Params {
        level: LogLevel,
    }
    let Params { level } = call.params.parse()?;
    call.exchange.session.set_log_level(level);
    Ok(Reply::default())
}
