//! Which addresses may be opened without a token, and warnings for publicly reachable ones (S-06).

use crate::certificate::TestCertificate;
use crate::process::{TestCommand, corbie};

fn listening_on(address: &str) -> TestCommand {
    corbie("serve").file("corbie.yaml", &format!("server: {{listen: [\"{address}\"]}}\n"))
}

#[test]
fn s06_whatever_others_can_reach_is_refused_without_a_token() {
    // Only the resolver knows the address of a name, so it counts as remote.
    for address in ["0.0.0.0:0", "[::]:0", "[::ffff:0.0.0.0]:0", "localhost.:0", "some.name.example:0", "0:0"] {
        let ended = listening_on(address).run("");
        assert_eq!(ended.code, Some(1), "{address}: {}", ended.stderr);
        let line = ended.stderr.lines().last().unwrap_or_default();
        assert!(line.contains("server.listen") && line.contains("requires a token"), "{address}: {line}");
    }
}

#[test]
fn s06_x16_loopback_in_the_clothes_of_ipv6_is_loopback() {
    let mut server = listening_on("[::ffff:127.0.0.1]:0").start();
    let line = server.wait_for_log("listening");
    assert!(line.contains("trusted"), "{line}");
}

#[test]
fn s06_clear_text_to_the_outside_is_warned_of() {
    let mut server =
        listening_on("0.0.0.0:0").variable("MCP_API_KEY", "98c1eb4ee93476743763878fcb96a25fbc9a1750").start();
    let line = server.wait_for_log("not encrypted");
    assert!(line.contains("WARN") && line.contains("server.tls"), "{line}");

    let program = listening_on("0.0.0.0:0")
        .variable("MCP_API_KEY", "98c1eb4ee93476743763878fcb96a25fbc9a1750")
        .variable("CORBIE_SERVER__TLS__CERTIFICATE", "server.pem")
        .variable("CORBIE_SERVER__TLS__KEY", "server.key");
    TestCertificate::new().write(program.folder());
    let mut server = program.start();
    server.wait_for_log("https://0.0.0.0:");
    server.terminate();
    let ended = server.wait();
    assert!(!ended.stderr.contains("clear text"), "{}", ended.stderr);
}
