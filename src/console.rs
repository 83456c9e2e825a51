//! Web console: static files of `console/`, embedded in the binary.
//!
//! It has no server-side code. The page is an ordinary MCP client, so this module only serves files and does not
//! authenticate.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::Write;
use std::path::{Component, Path};
use std::sync::LazyLock;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    ETAG, IF_NONE_MATCH, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};

/// URL path of the files, except for the index page.
const ASSET_PATH: &str = "/console/";
/// The index page.
const INDEX: &str = "index.html";

/// Content Security Policy: scripts and styles only from our own files, no frames, no forms, no script from strings,
/// and no connections to other hosts.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Headers of the page: other pages get no reference to its window, and it has no access to devices.
const PAGE_HEADERS: [(HeaderName, &str); 3] = [
    (CONTENT_SECURITY_POLICY, CSP),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];
/// Other sites cannot load the files.
const RESOURCE_POLICY: (HeaderName, &str) = (HeaderName::from_static("cross-origin-resource-policy"), "same-origin");

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/console");

/// The Grafana dashboard, for download from the overview: path and content.
const GRAFANA_DASHBOARD: (&str, &str) = ("grafana-dashboard.json", include_str!("../docs/grafana/corbie.json"));

/// One file, ready to be sent.
#[derive(Clone)]
struct Asset {
    content_type: &'static str,
    /// Hash of its bytes, so that browsers can revalidate and get a reply without a body.
    etag: HeaderValue,
    bytes: Bytes,
    /// `None` if compression saves nothing.
    gzip: Option<Bytes>,
}

/// The response for a console path; `None` for other paths.
pub fn respond(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    let name = match path {
        "/" => INDEX,
        path => path.strip_prefix(ASSET_PATH)?,
    };
    let file = find_asset(name)?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        let response = Response::builder().status(StatusCode::METHOD_NOT_ALLOWED).header(ALLOW, "GET, HEAD");
        return Some(response.body(Body::empty()).expect("the head is well formed"));
    }
    Some(file.reply(method, headers))
}

/// Compressed size of the whole console, for a browser without a cached copy.
pub fn transfer_bytes() -> usize {
    assets().values().map(|file| file.gzip.as_ref().unwrap_or(&file.bytes).len()).sum()
}

impl Asset {
    fn reply(self, method: &Method, headers: &HeaderMap) -> Response {
        let mut response = Response::builder()
            .header(CONTENT_TYPE, self.content_type)
            // Cached, but revalidated every time: a newer corbie has different files under the same names.
            .header(CACHE_CONTROL, "no-cache")
            .header(VARY, "accept-encoding")
            .header(ETAG, &self.etag)
            .header(RESOURCE_POLICY.0, RESOURCE_POLICY.1);
        for (name, value) in PAGE_HEADERS.into_iter().filter(|_| self.content_type.starts_with("text/html")) {
            response = response.header(name, value);
        }
        let known = headers.get_all(IF_NONE_MATCH).iter().any(|tags| etag_matches(tags, &self.etag));
        let (status, body) = match self.gzip.filter(|_| accepts_gzip(headers)) {
            _ if known => (StatusCode::NOT_MODIFIED, Bytes::new()),
            Some(gzip) => {
                response = response.header(CONTENT_ENCODING, "gzip");
                (StatusCode::OK, gzip)
            }
            None => (StatusCode::OK, self.bytes),
        };
        if !known {
            response = response.header(CONTENT_LENGTH, body.len());
        }
        let body = if *method == Method::HEAD { Body::empty() } else { body.into() };
        response.status(status).body(body).expect("the head is well formed")
    }
}

fn find_asset(name: &str) -> Option<Asset> {
    if cfg!(debug_assertions)
        && let Some(file) = load_from_disk(name)
    {
        return Some(file);
    }
    assets().get(name).cloned()
}

/// Debug builds read the source folder, so that changes show after a page reload.
fn load_from_disk(name: &str) -> Option<Asset> {
    let name = Path::new(name);
    let inside = name.components().all(|part| matches!(part, Component::Normal(_)));
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("console").join(name)).ok();
    bytes.filter(|_| inside).and_then(|bytes| build_asset(name, bytes.into()))
}

fn assets() -> &'static HashMap<&'static str, Asset> {
    static ALL: LazyLock<HashMap<&'static str, Asset>> = LazyLock::new(|| {
        let (mut files, mut folders) = (HashMap::new(), vec![&FILES]);
        let (name, content) = GRAFANA_DASHBOARD;
        files.extend(build_asset(Path::new(name), Cow::Borrowed(content.as_bytes())).map(|asset| (name, asset)));
        while let Some(folder) = folders.pop() {
            folders.extend(folder.dirs());
            files.extend(folder.files().filter_map(|file| {
                let bytes = Cow::Borrowed(file.contents());
                Some((file.path().to_str()?, build_asset(file.path(), bytes)?))
            }));
        }
        files
    });
    &ALL
}

fn build_asset(name: &Path, bytes: Cow<'static, [u8]>) -> Option<Asset> {
    let kind = content_type_of(name)?;
    let tag: String = Sha256::digest(&bytes)[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    let plain = match bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
    };
    let gzip = compress(&plain).filter(|gzip| gzip.len() < plain.len());
    Some(Asset { content_type: kind, etag: HeaderValue::from_str(&format!("\"{tag}\"")).ok()?, bytes: plain, gzip })
}

fn content_type_of(name: &Path) -> Option<&'static str> {
    Some(match name.extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

fn compress(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 2), Compression::best());
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

/// Whether an `If-None-Match` list contains this tag. Proxies that compress mark a tag as weak.
fn etag_matches(tags: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(tags), Ok(tag)) = (tags.to_str(), tag.to_str()) else { return false };
    tags.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|list| list.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, "q=1"));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q == 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}
