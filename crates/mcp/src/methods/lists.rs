//! Pagination for `tools/list`, `resources/templates/list`, `prompts/list`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::dispatch::Call;
use crate::error::Error;
use crate::reply::{Body, Cache, Reply};
use crate::version::Version;

#[derive(Deserialize)]
struct Params {
    cursor: Option<String>,
}

/// Start of a page.
#[derive(Debug, PartialEq)]
pub(super) enum Position {
    /// Offset into the fixed entries.
    At(usize),
    /// Cursor of the program's resource lister.
    From(String),
}

pub(super) const OWN: Cache = Cache { ttl_ms: 0, scope: "private" };

/// Lists change rarely and clients are notified of changes, so they may cache one for the discovery TTL.
fn shared(call: &Call) -> Cache {
    let ttl_ms = u64::try_from(call.server.inner().discovery_ttl.as_millis()).unwrap_or(u64::MAX);
    Cache { ttl_ms, scope: "public" }
}

pub(crate) fn tools(call: &Call) -> Result<Reply, Error> {
    let tools = call.server.tools();
    let with_output_schemas = call.version >= Version::V2025_06_18;
    let Params { cursor } = call.params.parse()?;
    let caller = &call.exchange.caller;
    if caller.grant.as_ref().is_some_and(|grant| !grant.tools.is_all()) {
        // Omit tools the caller may not use. The list is specific to the caller and must not be in a shared cache.
        let granted = tools.iter().filter(|tool| caller.may_use(tool.name()));
        let granted: Vec<Value> = granted.map(|tool| tool.listing_for(with_output_schemas)).collect();
        return page(call, "tools", granted.into_iter(), OWN);
    }
    if cursor.is_none() && tools.len() <= call.server.limits().page_size {
        let written = tools.written(with_output_schemas).clone();
        return Ok(Reply::from(Body::Written("tools", written)).cached(shared(call)));
    }
    page(call, "tools", tools.iter().map(|tool| tool.listing_for(with_output_schemas)), shared(call))
}

pub(crate) fn templates(call: &Call) -> Result<Reply, Error> {
    page(
        call,
        "resourceTemplates",
        call.server.inner().templates.iter().map(|template| template.listing()),
        shared(call),
    )
}

pub(crate) fn prompts(call: &Call) -> Result<Reply, Error> {
    let prompts = call.server.prompts();
    page(call, "prompts", prompts.values().map(|prompt| prompt.listing()), shared(call))
}

pub(super) fn page(
    call: &Call,
    member: &str,
    entries: impl ExactSizeIterator<Item = Value>,
    cache: Cache,
) -> Result<Reply, Error> {
    // A page size of zero would never end.
    let size = call.server.limits().page_size.max(1);
    let total = entries.len();
    let start = match position(call)? {
        Position::At(start) if start <= total => start,
        _ => return Err(bad_cursor()),
    };
    let mut members = Map::new();
    members.insert(member.into(), entries.skip(start).take(size).collect());
    if start + size < total {
        members.insert("nextCursor".into(), Position::At(start + size).cursor().into());
    }
    Ok(Reply::from(Body::Members(members)).cached(cache))
}

/// The start of the requested page.
pub(super) fn position(call: &Call) -> Result<Position, Error> {
    let Params { cursor } = call.params.parse()?;
    let Some(cursor) = cursor else { return Ok(Position::At(0)) };
    let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| Position::read(&text)).ok_or_else(bad_cursor)
}

impl Position {
    fn read(text: &str) -> Option<Position> {
        match text.split_once(':')? {
            ("at", start) => start.parse().ok().map(Position::At),
            ("from", cursor) => Some(Position::From(cursor.to_owned())),
            _ => None,
        }
    }

    pub(super) fn cursor(&self) -> String {
        URL_SAFE_NO_PAD.encode(match self {
            Position::At(start) => format!("at:{start}"),
            Position::From(cursor) => format!("from:{cursor}"),
        })
    }
}

pub(super) fn bad_cursor() -> Error {
    Error::invalid_params("`cursor` is not one this server gave; leave it out to start at the first page")
}
