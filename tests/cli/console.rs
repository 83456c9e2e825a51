//! The web console's static files: response headers, and rejected requests.

use crate::process::corbie;

#[test]
fn the_console_is_there_without_a_token_and_holds_nothing_else() {
    let mut server = corbie("serve --port 0")
        .variable("CORBIE_SERVER__AUTH", "bearer")
        .variable("MCP_API_KEY", "93d8874c8c86f0fc893dbe15c765ffa0fcd342f7")
        .start();
    let client = server.client();
    let page = client.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.body.contains("<title>corbie</title>"), "{}", page.body);
    assert_eq!(client.get("/console/js/main.js").header("content-type"), Some("text/javascript; charset=utf-8"));
    // Its data is not available without a token.
    let told = client.call("POST", "/mcp", &[], r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(told.status, 401);
    assert_eq!(client.get("/console/no-such-file.js").status, 401);
}

#[test]
fn s07_the_console_is_told_to_run_its_own_scripts_alone_and_pages_of_strangers_get_none_of_it() {
    let mut server = corbie("serve --port 0").start();
    let client = server.client();
    let page = client.get("/");
    let policy = page.header("content-security-policy").unwrap();
    for part in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("cross-origin-opener-policy"), Some("same-origin"));
    assert!(!page.body.contains("<script>") && !page.body.contains("style="), "{}", page.body);
    let stranger = client.call("GET", "/", &[("Origin", "https://stranger.example")], "");
    assert_eq!(stranger.status, 403);
}

#[test]
fn a_file_that_the_browser_has_is_not_sent_again() {
    let mut server = corbie("serve --port 0").start();
    let client = server.client();
    let plain = client.get("/console/css/colours.css");
    let tag = plain.header("etag").unwrap();
    assert_eq!(plain.header("cache-control"), Some("no-cache"));
    assert_eq!(plain.header("content-encoding"), None);
    let again = client.call("GET", "/console/css/colours.css", &[("If-None-Match", tag)], "");
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    let other = client.call("GET", "/console/css/colours.css", &[("If-None-Match", "\"other\"")], "");
    assert_eq!((other.status, other.body), (200, plain.body));
    let head = client.call("HEAD", "/", &[("Accept-Encoding", "br, gzip;q=0.5")], "");
    assert_eq!((head.status, head.header("content-encoding")), (200, Some("gzip")));
    let refused = client.call("HEAD", "/", &[("Accept-Encoding", "gzip;q=0")], "");
    assert_eq!(refused.header("content-encoding"), None);
}

#[test]
fn only_files_of_the_console_are_served_and_only_to_be_read() {
    let mut server = corbie("serve --port 0").start();
    let client = server.client();
    for path in [
        "/console/../Cargo.toml",
        "/console/%2e%2e/Cargo.toml",
        "/console//etc/passwd",
        "/console/js",
        "/console/",
        "/console/css/../../README.md",
    ] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
    let posted = client.call("POST", "/", &[], "{}");
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET, HEAD")));
}

#[test]
fn the_console_can_be_switched_off() {
    let mut server = corbie("serve --port 0").variable("CORBIE_SERVER__CONSOLE", "false").start();
    let client = server.client();
    assert_eq!(client.get("/").status, 404);
    assert_eq!(client.get("/console/js/main.js").status, 404);
    assert_eq!(client.get("/health").status, 200);
}

#[test]
fn the_whole_console_is_under_150_kilobytes_on_its_way() {
    let bytes = corbie::console::transfer_bytes();
    assert!((10_000..150_000).contains(&bytes), "{bytes} bytes");
}
