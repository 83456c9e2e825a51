//! Limits that a file cannot pass, and workers that do not outlive anybody.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{Files, texts};
use crate::pdf_builder::{Builder, text};

/// Some pages, and then many that each take as long as a page may: forms that show forms that show forms.
fn endless(pages: usize) -> Vec<u8> {
    let mut builder = Builder::new();
    for page in 1..=pages {
        builder.page(&text("F1", 12, 72, 700, &format!("page {page}")));
    }
    let mut inner = builder.stream("/Type /XObject /Subtype /Form /BBox [0 0 600 800]", b"q Q");
    for _ in 0..9 {
        let entries =
            format!("/Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources << /XObject << /X {inner} 0 R >> >>");
        inner = builder.stream(&entries, "/X Do ".repeat(30).as_bytes());
    }
    for _ in 0..500 {
        builder.page_with(b"/X Do", &format!("/Resources << /XObject << /X {inner} 0 R >> >>"));
    }
    builder.build()
}

#[test]
fn s12_a_worker_does_not_outlive_its_deadline_and_finished_pages_are_kept() {
    let files = Files::of([("a.pdf", &endless(8) as &[u8])]).with("timeout", "2s");
    let begun = Instant::now();
    let read = files.json("a.pdf");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!((&read["error"], &read["partial"]), (&"time_limit".into(), &Value::Bool(true)));
    let kept = texts(&read);
    assert!(kept.len() >= 6 && kept[..6] == ["page 1", "page 2", "page 3", "page 4", "page 5", "page 6"], "{kept:?}");
    let ended = files.run("a.pdf");
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("pages were read, but not all: reading took longer than 2s"), "{}", ended.err);
}

#[test]
fn s12_a_worker_takes_no_more_of_a_processor_than_it_may() {
    let files = Files::of([("a.pdf", &endless(1) as &[u8])]).with("cpu", "1s").with("timeout", "60s");
    assert_eq!(files.json("a.pdf")["error"], "processor_limit");
}

#[test]
fn s12_a_worker_takes_no_more_memory_than_it_may() {
    let long = "word ".repeat(9 << 20);
    let files = Files::of([("a.txt", long.as_bytes())]).with("memory", "64 MiB");
    assert_eq!(files.json("a.txt")["error"], "memory_limit");
}

#[cfg(target_os = "linux")]
#[test]
fn s12_a_worker_that_was_killed_fails_one_file_and_is_replaced() {
    let files = Files::of([("a.pdf", &endless(1) as &[u8]), ("b.txt", b"words")]);
    let files = files.with("timeout", "60s").with("workers", "1");
    let corbie = files.command("--json a.pdf b.txt").spawn().unwrap();
    let worker = waited(|| children(corbie.id()).pop()).expect("a worker");
    std::process::Command::new("kill").args(["-TERM", &worker.to_string()]).status().unwrap();
    let output = corbie.wait_with_output().unwrap();
    let lines: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!((&lines[0]["error"], texts(&lines[1])), (&"worker_crashed".into(), vec!["words"]));
}

/// One that is stopped takes no time of a processor, so only the clock can tell.
#[cfg(target_os = "linux")]
#[test]
fn s12_a_worker_that_is_stopped_is_found_by_its_deadline_and_replaced() {
    let files = Files::of([("a.pdf", &endless(1) as &[u8]), ("b.txt", b"words")]);
    let files = files.with("timeout", "5s").with("cpu", "60s").with("workers", "1");
    let corbie = files.command("--json a.pdf b.txt").spawn().unwrap();
    let worker = waited(|| children(corbie.id()).pop()).expect("a worker");
    std::process::Command::new("kill").args(["-STOP", &worker.to_string()]).status().unwrap();
    let output = corbie.wait_with_output().unwrap();
    let lines: Vec<Value> = output.stdout.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice).collect();
    assert_eq!((&lines[0]["error"], texts(&lines[1])), (&"time_limit".into(), vec!["words"]), "{lines:?}");
    assert!(!std::path::Path::new(&format!("/proc/{worker}/stat")).exists(), "nothing of it is left");
}

/// A page that is larger than what can be said about it is told, and the pages before it are kept.
#[test]
fn s12_a_page_that_is_too_large_is_not_lost_silently() {
    let odd = format!("{}a", "\u{1}".repeat(99)).repeat(250_000);
    let file = format!("{}\u{c}{odd}\u{c}third page", "word ".repeat(2000));
    let files = Files::of([("a.txt", file.as_bytes())]);
    let read = files.json("a.txt");
    assert_eq!((&read["error"], &read["partial"]), (&"limit_exceeded".into(), &Value::Bool(true)), "{read:.300}");
    assert_eq!(texts(&read).len(), 1);
}

#[test]
fn s12_a_worker_that_was_ended_is_replaced() {
    let files =
        Files::of([("a.pdf", &endless(1) as &[u8]), ("b.txt", b"words")]).with("timeout", "1s").with("workers", "1");
    let ended = files.run("a.pdf b.txt");
    assert!(ended.out.contains("words"), "{ended:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn s12_workers_are_confined_and_end_with_whoever_started_them() {
    let files = Files::of([("a.pdf", &endless(1) as &[u8])]).with("timeout", "60s");
    let mut corbie = files.command("a.pdf").stdin(Stdio::null()).spawn().unwrap();
    let worker = waited(|| children(corbie.id()).pop()).expect("a worker");
    let confined = waited(|| {
        let status = std::fs::read_to_string(format!("/proc/{worker}/status")).ok()?;
        status.contains("Seccomp:\t2").then_some(status)
    });
    assert!(confined.expect("a filter").contains("NoNewPrivs:\t1"));
    let environment = std::fs::read_to_string(format!("/proc/{worker}/environ")).unwrap();
    assert!(!environment.contains("CORBIE_"), "{environment}");
    corbie.kill().unwrap();
    corbie.wait().unwrap();
    let gone = || (!std::path::Path::new(&format!("/proc/{worker}/stat")).exists()).then_some(());
    waited(gone).expect("the worker to be gone");
}

/// What comes to be within a few seconds.
fn waited<T>(mut what: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        if let Some(found) = what() {
            return Some(found);
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    None
}

fn children(of: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}
