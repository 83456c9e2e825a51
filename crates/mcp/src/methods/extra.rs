//! Methods a program adds, such as `models/list`.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use crate::ask::Asking;
use crate::dispatch::{Call, Reply};
use crate::error::Error;
use crate::server::Method;

pub(crate) async fn run(run: Method, call: Call) -> Result<Reply, Error> {
    let context = call.context(if call.exchange.outlet.is_open() { Asking::Wire } else { Asking::Nowhere });
    let cancel = call.exchange.cancel.clone();
    let work = AssertUnwindSafe(run(context, call.params)).catch_unwind();
    tokio::select! {
        biased;
        done = work => match done {
            Ok(outcome) => outcome.map(Reply::new),
            Err(_) => Err(Error::internal("the method failed unexpectedly", "a method panicked")),
        },
        () = cancel.cancelled() => Err(Error::Cancelled),
    }
}
