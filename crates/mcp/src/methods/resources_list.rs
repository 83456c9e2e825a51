//! `resources/list`: fixed resources first, then those of the resource lister, with pages across both.

use serde_json::{Map, Value};

use super::lists::{self, Position};
use super::rounds::{Round, Stopped};
use crate::ask::Asking;
use crate::dispatch::Call;
use crate::error::Error;
use crate::reply::{Body, Reply};
use crate::resource_lister::{ResourceLister, ResourcePage, WantedPage};

pub(crate) async fn list(call: Call) -> Result<Reply, Error> {
    let fixed = call.server.resources();
    let Some(lister) = call.server.inner().lister.clone() else {
        return lists::page(&call, "resources", fixed.values().map(|resource| resource.listing()), lists::OWN);
    };
    let size = call.server.limits().page_size;
    let position = lists::position(&call)?;
    let mut entries: Vec<Value> = Vec::new();
    let cursor = match position {
        Position::At(start) if start > fixed.len() => return Err(lists::bad_cursor()),
        Position::At(start) => {
            entries.extend(fixed.values().skip(start).take(size).map(|resource| resource.listing()));
            if start + entries.len() < fixed.len() {
                return Ok(reply(entries, Some(Position::At(start + size))));
            }
            None
        }
        Position::From(cursor) => Some(cursor),
    };
    let room = size - entries.len();
    if room == 0 {
        // Use the count instead of fetching a page that may be empty.
        let next = (lister.count() > 0).then(|| Position::At(fixed.len()));
        return Ok(reply(entries, next));
    }
    let page = one_page(&call, &lister, WantedPage { cursor, room }).await?;
    entries.extend(page.resources.into_iter().map(Value::from));
    Ok(reply(entries, page.next.map(Position::From)))
}

/// Fetches a page from the lister within the tool timeout, and checks its size.
async fn one_page(call: &Call, lister: &ResourceLister, wanted: WantedPage) -> Result<ResourcePage, Error> {
    let context = call.context(Asking::Nowhere);
    let (room, limit) = (wanted.room, Some(call.server.limits().tool_timeout));
    let work = lister.list(context.clone(), wanted);
    match Round::detached(Asking::Nowhere).run(&context, "resources/list", limit, work).await? {
        Stopped::Finished(page) => page.and_then(|page| match page.resources.len() {
            // Truncating it would lose the rest from all pages.
            listed if listed > room => Err(Error::internal(
                "the resources could not be listed",
                format!("a page for {room} resources has {listed}"),
            )),
            _ => Ok(page),
        }),
        Stopped::Asks(_) => Err(Error::internal("the resources could not be listed", "a lister asked in rounds")),
    }
}

fn reply(entries: Vec<Value>, next: Option<Position>) -> Reply {
    let mut members = Map::new();
    members.insert("resources".into(), entries.into());
    if let Some(next) = next {
        members.insert("nextCursor".into(), next.cursor().into());
    }
    Reply::from(Body::Members(members)).cached(lists::OWN)
}
