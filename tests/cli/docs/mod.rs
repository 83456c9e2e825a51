//! commands in the documentation work, and its links resolve.
//!
//! `reader.rs` runs the pages and defines the comments that control it. `tests/interop/client_snippets.py` runs the
//! snippets of other programs, `spec_examples.rs` the examples of the specifications.

mod command_syntax;
mod console_block;
mod page;
mod page_runner;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;

/// Documents outside of the book.
const NON_BOOK_PAGES: [&str; 4] = ["README.md", "AGENTS.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
const SUMMARY: &str = "docs/SUMMARY.md";
/// Number of threads that run pages.
const RUNNER_THREADS: usize = 3;
/// Maximum blocks that a test cannot run: they need a company's key, another machine or a third-party program. If there
/// are more, rewrite a page so that it can be tested.
const MAX_NOT_RUN: usize = 16;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages of the book, by their paths in the repository.
fn pages() -> Vec<String> {
    fn collect(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder of pages") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path.strip_prefix(root()).expect("inside").display().to_string());
            }
        }
    }
    let mut found = Vec::new();
    collect(&root().join("docs"), &mut found);
    found.sort();
    found
}

fn documents() -> Vec<String> {
    pages().into_iter().chain(NON_BOOK_PAGES.map(String::from)).collect()
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Target of a link: path in the repository, and heading.
fn link_target(document: &str, target: &str) -> (String, Option<String>) {
    let (file, heading) = match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading.to_owned())),
        None => (target, None),
    };
    if file.is_empty() {
        return (document.to_owned(), heading);
    }
    let mut path = PathBuf::from(document);
    path.pop();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    (path.display().to_string(), heading)
}

#[test]
fn a18_every_example_of_the_documents_works() {
    let queue = Mutex::new(documents());
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|readers| {
        for _ in 0..RUNNER_THREADS {
            readers.spawn(|| {
                loop {
                    let Some(name) = queue.lock().unwrap().pop() else { return };
                    let report = page_runner::run_page(root(), &name);
                    reports.lock().unwrap().push(report);
                }
            });
        }
    });
    let reports = reports.into_inner().unwrap();
    let sum = |count: fn(&page_runner::PageReport) -> usize| reports.iter().map(count).sum::<usize>();
    let (commands, not_run, settings) =
        (sum(|page| page.commands), sum(|page| page.not_run), sum(|page| page.settings));
    let problems: Vec<&str> = reports.iter().flat_map(|page| &page.problems).map(String::as_str).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    let told = format!("{commands} commands run, {settings} settings checked, {not_run} blocks not run");
    assert!(commands > 0 && settings > 0 && not_run <= MAX_NOT_RUN, "{told}");
}

#[test]
fn a18_every_command_that_is_mentioned_can_be_typed() {
    let mut problems = Vec::new();
    for document in documents() {
        let commands = command_syntax::commands(&read(&document));
        let wrong = commands
            .into_iter()
            .filter_map(|(line, command)| Some((line, command_syntax::syntax_error(&command)?, command)));
        problems.extend(wrong.map(|(line, mistake, command)| format!("{document}:{line}: `{command}`: {mistake}")));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a18_every_link_leads_somewhere() {
    let mut lost = Vec::new();
    for document in documents() {
        for link in page::links(&read(&document)) {
            if link.target.contains("://") || link.target.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = link_target(&document, &link.target);
            let there = root().join(&path).exists();
            let has_heading = match heading {
                Some(heading) if there && path.ends_with(".md") => page::anchors(&read(&path)).contains(&heading),
                _ => true,
            };
            if !there || !has_heading {
                lost.push(format!("{document}:{}: {}", link.line, link.target));
            }
        }
    }
    assert!(lost.is_empty(), "these lead nowhere:\n{}", lost.join("\n"));
}

#[test]
fn a18_the_book_has_every_page_once() {
    let links = page::links(&read(SUMMARY));
    let listed: Vec<String> = links.iter().map(|link| link_target(SUMMARY, &link.target).0).collect();
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "a page is listed twice: {listed:?}");
    let pages = pages();
    let missing: Vec<&String> = pages.iter().filter(|page| *page != SUMMARY && !once.contains(page)).collect();
    assert!(missing.is_empty(), "not in {SUMMARY}: {missing:?}");
}

/// A task that is easy for the author may be hard for the reader.
#[test]
fn no_page_says_that_something_is_simple_to_do() {
    for document in documents() {
        for (line, text) in page::prose(&read(&document)) {
            assert!(!text.to_lowercase().contains("simply"), "{document}:{line}: {text}");
        }
    }
}

#[test]
fn links_are_followed_from_where_they_stand() {
    assert_eq!(link_target("docs/a/b.md", "../c.md#d"), ("docs/c.md".into(), Some("d".into())));
    assert_eq!(link_target("docs/a.md", "#d"), ("docs/a.md".into(), Some("d".into())));
}
