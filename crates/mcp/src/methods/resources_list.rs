//! `resources/list`: fixed resources first, then those of the resource lister, with pages across both.

use serde_json::{Map, Value};

use super::lists::{self, Position};
use super::multi_round_trip::{RoundTrip, RoundTripOutcome};
use crate::client_requests::ClientChannel;
use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::reply::{MethodReply, ReplyBody};
use crate::resource_lister::{PageRequest, ResourceLister, ResourcePage};

pub(crate) async fn list(call: MethodCall) -> Result<MethodReply, Error> {
    let fixed = call.server.resources();
    let Some(lister) = call.server.inner().lister.clone() else {
        return lists::paginate(
            &call,
            "resources",
            fixed.values().map(|resource| resource.listing()),
            lists::PRIVATE_UNCACHED,
        );
    };
    let size = call.server.limits().page_size;
    let position = lists::position(&call)?;
    let mut entries: Vec<Value> = Vec::new();
    let cursor = match position {
        Position::Offset(start) if start > fixed.len() => return Err(lists::invalid_cursor()),
        Position::Offset(start) => {
            entries.extend(fixed.values().skip(start).take(size).map(|resource| resource.listing()));
            if start + entries.len() < fixed.len() {
                return Ok(reply(entries, Some(Position::Offset(start + size))));
            }
            None
        }
        Position::ListerCursor(cursor) => Some(cursor),
    };
    let room = size - entries.len();
    if room == 0 {
        // Use the count instead of fetching a page that may be empty.
        let next = (lister.count() > 0).then(|| Position::Offset(fixed.len()));
        return Ok(reply(entries, next));
    }
    let page = fetch_page(&call, &lister, PageRequest { cursor, limit: room }).await?;
    entries.extend(page.resources.into_iter().map(Value::from));
    Ok(reply(entries, page.next.map(Position::ListerCursor)))
}

/// Fetches a page from the lister within the tool timeout, and checks its size.
async fn fetch_page(call: &MethodCall, lister: &ResourceLister, wanted: PageRequest) -> Result<ResourcePage, Error> {
    let context = call.context(ClientChannel::Unavailable);
    let (room, limit) = (wanted.limit, Some(call.server.limits().tool_timeout));
    let work = lister.list(context.clone(), wanted);
    match RoundTrip::detached(ClientChannel::Unavailable).run(&context, "resources/list", limit, work).await? {
        RoundTripOutcome::Finished(page) => page.and_then(|page| match page.resources.len() {
            // Truncating it would lose the rest from all pages.
            listed if listed > room => Err(Error::internal(
                "cannot list resources",
                format!("resource lister returned {listed} resources for a page of {room}"),
            )),
            _ => Ok(page),
        }),
        RoundTripOutcome::InputRequired(_) => {
            Err(Error::internal("cannot list resources", "resource lister requested input"))
        }
    }
}

fn reply(entries: Vec<Value>, next: Option<Position>) -> MethodReply {
    let mut members = Map::new();
    members.insert("resources".into(), entries.into());
    if let Some(next) = next {
        members.insert("nextCursor".into(), next.cursor().into());
    }
    MethodReply::from(ReplyBody::Members(members)).with_cache(lists::PRIVATE_UNCACHED)
}
