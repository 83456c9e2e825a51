//! Parses `console` blocks: commands and their output. Pure.

use regex::Regex;

/// One `$ command` and the lines below it.
#[derive(Debug, PartialEq)]
pub(super) struct ConsoleStep {
    pub(super) command: String,
    /// The output; `None` if the page does not show it.
    pub(super) expected_output: Option<String>,
}

pub(super) fn steps(block: &str) -> Vec<ConsoleStep> {
    let mut steps: Vec<ConsoleStep> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(ConsoleStep { command: command.to_owned(), expected_output: None }),
            (None, Some(ConsoleStep { command, expected_output: None })) if command.ends_with('\\') => {
                command.push('\n');
                command.push_str(line);
            }
            (None, Some(step)) => {
                let printed = step.expected_output.get_or_insert_with(String::new);
                printed.push_str(line);
                printed.push('\n');
            }
            (None, None) => {}
        }
    }
    steps
}

/// Whether the actual output matches the documented one. `…` matches anything. With `numbers_vary`, a number or id
/// prefix matches any other.
pub(super) fn output_matches(documented: &str, printed: &str, numbers_vary: bool) -> bool {
    pattern(documented, numbers_vary).is_match(&without_times(printed))
}

fn pattern(documented: &str, numbers_vary: bool) -> Regex {
    let documented = documented.trim_end();
    let mut pattern = regex::escape(documented);
    if numbers_vary {
        // Columns are as wide as their longest number.
        pattern = replace_regex(r"\b[0-9a-f]{8}\b|[0-9]+", &pattern, "[0-9a-f]+");
        pattern = replace_regex(" +", &pattern, " +");
    }
    // Model confidence differs slightly between processors.
    pattern = replace_regex(r"[0-9]+(\\\.[0-9]+)? %", &pattern, r"[0-9.]+ %");
    // On its own line, `…` matches any number of lines, including none.
    pattern = replace_regex("\n…\n", &pattern, "\n(?:(?s:.*?)\n)?");
    pattern = pattern.replace('…', "(?s:.*?)");
    Regex::new(&format!(r"\A{pattern}\s*\z")).expect("an escaped text is a pattern")
}

fn replace_regex(pattern: &str, text: &str, by: &str) -> String {
    Regex::new(pattern).expect("a good pattern").replace_all(text, regex::NoExpand(by)).into_owned()
}

/// Removes timestamps and trailing spaces, as the pages show log lines without time.
pub(super) fn without_times(printed: &str) -> String {
    let time = Regex::new(r"(?m)^[0-9-]+T[0-9:.]+Z\s+(ERROR|WARN|INFO|DEBUG)").expect("a good pattern");
    let printed = time.replace_all(printed, "$1");
    let ends: Vec<&str> = printed.lines().map(str::trim_end).collect();
    ends.join("\n")
}

#[test]
fn a_step_is_a_command_and_what_it_prints() {
    let steps = steps("$ a b\n$ c \\\n  d\nout\n\nmore\n");
    assert_eq!(steps[0], ConsoleStep { command: "a b".into(), expected_output: None });
    assert_eq!(steps[1], ConsoleStep { command: "c \\\n  d".into(), expected_output: Some("out\n\nmore\n".into()) });
}

#[test]
fn output_fits_as_the_page_says() {
    assert!(output_matches("a (b)\n", "a (b)\n\n", false));
    assert!(!output_matches("a\n", "a\nb\n", false));
    assert!(!output_matches("a 1\n", "a 2\n", false));
    assert!(output_matches("99.5 % sure\n", "98 % sure\n", false));
    assert!(output_matches("took 47 ms  x\n", "took 3 ms   x\n", true));
    assert!(output_matches("x [dd64b126]\n", "x [07ab51cf]\n", true));
    assert!(!output_matches("took 47 ms\n", "took 47 s\n", true));
    assert!(output_matches("a\n…\nz\n", "a\nz\n", false) && output_matches("a\n…\nz\n", "a\nb\nc\nz\n", false));
    assert!(output_matches("id …, x\n…\n", "id 7f, x\ny\n", false));
    assert!(output_matches("INFO listening\n", "2026-11-16T16:18:18.123456Z  INFO listening\n", false));
}
