//! `POST /files`: uploads from callers that share no folder with the program.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use corbie::knowledge::store::Store;
use serde_json::{Value, json};

use crate::fixture::{CROWS, CallTransport, KnowledgeServer, Storage, long_text, server_command};
use crate::http::{HttpResponse, StreamingResponse};
use crate::process::wait_for;

fn post(corbie: &KnowledgeServer, path: &str, body: &[u8]) -> HttpResponse {
    corbie.client.call_bytes("POST", path, body)
}

/// Paths of the existing uploads: in the upload folder and in the shared database.
fn upload_paths(corbie: &mut KnowledgeServer) -> BTreeSet<PathBuf> {
    let folder = corbie.storage().join("uploads");
    let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
    let shared = corbie.database().map(|database| database.query("SELECT DISTINCT path FROM corbie.uploads"));
    files.map(|file| file.path()).chain(shared.into_iter().flatten().map(PathBuf::from)).collect()
}

#[test]
fn k38_k41_an_upload_is_added_by_its_path_and_then_gone() {
    let mut corbie = KnowledgeServer::start();
    corbie.transport = CallTransport::Http;
    let reply = post(&corbie, "/files?filename=crows.txt", CROWS.as_bytes());
    assert_eq!(reply.status, 201, "{reply:?}");
    let kept = reply.json();
    assert_eq!(
        (&kept["success"], &kept["filename"], &kept["size_bytes"]),
        (&json!(true), &json!("crows.txt"), &json!(CROWS.len()))
    );
    let added = corbie.add_path(kept["file_path"].as_str().unwrap(), json!({}));
    assert_eq!(added["filename"], "crows.txt");
    wait_for("the upload to go", || upload_paths(&mut corbie).is_empty().then_some(()));
    assert_eq!(corbie.search("clever crows")["results"][0]["filename"], "crows.txt");
}

#[test]
fn k41_more_than_a_message_may_have_is_taken_and_more_than_a_file_may_have_is_not() {
    let mut corbie = KnowledgeServer::with(&[("MAX_FILE_SIZE_MB", "6")]);
    let mut body = CROWS.as_bytes().to_vec();
    body.resize(6 << 20, b' ');
    assert_eq!(post(&corbie, "/files?filename=exact.txt", &body).status, 201);
    body.push(b' ');
    // Rejected by its `Content-Length`, or by its content if it is chunked.
    let mut connection = corbie.client.connect().unwrap();
    let head = corbie.client.head("POST", "/files?filename=over.txt", &[], body.len());
    connection.write_all(head.as_bytes()).unwrap();
    let mut refused = StreamingResponse::read_head(connection).unwrap();
    refused.read_body().unwrap();
    assert_eq!((refused.head.status, &refused.head.json()["error"]), (413, &json!("file_too_large")));
    let mut connection = corbie.client.connect().unwrap();
    let head = format!(
        "POST /files?filename=over.txt HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
        corbie.client.0,
        body.len()
    );
    connection.write_all(head.as_bytes()).unwrap();
    // The server may reply before it has read everything.
    let _ = connection.write_all(&body).and_then(|()| connection.write_all(b"\r\n0\r\n\r\n"));
    let mut stream = StreamingResponse::read_head(connection).unwrap();
    assert_eq!(stream.head.status, 413);
    let _ = stream.read_body();
    assert_eq!(upload_paths(&mut corbie).len(), 1, "nothing stays of those that were refused");
}

#[test]
fn k41_what_cannot_be_added_is_not_taken() {
    let mut corbie = KnowledgeServer::start();
    for (path, body, status, error) in [
        ("/files?filename=a.exe", "x", 415, "unsupported_format"),
        ("/files?filename=a.txt", "", 400, "empty_file"),
        ("/files", "x", 400, "invalid_parameter"),
        ("/files?filename=..", "x", 400, "invalid_parameter"),
    ] {
        let reply = post(&corbie, path, body.as_bytes());
        let told: Value = reply.json();
        assert_eq!((reply.status, &told["error"], &told["success"]), (status, &json!(error), &json!(false)), "{path}");
    }
    // A file name cannot escape the folder.
    let kept = post(&corbie, "/files?filename=..%2F..%2Fevil.txt", CROWS.as_bytes()).json();
    let storage = corbie.storage();
    let path = kept["file_path"].as_str().unwrap();
    assert!(path.starts_with(storage.join("uploads").to_str().unwrap()) && path.ends_with("/evil.txt"), "{kept}");
}

#[test]
fn k41_a_body_that_breaks_off_leaves_nothing() {
    let mut corbie = KnowledgeServer::start();
    corbie.status();
    let mut connection = corbie.client.connect().unwrap();
    let head =
        format!("POST /files?filename=a.txt HTTP/1.1\r\nHost: {}\r\nContent-Length: 1000\r\n\r\nhalf", corbie.client.0);
    connection.write_all(head.as_bytes()).unwrap();
    wait_for("its first bytes", || (!upload_paths(&mut corbie).is_empty()).then_some(()));
    drop(connection);
    wait_for("it to go", || upload_paths(&mut corbie).is_empty().then_some(()));
}

#[test]
fn k41_who_may_only_read_may_not_upload() {
    let corbie = KnowledgeServer::from_command(server_command(&[]).arguments("--trust untrusted"));
    assert_eq!(post(&corbie, "/files?filename=a.txt", b"x").status, 403);
}

/// Uploads a file and returns its path.
fn upload_file(corbie: &KnowledgeServer, name: &str, content: impl AsRef<[u8]>) -> String {
    let kept = post(corbie, &format!("/files?filename={name}"), content.as_ref()).json();
    kept["file_path"].as_str().unwrap_or_else(|| panic!("{kept}")).to_owned()
}

#[test]
fn k38_an_upload_that_cannot_be_read_is_gone_and_one_that_could_not_be_stored_is_not() {
    let mut corbie = KnowledgeServer::start();
    let broken = upload_file(&corbie, "broken.docx", &crate::sample_files::docx()[..300]);
    corbie.expect_error("knowledge-add", json!({ "file_path": broken, "async": false }), "corrupted_file");
    wait_for("the upload to go", || upload_paths(&mut corbie).is_empty().then_some(()));
    let path = upload_file(&corbie, "crows.txt", CROWS);
    alter_table(&mut corbie, "pages RENAME TO taken_away");
    corbie.expect_error("knowledge-add", json!({ "file_path": path, "async": false }), "storage_failed");
    alter_table(&mut corbie, "taken_away RENAME TO pages");
    // The upload can be added after the failure, and is then removed.
    assert_eq!(corbie.add_path(&path, json!({}))["filename"], "crows.txt");
    wait_for("the upload to go", || upload_paths(&mut corbie).is_empty().then_some(()));
}

#[test]
fn k38_k117_an_upload_goes_with_its_cancelled_task_whoever_cancels_it() {
    let mut corbie = KnowledgeServer::with(&[("MAX_CONCURRENT_TASKS", "1")]);
    let mut begun = Vec::new();
    for name in ["runs.txt", "waits.txt", "cancelled_elsewhere.txt"] {
        let path = upload_file(&corbie, name, format!("{name} {}", long_text()));
        begun.push(corbie.start_task(&path));
    }
    wait_for("the first to run", || (corbie.task_status(&begun[0])["status"] == "running").then_some(()));
    assert_eq!(upload_paths(&mut corbie).len(), 3);
    corbie.open_store().run(async |store| cancel(store, &begun[2]).await);
    wait_for("the upload to go", || (upload_paths(&mut corbie).len() == 2).then_some(()));
    for task in &begun[..2] {
        corbie.request("tools/cancel", json!({ "taskId": task }));
    }
    wait_for("the uploads to go", || upload_paths(&mut corbie).is_empty().then_some(()));
}

#[test]
fn k38_an_upload_stays_as_long_as_another_task_waits_for_it() {
    let mut corbie = KnowledgeServer::with(&[("MAX_CONCURRENT_TASKS", "1")]);
    let long = corbie.file("long.txt", long_text());
    let running = corbie.start_task(&long);
    let path = upload_file(&corbie, "crows.txt", CROWS);
    let first = corbie.start_task(&path);
    let begun = corbie.call("knowledge-add", json!({ "file_path": path, "knowledge_base": "other" }));
    let second = begun["task_id"].as_str().unwrap_or_else(|| panic!("{begun}")).to_owned();
    // Both are queued by now and run one after the other.
    corbie.request("tools/cancel", json!({ "taskId": running }));
    for task in [&first, &second] {
        let told = corbie.wait_for_task(task);
        assert_eq!(told["status"], "completed", "{told}");
    }
    wait_for("the upload to go", || upload_paths(&mut corbie).is_empty().then_some(()));
}

#[test]
fn k38_a09_an_upload_outlives_its_process_as_long_as_its_task_does() {
    let storage = Storage::new();
    let mut first = KnowledgeServer::with_storage(&storage, &[("MAX_CONCURRENT_TASKS", "1")]);
    let long = upload_file(&first, "long.txt", long_text());
    let (waits, cancelled) =
        (upload_file(&first, "waits.txt", CROWS), upload_file(&first, "cancelled.txt", "No more."));
    let long = first.start_task(&long);
    let (waits, cancelled) = (first.start_task(&waits), first.start_task(&cancelled));
    let never_added = upload_file(&first, "never_added.txt", "Still to be added.");
    first.running.signal("KILL");
    wait_for("its end", || first.running.has_exited().then_some(()));
    // No process runs these tasks and could remove their files.
    storage.open_store().run(async |store| {
        for task in [&long, &cancelled] {
            cancel(store, task).await;
        }
    });
    let mut second = KnowledgeServer::with_storage(&storage, &[("MAX_CONCURRENT_TASKS", "1")]);
    assert_eq!(second.wait_for_task(&waits)["status"], "completed");
    wait_for("all that were named by a task to go", || {
        (upload_paths(&mut second) == [PathBuf::from(&never_added)].into()).then_some(())
    });
}

async fn cancel(store: &Store, task: &str) {
    assert!(store.cancel_task(task.parse().unwrap()).await.unwrap());
}

/// Alters a table behind the program's back.
fn alter_table(corbie: &mut KnowledgeServer, change: &str) {
    match corbie.database() {
        Some(database) => {
            database.query(&format!("ALTER TABLE corbie.{change}"));
        }
        None => {
            let database = rusqlite::Connection::open(corbie.storage().join("knowledge.db")).unwrap();
            database.execute_batch(&format!("ALTER TABLE {change}")).unwrap();
        }
    }
}
