//! Resource limits, and workers that must not outlive their parent.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::command::{ExtractFolder, page_texts};
use crate::pdf_builder::{Builder, text};

/// Some pages, and then many pages that each take the maximum time: nested forms.
fn slow_pdf(pages: usize) -> Vec<u8> {
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
    let files = ExtractFolder::with_files([("a.pdf", &slow_pdf(8) as &[u8])]).setting("timeout", "2s");
    let begun = Instant::now();
    let read = files.json("a.pdf");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!((&read["error"], &read["partial"]), (&"time_limit".into(), &Value::Bool(true)));
    let kept = page_texts(&read);
    assert!(kept.len() >= 6 && kept[..6] == ["page 1", "page 2", "page 3", "page 4", "page 5", "page 6"], "{kept:?}");
    let ended = files.run("a.pdf");
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("pages were read: document processing timed out after 2s"), "{}", ended.stderr);
}

#[test]
fn s12_a_worker_takes_no_more_of_a_processor_than_it_may() {
    let files = ExtractFolder::with_files([("a.pdf", &slow_pdf(1) as &[u8])])
        .setting("max_cpu_time", "1s")
        .setting("timeout", "60s");
    assert_eq!(files.json("a.pdf")["error"], "cpu_limit");
}

#[test]
fn s12_a_worker_takes_no_more_memory_than_it_may() {
    let long = "word ".repeat(9 << 20);
    let files = ExtractFolder::with_files([("a.txt", long.as_bytes())]).setting("memory", "64 MiB");
    assert_eq!(files.json("a.txt")["error"], "memory_limit");
}

#[cfg(target_os = "linux")]
#[test]
fn s12_a_worker_that_was_killed_fails_one_file_and_is_replaced() {
    let files = ExtractFolder::with_files([("a.pdf", &slow_pdf(1) as &[u8]), ("b.txt", b"words")]);
    let files = files.setting("timeout", "60s").setting("workers", "1");
    let corbie = files.command("--json a.pdf b.txt").spawn().unwrap();
    let worker = poll_until(|| child_processes(corbie.id()).pop()).expect("a worker");
    std::process::Command::new("kill").args(["-TERM", &worker.to_string()]).status().unwrap();
    let output = corbie.wait_with_output().unwrap();
    let lines: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!((&lines[0]["error"], page_texts(&lines[1])), (&"worker_crashed".into(), vec!["words"]));
}

/// A stopped process uses no CPU time, so only a wall-clock deadline detects it.
#[cfg(target_os = "linux")]
#[test]
fn s12_a_worker_that_is_stopped_is_found_by_its_deadline_and_replaced() {
    let files = ExtractFolder::with_files([("a.pdf", &slow_pdf(1) as &[u8]), ("b.txt", b"words")]);
    let files = files.setting("timeout", "5s").setting("max_cpu_time", "60s").setting("workers", "1");
    let corbie = files.command("--json a.pdf b.txt").spawn().unwrap();
    // Stopped before it has executed the program, the child would keep its parent in `vfork`.
    let is_worker = |process: &u32| {
        std::fs::read(format!("/proc/{process}/cmdline"))
            .is_ok_and(|arguments| arguments.split(|byte| *byte == 0).any(|argument| argument == b"worker"))
    };
    let worker = poll_until(|| child_processes(corbie.id()).into_iter().find(is_worker)).expect("a worker");
    std::process::Command::new("kill").args(["-STOP", &worker.to_string()]).status().unwrap();
    let output = corbie.wait_with_output().unwrap();
    let lines: Vec<Value> = output.stdout.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice).collect();
    assert_eq!((&lines[0]["error"], page_texts(&lines[1])), (&"time_limit".into(), vec!["words"]), "{lines:?}");
    assert!(!std::path::Path::new(&format!("/proc/{worker}/stat")).exists(), "nothing of it is left");
}

/// A page larger than a message is reported, and the pages before it are kept.
#[test]
fn s12_a_page_that_is_too_large_is_not_lost_silently() {
    let odd = format!("{}a", "\u{1}".repeat(99)).repeat(250_000);
    let file = format!("{}\u{c}{odd}\u{c}third page", "word ".repeat(2000));
    let files = ExtractFolder::with_files([("a.txt", file.as_bytes())]);
    let read = files.json("a.txt");
    assert_eq!((&read["error"], &read["partial"]), (&"limit_exceeded".into(), &Value::Bool(true)), "{read:.300}");
    assert_eq!(page_texts(&read).len(), 1);
}

#[test]
fn s12_a_worker_that_was_ended_is_replaced() {
    let files = ExtractFolder::with_files([("a.pdf", &slow_pdf(1) as &[u8]), ("b.txt", b"words")])
        .setting("timeout", "1s")
        .setting("workers", "1");
    let ended = files.run("a.pdf b.txt");
    assert!(ended.stdout.contains("words"), "{ended:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn s12_workers_are_confined_and_end_with_whoever_started_them() {
    let files = ExtractFolder::with_files([("a.pdf", &slow_pdf(1) as &[u8])]).setting("timeout", "60s");
    let mut corbie = files.command("a.pdf").stdin(Stdio::null()).spawn().unwrap();
    let worker = poll_until(|| child_processes(corbie.id()).pop()).expect("a worker");
    let confined = poll_until(|| {
        let status = std::fs::read_to_string(format!("/proc/{worker}/status")).ok()?;
        status.contains("Seccomp:\t2").then_some(status)
    });
    assert!(confined.expect("a filter").contains("NoNewPrivs:\t1"));
    let environment = std::fs::read_to_string(format!("/proc/{worker}/environ")).unwrap();
    assert!(!environment.contains("CORBIE_"), "{environment}");
    corbie.kill().unwrap();
    corbie.wait().unwrap();
    let gone = || (!std::path::Path::new(&format!("/proc/{worker}/stat")).exists()).then_some(());
    poll_until(gone).expect("the worker to be gone");
}

/// Polls for a few seconds.
fn poll_until<T>(mut what: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        if let Some(found) = what() {
            return Some(found);
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
    None
}

fn child_processes(of: u32) -> Vec<u32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<_>>()).collect()
}

/// Every filter recomputes a million pixels, with much noise and blur.
fn nested_filters() -> Vec<u8> {
    let filter = "<filter id='f' x='0' y='0' width='1' height='1'><feTurbulence baseFrequency='0.9' numOctaves='9' \
        result='t'/><feGaussianBlur stdDeviation='40'/><feComposite in2='t'/></filter>";
    let (open, close) = ("<g filter='url(#f)'>".repeat(100), "</g>".repeat(100));
    let drawing = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='1000' height='1000'>{filter}{open}<path d='M9 9h999v999z'/>{close}</svg>"
    );
    assert!(drawing.len() < 6_000, "{}", drawing.len());
    drawing.into()
}

#[test]
fn s12_a_drawing_of_nested_filters_does_not_hold_a_worker() {
    let files = ExtractFolder::with_files([("a.svg", &nested_filters() as &[u8]), ("b.txt", b"words")]);
    // With its filters it would take minutes.
    let files = files.setting("workers", "1").setting("max_cpu_time", "6s");
    let ended = files.run("--json a.svg b.txt");
    let lines: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[0].get("error"), page_texts(&lines[1])), (None, vec!["words"]), "{ended:?}");
    assert_eq!(lines[0]["warnings"], Value::Array(Vec::new()), "{ended:?}");
}

/// Nested patterns are expensive without any filter.
#[test]
fn s12_a_drawing_that_repeats_itself_is_refused_within_its_processor_time_and_the_next_file_is_read() {
    let mut drawing = "<svg xmlns='http://www.w3.org/2000/svg' width='2000' \
        height='2000'><defs><pattern id='p0' width='2' height='2' patternUnits='userSpaceOnUse'><path d='M0 0h1v1z'/></pattern>"
        .to_owned();
    for number in 1..=12 {
        let squares = format!("<rect width='1999' height='1999' fill='url(#p{})'/>", number - 1).repeat(8);
        drawing += &format!(
            "<pattern id='p{number}' width='1999' height='1999' patternUnits='userSpaceOnUse'>{squares}</pattern>"
        );
    }
    drawing += "</defs><rect width='2000' height='2000' fill='url(#p12)'/></svg>";
    let files = ExtractFolder::with_files([("a.svg", drawing.as_bytes()), ("b.txt", b"words")]);
    let files = files.setting("workers", "1").setting("max_cpu_time", "6s");
    let ended = files.run("--json a.svg b.txt");
    let lines: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["error"], page_texts(&lines[1])), (&"cpu_limit".into(), vec!["words"]), "{ended:?}");
    let told = "document processing exceeded 2 s of CPU time, the limit for files of this size and format";
    assert!(lines[0]["message"].as_str().unwrap().starts_with(told), "{}", lines[0]);
}

/// Child processes inherit ignored signals, so the worker does not react to its soft limit.
#[cfg(target_os = "linux")]
#[test]
fn s12_a_worker_that_ignores_sigxcpu_is_killed_by_the_hard_limit() {
    let files = ExtractFolder::with_files([("a.pdf", &slow_pdf(1) as &[u8])]);
    let mut shell = std::process::Command::new("/bin/sh");
    shell.args(["-c", "trap '' XCPU; exec \"$0\" extract --json --ocr=off a.pdf", env!("CARGO_BIN_EXE_corbie")]);
    shell.current_dir(files.folder()).env_clear();
    // Without a hard limit only the timeout would end it.
    let output =
        shell.envs([("CORBIE_DOCUMENTS__MAX_CPU_TIME", "1s"), ("CORBIE_DOCUMENTS__TIMEOUT", "10m")]).output().unwrap();
    let read: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(read["error"], "cpu_limit", "{read}");
}
