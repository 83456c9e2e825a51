//! Bounds on connections that the library's tests cannot reach: other addresses, other users, further paths (S-10).

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::http::Client;
use crate::process::{corbie, skip, wait_for};

/// An address of this machine that is not loopback. Nothing is sent to find it.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[test]
fn s10_one_address_has_its_share_of_the_connections_and_this_machine_is_not_counted() {
    let Some(address) = own_address() else { return skip("this machine has no address but loopback") };
    let mut server = corbie("serve")
        .file("corbie.yaml", "server:\n  listen: ['0.0.0.0:0']\n  limits: {max_connections_per_address: 2}\n")
        .variable("MCP_API_KEY", "a-long-word")
        .start();
    let line = server.logged("listening");
    let port: u16 = line.split("http://0.0.0.0:").nth(1).unwrap().split('/').next().unwrap().parse().unwrap();
    let outside = Client(SocketAddr::new(address, port));
    let Ok(first) = outside.connect() else { return skip("this machine cannot be reached by its own address") };
    let held = [first, outside.connect().unwrap()];
    assert_eq!(outside.get("/live").status, 503);
    // Here, a proxy brings the callers of many.
    let _local: Vec<_> = (0..5).map(|_| Client::v4(port).connect().unwrap()).collect();
    assert_eq!(Client::v4(port).get("/live").status, 200);
    drop(held);
    wait_for("room", || (outside.try_call("GET", "/live", &[], "").ok()?.status == 200).then_some(()));
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

/// The mode keeps other users out; should somebody loosen it by hand, the program still does.
#[test]
fn s06_another_user_is_turned_away_from_a_socket_file_for_one() {
    let program = corbie("serve");
    let folder = program.folder().to_owned();
    let path = folder.join("corbie.sock");
    let mut server =
        program.file("corbie.yaml", &format!("server: {{listen: [\"unix:{}\"]}}\n", path.display())).start();
    server.logged("listening");
    for (open, mode) in [(&folder, 0o755), (&path, 0o666)] {
        std::fs::set_permissions(open, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut other = Command::new("setpriv");
    other.args(["--reuid", "65534", "--clear-groups", "curl", "-q", "-s", "-w", "%{http_code}", "--max-time", "30"]);
    let output = other.arg("--unix-socket").arg(&path).arg("http://x/health").output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return skip("nobody can be somebody else here");
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("its own user only") && said.ends_with("403"), "{said}");
}
