//! Third-party HTTP clients that send a whole body before they read the reply.

use std::process::Command;

use crate::process::{corbie, report_skip};

const PYTHON: &str = r#"
import http.client, sys
port, path, length = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
connection.request("POST", path, body=b"x" * length, headers={"Content-Type": "application/json"})
reply = connection.getresponse()
reply.read()
print(reply.status)
"#;

const NODE: &str = r#"
const [port, path, length] = process.argv.slice(1);
const body = Buffer.alloc(Number(length), "x");
const headers = { "Content-Type": "application/json" };
const reply = await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", headers, body });
await reply.text();
console.log(reply.status);
"#;

/// A connection that is reset while a client sends loses the reply, and the client reports `ECONNRESET`.
#[test]
fn s10_a_413_reaches_pythons_http_client_and_nodes_fetch() {
    let mut server = corbie("serve --port 0").start();
    let port = server.client().0.port().to_string();
    for (program, arguments) in [("python3", &["-c", PYTHON][..]), ("node", &["--input-type=module", "-e", NODE])] {
        for path in ["/mcp", "/mcp/tools/call", "/v1/chat/completions"] {
            for length in ["4194305", "30000000"] {
                let mut command = Command::new(program);
                let Ok(output) = command.args(arguments).args([&port, path, length]).output() else {
                    return report_skip(&format!("this machine has no {program}"));
                };
                let said = String::from_utf8_lossy(&output.stdout);
                let failed = String::from_utf8_lossy(&output.stderr);
                assert_eq!(said.trim(), "413", "{program} {path} {length}: {failed}");
            }
        }
    }
}
