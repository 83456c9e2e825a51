//! The web console: files of `console/`, as they are, inside the binary.
//!
//! There is nothing behind it. The page is an MCP client like any other, so this module hands out files and knows of
//! nobody who asks for them.

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

/// Where the files are, below the one page.
const FOLDER: &str = "/console/";
/// The one page.
const INDEX: &str = "index.html";

/// Scripts and styles of our own files alone, no frames, no forms, no way to make script out of text; and nothing is
/// asked of another machine.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// Other pages get no hold of the console's window, and none of its files.
const APART: [(HeaderName, &str); 3] = [
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/console");

/// One file, ready to be sent.
#[derive(Clone)]
struct File {
    kind: &'static str,
    /// Of its bytes, so that browsers ask again and get an answer without a body.
    tag: HeaderValue,
    plain: Bytes,
    /// None where it saves nothing.
    gzip: Option<Bytes>,
}

/// The console's answer to a request, if it is for one of its paths.
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

/// How many bytes the whole console takes on its way to a browser that has nothing of it yet.
pub fn transfer_bytes() -> usize {
    all().values().map(|file| file.gzip.as_ref().unwrap_or(&file.plain).len()).sum()
}

impl File {
    fn reply(self, method: &Method, headers: &HeaderMap) -> Response {
        let mut response = Response::builder()
            .header(CONTENT_TYPE, self.kind)
            .header(CONTENT_SECURITY_POLICY, POLICY)
            // Kept, and asked about every time: a newer corbie has other files under the same names.
            .header(CACHE_CONTROL, "no-cache")
            .header(VARY, "accept-encoding")
            .header(ETAG, &self.tag);
        for (name, value) in APART {
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

/// Debug builds look into the folder they were built in, so that a change shows after a reload of the page.
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

/// Whether a list of tags has this one. Proxies mark a tag as weak when they compress by themselves.
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
