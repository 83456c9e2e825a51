//! `corbie health`: exit code for a server that responds or not.

use std::net::TcpListener;

use serde_json::Value;

use crate::process::{corbie, free_port};

#[test]
fn health_distinguishes_ready_and_unreachable_servers() {
    let mut server = corbie("serve --port 0").start();
    let url = format!("http://127.0.0.1:{}", server.port());
    let ended = corbie("health").argument(&url).run("");
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert_eq!(ended.stdout, format!("{url}/ is ready (status ok)\n"));
    let ended = corbie("health --json").argument(&url).run("");
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&said["ready"], &said["health"]["name"]), (&Value::Bool(true), &"corbie".into()), "{said}");
    server.terminate();
    server.wait();
    let ended = corbie("health").argument(&url).run("");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("is `corbie serve` running there?"), "{}", ended.stderr);
    let ended = corbie("health --json").argument(&url).run("");
    assert_eq!(ended.code, Some(1));
    let said: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&said["ready"], &said["success"], &said["error"]),
        (&false.into(), &false.into(), &"unreachable".into())
    );
    assert!(said["message"].as_str().unwrap().contains("is `corbie serve` running there?"), "{said}");
}

#[test]
fn health_uses_the_configured_address() {
    let port = free_port();
    let setup =
        |arguments: &str| corbie(arguments).variable("CORBIE_SERVER__LISTEN", format!("[\"127.0.0.1:{port}\"]"));
    assert_eq!(setup("health").run("").code, Some(1));
    let mut server = setup("serve").start();
    server.port();
    assert_eq!(setup("health").run("").code, Some(0));
}

#[test]
fn health_requires_http() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || drop(listener.accept()));
    assert_eq!(corbie("health").argument(url).run("").code, Some(1));
    answering.join().unwrap();
    let ended = corbie("health https://127.0.0.1:1").run("");
    assert_eq!(ended.code, Some(2));
    assert!(ended.stderr.contains("only http://"), "{}", ended.stderr);
}
