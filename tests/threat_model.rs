#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
//! Keeps `docs/security.md` accurate: every test it names exists, and every mitigation names one.

use std::fs;
use std::path::Path;

/// The last column of tables in which each row is a mitigation.
const PROOF_COLUMN: &str = "proved by";

/// Problems of a page, one line each. `read` returns the text of a file of the project, if it exists.
fn problems(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let (mut problems, mut rows, mut proves, mut in_table) = (Vec::new(), 0, false, false);
    for (number, line) in (1..).zip(page.lines()) {
        let named = cited_tests(line);
        for (path, test) in &named {
            match read(path) {
                None => problems.push(format!("line {number}: there is no file {path}")),
                Some(text) if !has_test(&text, test) => {
                    problems.push(format!("line {number}: {path} has no test {test}"))
                }
                Some(_) => {}
            }
        }
        let is_row = line.starts_with('|');
        if is_row && !in_table {
            proves = line.trim_end_matches('|').rsplit('|').next().is_some_and(|last| last.trim() == PROOF_COLUMN);
        } else if is_row && proves && !line.starts_with("|---") {
            rows += 1;
            if named.is_empty() {
                problems.push(format!("line {number}: nothing proves it: {line}"));
            }
        }
        in_table = is_row;
    }
    if rows == 0 {
        problems.push(format!("no table has mitigations: none ends with a column `{PROOF_COLUMN}`"));
    }
    problems
}

/// The tests that a line names, as `path/of/file.rs::name_of_test` in backticks.
fn cited_tests(line: &str) -> Vec<(&str, &str)> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter_map(|quoted| quoted.split_once("::")).filter(|(path, _)| path.ends_with(".rs")).collect()
}

/// Whether a text contains a test of this name: a function with a test attribute, or an entry of a list from which a
/// macro generates tests.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begins = |line: &str, before: &str, after: &str| {
        line.strip_prefix(before).and_then(|line| line.strip_prefix(name)).is_some_and(|rest| rest.starts_with(after))
    };
    lines.iter().enumerate().any(|(place, line)| {
        let is_function = begins(line, "fn ", "(") || begins(line, "async fn ", "(");
        let mut marks = lines[..place].iter().rev().take_while(|line| line.starts_with("#["));
        (is_function && marks.any(|mark| mark.starts_with("#[test]") || mark.starts_with("#[tokio::test")))
            || begins(line, "", " = \"")
    })
}

#[test]
fn a18_every_mitigation_of_the_threat_model_has_a_test_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let problems = problems(&page, |path| fs::read_to_string(root.join(path)).ok());
    assert!(problems.is_empty(), "docs/security.md:\n{}", problems.join("\n"));
}

#[test]
fn a_page_that_promises_too_much_is_found_out() {
    let file = "#[test]\n#[cfg(unix)]\nfn real() {}\n\nfn helper() {}\n\ncorpus! {\n    listed = \"a.txt\",\n}\n";
    let read = |path: &str| (path == "tests/a.rs").then(|| file.to_owned());
    let found = |rows: &str| problems(&format!("# Page\n\n| threat | proved by |\n|---|---|\n{rows}\n"), read);
    assert_eq!(found("| a | `tests/a.rs::real`, `tests/a.rs::listed` |"), [""; 0]);
    assert_eq!(found("| a | `tests/a.rs::rea` |"), ["line 5: tests/a.rs has no test rea"]);
    assert_eq!(found("| a | `tests/a.rs::helper` |"), ["line 5: tests/a.rs has no test helper"]);
    assert_eq!(found("| a | `tests/b.rs::real` |"), ["line 5: there is no file tests/b.rs"]);
    assert_eq!(found("| a | we are careful |"), ["line 5: nothing proves it: | a | we are careful |"]);
    assert_eq!(found("\nSee `tests/a.rs::gone`.").len(), 2, "names count anywhere, and a table without rows is none");
    assert_eq!(problems("| a | b |\n|---|---|\n| c | d |", read).len(), 1, "other tables prove nothing");
}
