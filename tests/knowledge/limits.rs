//! Input limits: path traversal, special files and oversized arguments (S-11).

use serde_json::{Value, json};

use crate::database::Database;
use crate::fixture::{CROWS, CallTransport, KnowledgeServer, each_transport, path_string, server_command};

const ADD: &str = "knowledge-add";

fn server_with_allowed_root(root: &std::path::Path) -> KnowledgeServer {
    KnowledgeServer::from_command(server_command(&[("ALLOWED_ROOTS", &json!([root]).to_string())]))
}

#[cfg(unix)]
#[test]
fn s11_k31_links_do_not_lead_out_of_the_allowed_folders() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().unwrap();
    let allowed = root.path().join("allowed");
    std::fs::create_dir_all(allowed.join("inner")).unwrap();
    std::fs::write(allowed.join("inner/fine.txt"), CROWS).unwrap();
    std::fs::create_dir(root.path().join("allowed-not")).unwrap();
    std::fs::write(root.path().join("allowed-not/near.txt"), "The next folder's name begins the same.").unwrap();
    std::fs::write(root.path().join("outside.txt"), "Nobody may add this.").unwrap();
    symlink(root.path().join("outside.txt"), allowed.join("link.txt")).unwrap();
    symlink(root.path(), allowed.join("up")).unwrap();
    symlink(allowed.join("inner/fine.txt"), root.path().join("inward.txt")).unwrap();
    symlink(allowed.join("nowhere.txt"), allowed.join("dangling.txt")).unwrap();
    let mut corbie = server_with_allowed_root(&allowed);
    for outside in [
        "outside.txt",
        "allowed/link.txt",
        "allowed/up/outside.txt",
        "allowed/../outside.txt",
        "allowed-not/near.txt",
        // The reply must not reveal whether the file exists.
        "missing.txt",
        "allowed/up/missing.txt",
    ] {
        let path = root.path().join(outside);
        corbie.expect_error(ADD, json!({ "file_path": path }), "path_not_allowed");
    }
    corbie.expect_error(ADD, json!({ "file_path": "/etc/passwd.txt" }), "path_not_allowed");
    corbie.expect_error(ADD, json!({ "file_path": allowed.join("missing.txt") }), "file_not_found");
    corbie.expect_error(ADD, json!({ "file_path": root.path().join("outside.xyz") }), "unsupported_format");
    // A link from outside to an allowed file is refused as a link, unless it is followed.
    let inward = path_string(&root.path().join("inward.txt"));
    corbie.expect_error(ADD, json!({ "file_path": inward }), "file_not_readable");
    let added = corbie.call(ADD, json!({ "file_path": inward, "follow_links": true, "async": false }));
    assert_eq!(added["success"], true, "{added}");
    corbie.expect_error(
        ADD,
        json!({ "file_path": allowed.join("link.txt"), "follow_links": true }),
        "path_not_allowed",
    );
    let imported = corbie.call("knowledge-import", json!({ "paths": [allowed], "async": false }));
    assert_eq!(imported["skipped_by_kind"], json!({ "links_outside_folder": 2 }), "{imported}");
    assert_eq!(corbie.show()["total_count"], 1, "{imported}");
    let imported = corbie.call("knowledge-import", json!({ "paths": [root.path()], "async": false }));
    assert_eq!(imported["files"][0]["error"], "path_not_allowed", "{imported}");
}

#[cfg(unix)]
#[test]
fn s11_nothing_but_files_is_read() {
    let mut corbie = KnowledgeServer::start();
    let pipe = corbie.folder().join("pipe.txt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let device = corbie.folder().join("device.txt");
    std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
    let socket = corbie.folder().join("socket.txt");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let folder = corbie.folder().join("folder.txt");
    std::fs::create_dir(&folder).unwrap();
    let itself = corbie.folder().join("itself.txt");
    std::os::unix::fs::symlink(&itself, &itself).unwrap();
    for path in [pipe, device, socket, folder, itself] {
        for way in [CallTransport::Stdio, CallTransport::Http] {
            corbie.transport = way;
            corbie.expect_error(ADD, json!({ "file_path": path, "async": false }), "file_not_readable");
        }
    }
}

#[test]
fn s11_paths_that_are_none() {
    each_transport(|corbie| {
        corbie.expect_invalid(ADD, json!({ "file_path": "a\0b.txt" }), "file_path");
        corbie.expect_invalid(ADD, json!({ "file_path": "x".repeat(5000) + ".txt" }), "file_path");
        for path in ["x".repeat(300) + ".txt", "/".to_owned() + &"y/".repeat(1000) + "z.txt"] {
            let refused = corbie.call(ADD, json!({ "file_path": path }));
            let code = refused["error"].as_str().unwrap();
            assert!(["file_not_found", "file_not_readable"].contains(&code), "{refused}");
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn s11_a_strange_name_is_imported_and_one_that_is_no_text_is_told() {
    use std::os::unix::ffi::OsStrExt;
    let mut corbie = KnowledgeServer::start();
    let folder = corbie.folder().join("names");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join(std::ffi::OsStr::from_bytes(b"b\xffd.txt")), CROWS).unwrap();
    std::fs::write(folder.join("line\nbreak.txt"), "Bees gather nectar and make honey.").unwrap();
    let imported = corbie.call("knowledge-import", json!({ "paths": [folder], "async": false }));
    assert_eq!((&imported["added"], &imported["failed"]), (&json!(1), &json!(1)), "{imported}");
    let names: Vec<Value> =
        corbie.call("knowledge-show", json!({ "sort_by": "filename", "sort_order": "asc" }))["documents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|document| document["filename"].clone())
            .collect();
    assert_eq!(names, ["line\nbreak.txt"]);
    let again = corbie.call("knowledge-import", json!({ "paths": [folder], "async": false }));
    assert_eq!((&again["unchanged"], &again["failed"]), (&json!(1), &json!(1)), "{again}");
}

#[test]
fn s11_a_file_that_changes_while_it_is_read_is_one_or_the_other() {
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("changing.txt", CROWS);
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let writing = path.clone();
    let writer = std::thread::spawn(move || {
        let mut number = 0u32;
        while stopped.try_recv().is_err() {
            number += 1;
            std::fs::write(&writing, format!("Version {number}. {CROWS}").repeat(200)).unwrap();
        }
    });
    for _ in 0..5 {
        let told = corbie.call(ADD, json!({ "file_path": path, "async": false }));
        let is_known = told["success"] == true
            || ["empty_file", "no_text_extracted", "corrupted_file"].contains(&told["error"].as_str().unwrap());
        assert!(is_known, "{told}");
    }
    stop.send(()).unwrap();
    writer.join().unwrap();
    corbie.add_path(&path, json!({}));
    // An attempt that read the file while it was empty has failed and is listed as failed.
    let shown = corbie.show();
    let documents = shown["documents"].as_array().unwrap();
    let whole = documents.iter().filter(|document| document["processing_status"] == "completed").count();
    assert_eq!(whole, 1, "{shown}");
}

#[test]
fn s10_metadata_that_is_absurd_is_refused() {
    each_transport(|corbie| {
        let path = corbie.file("crows.txt", CROWS);
        let mut deep = json!("bottom");
        for _ in 0..60 {
            deep = json!({ "in": deep });
        }
        for metadata in [json!({ "long": "x".repeat(1 << 20) }), deep] {
            corbie.expect_invalid(ADD, json!({ "file_path": path, "metadata": metadata }), "metadata");
        }
        // A message of this size is not even read.
        let huge =
            json!({ "name": ADD, "arguments": { "file_path": path, "metadata": { "long": "x".repeat(10 << 20) } } });
        if corbie.transport == CallTransport::Rest {
            let reply = corbie.client.try_call("POST", "/mcp/tools/call", &[], &huge.to_string());
            assert!(reply.is_err() || reply.is_ok_and(|reply| reply.status == 413));
        }
        assert_eq!(corbie.show()["total_count"], 0);
        let odd = json!({ "": 1, "a.b": [null, {}, []], "format": "fake", "page_num": 99, "naïve 🐦": "\u{0}\u{7f}" });
        corbie.add_path(&path, odd);
        let found = corbie.search("clever crows");
        let metadata = &found["results"][0]["metadata"];
        assert_eq!(metadata["format"], "txt", "what is known of the file goes first: {metadata}");
        assert_eq!(metadata.get("page_num"), None, "`page_num` only where it is known: {metadata}");
    });
}

#[test]
fn z10_k50_queries_and_filters_of_any_letters() {
    each_transport(|corbie| {
        corbie.add("crows.txt", CROWS);
        for query in
            ["🐦".repeat(500), "\u{0}".repeat(5), "\"'`;--".to_owned(), "* AND OR NOT (".to_owned(), "ﷺ".repeat(500)]
        {
            let found = corbie.search(&query);
            assert_eq!(found["query"].as_str().unwrap().trim(), query.trim());
        }
        for filters in [
            json!({ "author": "'; DROP TABLE documents; --" }),
            json!({ "\u{0}": "\u{0}" }),
            json!({ "a": { "b": { "c": [1, 2, { "d": null }] } } }),
            json!({ "tags": [{}, [], null, 1.5, "birds"] }),
        ] {
            let found = corbie.call("knowledge-search", json!({ "query": "crows", "filters": filters }));
            assert_eq!((&found["success"], &found["results"]), (&json!(true), &json!([])), "{filters}");
        }
        let many: serde_json::Map<String, Value> = (0..200).map(|key| (key.to_string(), json!(1))).collect();
        corbie.expect_invalid("knowledge-search", json!({ "query": "crows", "filters": many }), "filters");
    });
}

// === publicly reachable listener ===

const TOKEN: &str = "8a46fd6fc3d79d419361a7043d0365b6dfeb6b92";

fn public_server(
    settings: &[(&str, &str)],
) -> ((crate::process::TestProcess, Option<Database>), crate::http::HttpClient) {
    let setup =
        crate::process::corbie("serve").variable("CORBIE_SERVER__LISTEN", "0.0.0.0:0").variable("MCP_API_KEY", TOKEN);
    let setup =
        settings.iter().fold(setup, |setup, (name, value)| setup.variable(&format!("CORBIE_KNOWLEDGE__{name}"), value));
    let database = Database::if_configured();
    let mut running = crate::fixture::in_database(setup, database.as_ref()).start();
    let line = running.wait_for_log("listening");
    let port = line.split("http://0.0.0.0:").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok());
    ((running, database), crate::http::HttpClient::v4(port.unwrap_or_else(|| panic!("no port in {line:?}"))))
}

fn call_remotely(client: crate::http::HttpClient, tool: &str, arguments: Value) -> Value {
    let token = format!("Bearer {TOKEN}");
    let body = json!({ "name": tool, "arguments": arguments }).to_string();
    let reply = client.call("POST", "/mcp/tools/call", &[("Authorization", &token)], &body);
    assert_eq!(reply.status, 200, "{reply:?}");
    crate::fixture::tool_json(&reply.json())
}

#[test]
fn s11_from_afar_only_allowed_folders_and_uploads_are_read() {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("crows.txt");
    std::fs::write(&path, CROWS).unwrap();
    let (_running, client) = public_server(&[]);
    let refused = call_remotely(client, ADD, json!({ "file_path": path, "async": false }));
    assert_eq!(refused["error"], "path_not_allowed", "{refused}");
    let refused = call_remotely(client, "knowledge-import", json!({ "paths": [files.path()] }));
    assert_eq!(refused["error"], "path_not_allowed", "{refused}");
    let token = format!("Bearer {TOKEN}");
    let kept = client.call("POST", "/files?filename=up.txt", &[("Authorization", &token)], CROWS).json();
    let added = call_remotely(client, ADD, json!({ "file_path": kept["file_path"], "async": false }));
    assert_eq!(added["filename"], "up.txt", "{added}");
    assert_eq!(client.call("POST", "/files?filename=up.txt", &[], CROWS).status, 401);

    let (_running, client) = public_server(&[("ALLOWED_ROOTS", &json!([files.path()]).to_string())]);
    let added = call_remotely(client, ADD, json!({ "file_path": path, "async": false }));
    assert_eq!(added["success"], true, "{added}");
}
