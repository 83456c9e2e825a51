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
const FOLDER: &str = "/console/";
/// The index page.
const INDEX: &str = "index.html";

/// Content Security Policy: scripts and styles only from our own files, no frames, no forms, no script from strings,
/// and no connections to other hosts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Headers of the page: other pages get no reference to its window, and it has no access to devices.
const OF_THE_PAGE: [(HeaderName, &str); 3] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];
/// Other sites cannot load the files.
const OWN_PAGES: (HeaderName, &str) = (HeaderName::from_static("cross-origin-resource-policy"), "same-origin");

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/console");

/// One file, ready to be sent.
#[derive(Clone)]
struct File {
    kind: &'static str,
    /// Hash of its bytes, so that browsers can revalidate and get a reply without a body.
    tag: HeaderValue,
    plain: Bytes,
    /// `None` if compression saves nothing.
    gzip: Option<Bytes>,
}

/// The response for a console path; `None` for other paths.
pub fn page(method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    let name = match path {
        "/" => INDEX,
        path => path.strip_prefix(FOLDER)?,
    };
    let file = find(name)?;
    if !matches!(*method, Method::GET | Method::HEAD) {
        let response = Response::builder().status(StatusCode::METHOD_NOT_ALLOWED).header(ALLOW, "GET, HEAD");
        return Some(response.body(Body::empty()).expect("the head is well formed"));
    }
    Some(file.reply(method, headers))
}

/// Compressed size of the whole console, for a browser without a cached copy.
pub fn transfer_bytes() -> usize {
    all().values().map(|file| file.gzip.as_ref().unwrap_or(&file.plain).len()).sum()
}

impl File {
    fn reply(self, method: &Method, headers: &HeaderMap) -> Response {
        let mut response = Response::builder()
            .header(CONTENT_TYPE, self.kind)
            // Cached, but revalidated every time: a newer corbie has different files under the same names.
            .header(CACHE_CONTROL, "no-cache")
            .header(VARY, "accept-encoding")
            .header(ETAG, &self.tag)
            .header(OWN_PAGES.0, OWN_PAGES.1);
        for (name, value) in OF_THE_PAGE.into_iter().filter(|_| self.kind.starts_with("text/html")) {
            response = response.header(name, value);
        }
        let known = headers.get_all(IF_NONE_MATCH).iter().any(|tags| names(tags, &self.tag));
        let (status, body) = match self.gzip.filter(|_| takes_gzip(headers)) {
            _ if known => (StatusCode::NOT_MODIFIED, Bytes::new()),
            Some(gzip) => {
                response = response.header(CONTENT_ENCODING, "gzip");
                (StatusCode::OK, gzip)
            }
            None => (StatusCode::OK, self.plain),
        };
        if !known {
            response = response.header(CONTENT_LENGTH, body.len());
        }
        let body = if *method == Method::HEAD { Body::empty() } else { body.into() };
        response.status(status).body(body).expect("the head is well formed")
    }
}

fn find(name: &str) -> Option<File> {
    if cfg!(debug_assertions)
        && let Some(file) = in_folder(name)
    {
        return Some(file);
    }
    all().get(name).cloned()
}

/// Debug builds read the source folder, so that changes show after a page reload.
fn in_folder(name: &str) -> Option<File> {
    let name = Path::new(name);
    let inside = name.components().all(|part| matches!(part, Component::Normal(_)));
    let bytes = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("console").join(name)).ok();
    bytes.filter(|_| inside).and_then(|bytes| ready(name, bytes.into()))
}

fn all() -> &'static HashMap<&'static str, File> {
    static ALL: LazyLock<HashMap<&'static str, File>> = LazyLock::new(|| {
        let (mut files, mut folders) = (HashMap::new(), vec![&FILES]);
        while let Some(folder) = folders.pop() {
            folders.extend(folder.dirs());
            files.extend(folder.files().filter_map(|file| {
                let bytes = Cow::Borrowed(file.contents());
                Some((file.path().to_str()?, ready(file.path(), bytes)?))
            }));
        }
        files
    });
    &ALL
}

fn ready(name: &Path, bytes: Cow<'static, [u8]>) -> Option<File> {
    let kind = kind_of(name)?;
    let tag: String = Sha256::digest(&bytes)[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    let plain = match bytes {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => Bytes::from(bytes),
    };
    let gzip = compress(&plain).filter(|gzip| gzip.len() < plain.len());
    Some(File { kind, tag: HeaderValue::from_str(&format!("\"{tag}\"")).ok()?, plain, gzip })
}

fn kind_of(name: &Path) -> Option<&'static str> {
    Some(match name.extension()?.to_str()? {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
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
fn names(tags: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(tags), Ok(tag)) = (tags.to_str(), tag.to_str()) else { return false };
    tags.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}

fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|list| list.split(',')).any(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, "q=1"));
        let refused = weight.trim().strip_prefix("q=").is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q == 0.0));
        name.trim().eq_ignore_ascii_case("gzip") && !refused
    })
}
