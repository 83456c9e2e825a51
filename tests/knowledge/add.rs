//! `knowledge-add`: arguments, replies and errors.

use std::fs::File;

use serde_json::json;

use crate::fixture::{
    CROWS, CallTransport, KnowledgeServer, each_transport, each_transport_with, is_uuid, member_names,
};
use crate::sample_files;

const ADD: &str = "knowledge-add";

// === sample contract of the specification ===

#[test]
fn v02_k01_the_sample_contract_of_the_specification() {
    each_transport(|corbie| {
        let path = corbie.file("doc.pdf", sample_files::pdf());
        let begun = corbie.call(ADD, json!({ "file_path": path, "async": true }));
        assert_eq!(begun["success"], true);
        assert!(begun.get("task_id").is_some());
        corbie.expect_error(ADD, json!({}), "missing_required_parameter");
        corbie.expect_error(ADD, json!({ "file_path": "/test/doc.xyz" }), "unsupported_format");
        let example = json!({
            "file_path": path,
            "metadata": { "author": "John Doe", "tags": ["technical", "api-docs"] },
            "async": true,
        });
        assert_eq!(corbie.call(ADD, example)["success"], true);
    });
}

#[test]
fn k23_k25_a_task_comes_back_at_once_by_default() {
    each_transport(|corbie| {
        let path = corbie.file("crows.txt", CROWS);
        let begun = corbie.call(ADD, json!({ "file_path": path }));
        assert_eq!(member_names(&begun), ["estimated_time_seconds", "message", "success", "task_id"]);
        assert_eq!(begun["message"], "Document queued for processing");
        assert!(is_uuid(&begun["task_id"]), "{begun}");
        assert!(begun["estimated_time_seconds"].is_u64(), "{begun}");
        assert_eq!(corbie.wait_for_task(begun["task_id"].as_str().unwrap())["status"], "completed");
    });
}

#[test]
fn k02_k06_k26_whoever_waits_is_told_of_the_document() {
    each_transport(|corbie| {
        let added = corbie.add("crows.txt", CROWS);
        let names = ["chunks_created", "document_id", "filename", "processing_method", "processing_time_seconds"];
        assert_eq!(member_names(&added), [&names[..], &["success"]].concat());
        assert!(is_uuid(&added["document_id"]), "{added}");
        assert_eq!((&added["filename"], &added["chunks_created"]), (&json!("crows.txt"), &json!(1)));
        assert_eq!(added["processing_method"], "text_extraction");
        assert!(added["processing_time_seconds"].is_f64(), "{added}");
    });
}

// === arguments ===

#[test]
fn k04_k20_without_a_path_nothing_can_be_added() {
    each_transport(|corbie| {
        let refused = corbie.expect_error(ADD, json!({ "async": false }), "missing_required_parameter");
        assert_eq!(refused["parameter"], "file_path");
        // A missing argument is reported before an invalid one.
        corbie.expect_error(ADD, json!({ "metadata": 7 }), "missing_required_parameter");
    });
}

#[test]
fn x05_k05_k21_k22_k23_an_argument_of_another_type_is_named() {
    each_transport(|corbie| {
        let path = corbie.file("crows.txt", CROWS);
        for (name, wrong) in [
            ("file_path", json!(7)),
            ("file_path", json!("")),
            ("file_path", json!(["a.txt"])),
            ("metadata", json!("author")),
            ("metadata", json!(["author"])),
            ("force_ocr", json!("yes")),
            ("force_ocr", json!(1)),
            ("async", json!("false")),
            ("knowledge_base", json!("not/a/name")),
        ] {
            let mut arguments = json!({ "file_path": path });
            arguments[name] = wrong;
            corbie.expect_invalid(ADD, arguments, name);
        }
        assert_eq!(corbie.show()["total_count"], 0);
    });
}

#[test]
fn k21_what_is_said_of_a_document_comes_with_what_is_found_in_it() {
    each_transport(|corbie| {
        let path = corbie.file("crows.txt", CROWS);
        corbie.add_path(&path, json!({ "author": "Ann", "tags": ["birds"], "year": 2024 }));
        let found = corbie.search("clever birds");
        let metadata = &found["results"][0]["metadata"];
        assert_eq!(
            (&metadata["author"], &metadata["tags"], &metadata["year"]),
            (&json!("Ann"), &json!(["birds"]), &json!(2024)),
            "{found}"
        );
    });
}

// === sizes ===

#[test]
fn k28_the_limit_is_told_in_the_words_of_the_specification() {
    each_transport(|corbie| {
        let path = corbie.file("large.pdf", "%PDF-1.4");
        File::options().write(true).open(&path).unwrap().set_len(150 << 20).unwrap();
        assert_eq!(
            corbie.call(ADD, json!({ "file_path": path })),
            json!({
                "success": false,
                "error": "file_too_large",
                "message": "File size (150 MB) exceeds maximum allowed size (100 MB)",
                "max_size_mb": 100,
            })
        );
    });
}

#[test]
fn k28_a_file_of_exactly_the_limit_is_taken() {
    each_transport_with(&[("MAX_FILE_SIZE_MB", "1")], |corbie| {
        let mut text = CROWS.to_owned();
        text.extend(std::iter::repeat_n(' ', (1 << 20) - CROWS.len()));
        corbie.add("exact.txt", &text);
        let over = corbie.file("over.txt", text + " ");
        let refused = corbie.expect_error(ADD, json!({ "file_path": over }), "file_too_large");
        assert_eq!(refused["max_size_mb"], 1);
        assert_eq!(refused["message"], "File size (2 MB) exceeds maximum allowed size (1 MB)");
    });
}

// === the order of checks ===

#[test]
fn z08_k29_k30_checks_come_in_their_order_and_before_the_answer() {
    each_transport_with(&[("MAX_FILE_SIZE_MB", "1")], |corbie| {
        let folder = corbie.folder().join("folder.pdf");
        std::fs::create_dir_all(&folder).unwrap();
        let noise = vec![1u8; (1 << 20) + 1];
        for (path, error) in [
            ("/test/doc.xyz".to_owned(), "unsupported_format"),
            ("/test/doc.pdf".to_owned(), "file_not_found"),
            (crate::fixture::path_string(&folder), "file_not_readable"),
            (corbie.file("large.pdf", &noise), "file_too_large"),
            (corbie.file("large.xyz", &noise), "unsupported_format"),
            (corbie.file("noise.pdf", &noise[..1000]), "corrupted_file"),
            (corbie.file("empty.pdf", ""), "empty_file"),
            (corbie.file("empty.xyz", ""), "unsupported_format"),
        ] {
            for is_async in [true, false] {
                corbie.expect_error(ADD, json!({ "file_path": path, "async": is_async }), error);
            }
        }
        // Invalid arguments are reported before errors of the file.
        corbie.expect_invalid(ADD, json!({ "file_path": "/test/doc.xyz", "metadata": 1 }), "metadata");
        assert_eq!(corbie.show()["total_count"], 0, "no task was made of any of them");
    });
}

#[cfg(unix)]
#[test]
fn k31_a_file_that_may_not_be_read_is_told_so() {
    use std::os::unix::fs::PermissionsExt;
    let mut corbie = KnowledgeServer::start();
    let path = corbie.file("secret.txt", CROWS);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_ok() {
        return crate::process::report_skip("this user may read every file");
    }
    corbie.expect_error(ADD, json!({ "file_path": path }), "file_not_readable");
}

// === links ===

/// A repository contains a link with the name of a document, which an agent is told to add.
#[cfg(unix)]
#[test]
fn s11_a_symlink_that_is_named_is_refused_and_followed_for_local_callers_who_ask_for_it_alone() {
    use std::os::unix::fs::symlink;
    let mut corbie = KnowledgeServer::start();
    corbie.file("private/credentials.txt", "aws_secret_access_key = quokkawombat");
    corbie.file("repo/crows.txt", CROWS);
    let repo = corbie.folder().join("repo");
    symlink("../private/credentials.txt", repo.join("notes.txt")).unwrap();
    symlink("notes.txt", repo.join("again.txt")).unwrap();
    symlink("crows.txt", repo.join("birds.txt")).unwrap();
    for way in [CallTransport::Stdio, CallTransport::Http, CallTransport::Rest] {
        corbie.transport = way;
        for (name, is_async) in [("notes.txt", true), ("again.txt", false), ("birds.txt", false)] {
            let arguments = json!({ "file_path": repo.join(name), "async": is_async });
            let refused = corbie.expect_error(ADD, arguments, "file_not_readable");
            let message = refused["message"].as_str().unwrap();
            for part in ["it is a symbolic link", "use the path of its target", "follow_links"] {
                assert!(message.contains(part), "{message}");
            }
        }
    }
    for way in [CallTransport::Http, CallTransport::Rest] {
        corbie.transport = way;
        let arguments = json!({ "file_path": repo.join("birds.txt"), "follow_links": true });
        corbie.expect_invalid(ADD, arguments, "follow_links");
    }
    assert_eq!(corbie.show()["total_count"], 0);
    corbie.transport = CallTransport::Stdio;
    let arguments = json!({ "file_path": repo.join("birds.txt"), "follow_links": true, "async": false });
    assert_eq!(corbie.call(ADD, arguments)["success"], true);
    // The folders above may be links.
    symlink(&repo, corbie.folder().join("above")).unwrap();
    let above = crate::fixture::path_string(&corbie.folder().join("above/crows.txt"));
    assert_eq!(corbie.add_path(&above, json!({}))["success"], true);
}

/// The file is checked when it is named, and read when its task has its turn.
#[cfg(unix)]
#[test]
fn s11_a_file_that_becomes_a_symlink_while_its_task_waits_is_not_read() {
    use std::os::unix::fs::symlink;
    let mut corbie = KnowledgeServer::with(&[("MAX_CONCURRENT_TASKS", "1")]);
    let secret = corbie.file("private/secret.txt", "aws_secret_access_key = quokkawombat");
    let long = corbie.file("long.txt", crate::fixture::long_text());
    let (notes, followed) = (corbie.file("notes.txt", CROWS), corbie.file("followed.txt", CROWS));
    let link = corbie.folder().join("link.txt");
    symlink(&followed, &link).unwrap();
    let first = corbie.start_task(&long);
    let begun = corbie.call(ADD, json!({ "file_path": link, "follow_links": true }));
    let tasks = [corbie.start_task(&notes), begun["task_id"].as_str().unwrap().to_owned()];
    for path in [std::path::Path::new(&notes), &link] {
        std::fs::remove_file(path).unwrap();
        symlink(&secret, path).unwrap();
    }
    corbie.request("tools/cancel", json!({ "taskId": first }));
    for task in tasks {
        let ended = corbie.wait_for_task(&task);
        assert_eq!((&ended["status"], &ended["error"]), (&json!("failed"), &json!("file_not_readable")), "{ended}");
    }
}

// === errors found only by parsing ===

#[test]
fn k30_k31_k37_what_only_reading_finds_is_told_and_leaves_nothing() {
    each_transport(|corbie| {
        let broken = corbie.file("broken.docx", &sample_files::docx()[..300]);
        let wordless = corbie.file("wordless.pdf", crate::pictures::pdf(&[crate::pictures::PageContent::Blank]));
        let blank = corbie.file("blank.txt", "  \n\t\n ");
        for (path, errors) in [
            (broken, &["corrupted_file"][..]),
            (wordless, &["no_text_extracted"]),
            (blank, &["no_text_extracted", "empty_file"]),
        ] {
            let refused = corbie.call(ADD, json!({ "file_path": path, "async": false }));
            let error = refused["error"].as_str().unwrap_or_else(|| panic!("{path}: {refused}"));
            assert!(errors.contains(&error), "{path}: {refused}");
            assert_eq!(corbie.show()["total_count"], 0, "x48: {path}");
        }
        let status = corbie.status();
        let base = &status["knowledge_base"];
        assert_eq!((&base["document_count"], &base["total_chunks"]), (&json!(0), &json!(0)), "{status}");
    });
}

#[test]
fn k31_a_document_with_a_password_says_so() {
    let mut corbie = KnowledgeServer::start();
    let mut builder = crate::pdf_builder::Builder::new();
    builder.page(&crate::pdf_builder::text("F1", 12, 72, 700, "nobody reads this"));
    let key = "00".repeat(32);
    let lock = builder.object(&format!("<< /Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <{key}> /U <{key}> >>"));
    builder.trailer(&format!(
        "/Encrypt {lock} 0 R /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]"
    ));
    let path = corbie.file("locked.pdf", builder.build());
    corbie.expect_error(ADD, json!({ "file_path": path, "async": false }), "password_protected");
}

#[test]
fn k31_ocr_failed_says_that_tesseract_is_missing() {
    let setup =
        crate::fixture::server_command(&[]).variable("CORBIE_OCR__ENGINE", "tesseract").variable("PATH", "/nowhere");
    let mut corbie = KnowledgeServer::from_command(setup);
    let scan = crate::pictures::pdf(&[crate::pictures::PageContent::Scan(crate::pictures::IMAGE_TEXT)]);
    let path = corbie.file("scan.pdf", scan);
    let refused = corbie.expect_error(ADD, json!({ "file_path": path, "async": false }), "ocr_failed");
    assert!(
        refused["message"].as_str().unwrap().starts_with("OCR processing failed: Tesseract not found"),
        "{refused}"
    );
    // A page with text is kept even if another page cannot be read.
    use crate::pictures::{IMAGE_TEXT, PageContent, TEXT_LAYER, pdf};
    let added = corbie.add("half.pdf", pdf(&[PageContent::Text(&TEXT_LAYER), PageContent::Scan(IMAGE_TEXT)]));
    assert!(added["warning"].as_str().is_some_and(|why| why.contains("Tesseract")), "{added}");
    let shown = corbie.show();
    assert_eq!(shown["documents"][0]["processing_status"], "partial", "k37: {shown}");
}
