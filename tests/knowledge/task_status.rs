//! `knowledge-task-status`: progress and outcome of a task.

use serde_json::json;

use crate::fixture::{CROWS, KnowledgeServer, each_transport, is_uuid, long_text};
use crate::process::wait_for;
use crate::sample_files;

const STATUS: &str = "knowledge-task-status";

#[test]
fn k04_k05_k110_a_task_is_named_by_a_uuid() {
    each_transport(|corbie| {
        let refused = corbie.expect_error(STATUS, json!({}), "missing_required_parameter");
        assert_eq!(refused["parameter"], "task_id");
        for wrong in [json!(7), json!(""), json!("not-a-uuid"), json!("uuid-v4-task-id"), json!("x".repeat(300))] {
            corbie.expect_invalid(STATUS, json!({ "task_id": wrong }), "task_id");
        }
        corbie.expect_error(STATUS, json!({ "task_id": "00000000-0000-4000-8000-000000000000" }), "task_not_found");
    });
}

#[test]
fn z16_k112_a_completed_task_tells_its_document() {
    each_transport(|corbie| {
        let path = corbie.file("crows.txt", CROWS);
        let id = corbie.start_task(&path);
        let told = corbie.wait_for_task(&id);
        assert_eq!(
            (&told["success"], &told["task_id"], &told["status"]),
            (&json!(true), &json!(id), &json!("completed"))
        );
        assert!(told["progress"].is_f64() && told["progress"] == 1.0, "z16: {told}");
        assert!(is_uuid(&told["result"]["document_id"]), "{told}");
        assert_eq!((&told["result"]["filename"], &told["result"]["chunks_created"]), (&json!("crows.txt"), &json!(1)));
        assert!(told["total_time_seconds"].is_f64(), "{told}");
        assert_eq!(corbie.task_status(&id), told, "k114: it can be asked about again");
    });
}

#[test]
fn k03_k113_a_failed_task_tells_why() {
    each_transport(|corbie| {
        let path = corbie.file("broken.docx", &sample_files::docx()[..300]);
        let id = corbie.start_task(&path);
        // `call` has checked that `isError` is true.
        let told = corbie.wait_for_task(&id);
        assert_eq!(
            (&told["success"], &told["task_id"], &told["status"], &told["error"]),
            (&json!(false), &json!(id), &json!("failed"), &json!("corrupted_file"))
        );
        assert!(told["elapsed_time_seconds"].is_f64(), "{told}");
        assert_eq!(corbie.task_status(&id), told, "k114: it can be asked about again");
    });
}

#[test]
fn k111_k114_k115_a_running_task_tells_how_far_it_is_and_never_goes_back() {
    let mut corbie = KnowledgeServer::with(&[("MAX_CONCURRENT_TASKS", "1")]);
    let path = corbie.file("long.txt", &long_text()[..200_000]);
    let other = corbie.file("other.txt", CROWS);
    let (id, waiting) = (corbie.start_task(&path), corbie.start_task(&other));
    let told = corbie.task_status(&waiting);
    assert_eq!((&told["success"], &told["status"]), (&json!(true), &json!("queued")), "{told}");
    let (mut last, mut steps) = (0.0, 0);
    wait_for("some steps", || {
        let told = corbie.task_status(&id);
        if told["status"] == "queued" {
            return None;
        }
        assert_eq!(told["status"], "running", "{told}");
        let progress = told["progress"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&progress) && progress >= last, "{last} before {told}");
        steps += usize::from(progress > last);
        last = progress;
        let count = |name: &str| told[name].as_u64().unwrap_or_else(|| panic!("no {name} in {told}"));
        assert!(count("completed_steps") <= count("total_steps"), "{told}");
        for seconds in ["elapsed_time_seconds", "estimated_remaining_seconds"] {
            assert!(told[seconds].as_f64().is_some_and(|seconds| seconds >= 0.0), "{told}");
        }
        assert!(told["current_step"].as_str().is_some_and(|step| !step.is_empty()), "{told}");
        (steps >= 3).then_some(())
    });
}
