//! Pagination for `tools/list`, `resources/templates/list`, `prompts/list`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::dispatch::MethodCall;
use crate::error::Error;
use crate::reply::{CacheHint, MethodReply, ReplyBody};
use crate::version::Version;

#[derive(Deserialize)]
struct Params {
    cursor: Option<String>,
}

/// Start of a page.
#[derive(Debug, PartialEq)]
pub(super) enum Position {
    /// Offset into the fixed entries.
    Offset(usize),
    /// Cursor of the program's resource lister.
    ListerCursor(String),
}

pub(super) const PRIVATE_UNCACHED: CacheHint = CacheHint { ttl_ms: 0, scope: "private" };

/// Lists change rarely and clients are notified of changes, so they may cache one for the discovery TTL.
fn public_cache(call: &MethodCall) -> CacheHint {
    let ttl_ms = u64::try_from(call.server.inner().discovery_ttl.as_millis()).unwrap_or(u64::MAX);
    CacheHint { ttl_ms, scope: "public" }
}

pub(crate) fn tools(call: &MethodCall) -> Result<MethodReply, Error> {
    let tools = call.server.tools();
    let with_output_schemas = call.version >= Version::V2025_06_18;
    let Params { cursor } = call.params.parse()?;
    let caller = &call.transport.caller;
    let is_restricted = caller.permissions.as_ref().is_some_and(|grant| !grant.tools.is_all());
    if is_restricted || !call.server.inner().listed_tools.is_all() {
        // Omit tools the caller may not use. Such a list is specific to the caller and must not be in a shared cache.
        let shown = tools.iter().filter(|tool| caller.may_use(tool.name()) && call.server.lists(tool.name()));
        let shown: Vec<Value> = shown.map(|tool| tool.listing_for(with_output_schemas)).collect();
        let cache = if is_restricted { PRIVATE_UNCACHED } else { public_cache(call) };
        return paginate(call, "tools", shown.into_iter(), cache);
    }
    if cursor.is_none() && tools.len() <= call.server.limits().page_size {
        let written = tools.tools_json(with_output_schemas).clone();
        return Ok(MethodReply::from(ReplyBody::Raw("tools", written)).with_cache(public_cache(call)));
    }
    paginate(call, "tools", tools.iter().map(|tool| tool.listing_for(with_output_schemas)), public_cache(call))
}

pub(crate) fn templates(call: &MethodCall) -> Result<MethodReply, Error> {
    paginate(
        call,
        "resourceTemplates",
        call.server.inner().templates.iter().map(|template| template.listing()),
        public_cache(call),
    )
}

pub(crate) fn prompts(call: &MethodCall) -> Result<MethodReply, Error> {
    let prompts = call.server.prompts();
    paginate(call, "prompts", prompts.values().map(|prompt| prompt.listing()), public_cache(call))
}

pub(super) fn paginate(
    call: &MethodCall,
    member: &str,
    entries: impl ExactSizeIterator<Item = Value>,
    cache: CacheHint,
) -> Result<MethodReply, Error> {
    // A page size of zero would never end.
    let size = call.server.limits().page_size.max(1);
    let total = entries.len();
    let start = match position(call)? {
        Position::Offset(start) if start <= total => start,
        _ => return Err(invalid_cursor()),
    };
    let mut members = Map::new();
    members.insert(member.into(), entries.skip(start).take(size).collect());
    if start + size < total {
        members.insert("nextCursor".into(), Position::Offset(start + size).cursor().into());
    }
    Ok(MethodReply::from(ReplyBody::Members(members)).with_cache(cache))
}

/// The start of the requested page.
pub(super) fn position(call: &MethodCall) -> Result<Position, Error> {
    let Params { cursor } = call.params.parse()?;
    let Some(cursor) = cursor else { return Ok(Position::Offset(0)) };
    let text = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.and_then(|text| Position::parse(&text)).ok_or_else(invalid_cursor)
}

impl Position {
    fn parse(text: &str) -> Option<Position> {
        match text.split_once(':')? {
            ("at", start) => start.parse().ok().map(Position::Offset),
            ("from", cursor) => Some(Position::ListerCursor(cursor.to_owned())),
            _ => None,
        }
    }

    pub(super) fn cursor(&self) -> String {
        URL_SAFE_NO_PAD.encode(match self {
            Position::Offset(start) => format!("at:{start}"),
            Position::ListerCursor(cursor) => format!("from:{cursor}"),
        })
    }
}

pub(super) fn invalid_cursor() -> Error {
    Error::invalid_params("invalid `cursor`; omit it to start at the first page")
}
