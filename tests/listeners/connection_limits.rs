//! Connection limits that the library's tests cannot cover: remote addresses, different users, additional paths (S-10).

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::http::HttpClient;
use crate::process::{corbie, report_skip, wait_for};

/// A non-loopback address of this machine. No packet is sent to find it.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

const TOKEN: &str = "98c1eb4ee93476743763878fcb96a25fbc9a1750";

/// A connection in use: the rest of its body is awaited.
fn busy(client: HttpClient, headers: &[(&str, &str)]) -> Option<TcpStream> {
    let mut stream = client.connect().ok()?;
    stream.write_all(client.head("POST", "/mcp/ping", headers, 100).as_bytes()).ok()?;
    stream.write_all(b"{").ok()?;
    Some(stream)
}

#[test]
fn s10_one_address_has_its_share_of_the_connections_and_holders_of_a_token_are_not_counted() {
    let Some(address) = own_address() else { return report_skip("this machine has no address but loopback") };
    let mut server = corbie("serve")
        .file("corbie.yaml", "server:\n  listen: ['0.0.0.0:0']\n  limits: {max_connections_per_address: 2}\n")
        .variable("MCP_API_KEY", TOKEN)
        .start();
    let line = server.wait_for_log("listening");
    let port: u16 = line.split("http://0.0.0.0:").nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
    let bearer = format!("Bearer {TOKEN}");
    let known = [("Authorization", bearer.as_str())];
    for client in [HttpClient(SocketAddr::new(address, port)), HttpClient::v4(port)] {
        if client.connect().is_err() {
            return report_skip("this machine cannot be reached by its own address");
        }
        // Holders of a token use as many as they like.
        let _known: Vec<_> = (0..5).map(|_| busy(client, &known).unwrap()).collect();
        // Silent connections make room for further ones of the same address.
        let _silent: Vec<_> = (0..10).map(|_| client.connect().unwrap()).collect();
        assert_eq!(client.get("/live").status, 200);
        assert_eq!(client.call("GET", "/metrics", &known, "").status, 200);
        wait_for("an answer", || (client.try_call("GET", "/metrics", &[], "").ok()?.status == 401).then_some(()));
    }
}

/// How many files this process, and those it starts, may have open.
fn max_open_files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[test]
fn s10_a_thousand_silent_connections_lock_nobody_out() {
    const SILENT: usize = 1300;
    if max_open_files() < 2 * SILENT {
        return report_skip("this machine does not allow that many open files");
    }
    let mut server = corbie("serve --port 0")
        .variable("CORBIE_SERVER__AUTH", "bearer")
        .variable("MCP_API_KEY", TOKEN)
        // All from one address: the limit per address has a separate test.
        .variable("CORBIE_SERVER__LIMITS__MAX_CONNECTIONS_PER_ADDRESS", 0)
        .start();
    let client = server.client();
    let bearer = format!("Bearer {TOKEN}");
    let known = [("Authorization", bearer.as_str())];
    // As many callers with a token as there may be connections, and a flood of silent connections.
    let _held: Vec<_> = (0..1024).map(|_| busy(client, &known).unwrap()).collect();
    let _silent: Vec<_> = (0..SILENT - 1024).map(|_| client.connect().unwrap()).collect();
    for path in ["/live", "/ready", "/health"] {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
    assert_eq!(client.call("POST", "/mcp/ping", &known, "").status, 200);
    assert_eq!(client.call("POST", "/mcp/ping", &[], "").status, 503);
}

#[test]
fn s10_a_thousand_silent_connections_are_evicted_for_an_ordinary_client() {
    const SILENT: usize = 1300;
    if max_open_files() < 2 * SILENT {
        return report_skip("this machine does not allow that many open files");
    }
    let mut server = corbie("serve --port 0").start();
    let client = server.client();
    let _silent: Vec<_> = (0..SILENT).map(|_| client.connect().unwrap()).collect();
    for path in ["/live", "/ready", "/health", "/metrics"] {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
    assert_eq!(client.call("POST", "/mcp/ping", &[], "").status, 200);
}

#[test]
fn s10_a_body_that_takes_too_long_is_told_so_on_every_path() {
    let mut server = corbie("serve --port 0").variable("CORBIE_SERVER__LIMITS__REQUEST_READ_TIMEOUT", "300ms").start();
    let client = server.client();
    for path in ["/mcp", "/mcp/tools/call", "/v1/chat/completions", "/v1/embeddings"] {
        let mut connection = client.connect().unwrap();
        connection.write_all(client.head("POST", path, &[], 100).as_bytes()).unwrap();
        connection.write_all(b"{").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 408"), "{path}: {answer}");
    }
}

/// The file mode keeps different users out; if it is loosened manually, the program still rejects them.
#[test]
fn s06_another_user_is_turned_away_from_a_socket_file_for_one() {
    let program = corbie("serve");
    let folder = program.folder().to_owned();
    let path = folder.join("corbie.sock");
    let mut server =
        program.file("corbie.yaml", &format!("server: {{listen: [\"unix:{}\"]}}\n", path.display())).start();
    server.wait_for_log("listening");
    for (open, mode) in [(&folder, 0o755), (&path, 0o666)] {
        std::fs::set_permissions(open, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut other = Command::new("setpriv");
    other.args(["--reuid", "65534", "--clear-groups", "curl", "-q", "-s", "-w", "%{http_code}", "--max-time", "30"]);
    let output = other.arg("--unix-socket").arg(&path).arg("http://x/health").output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return report_skip("nobody can be somebody else here");
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("only its own user") && said.ends_with("403"), "{said}");
}
