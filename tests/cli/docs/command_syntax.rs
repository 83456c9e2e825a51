//! Commands that pages mention without output: they must parse.

use clap::CommandFactory;
use clap::error::ErrorKind;
use corbie::cli::Cli;

use super::page::{blocks, prose};

/// Every `corbie` command in the prose and `sh` blocks of a page, with its line.
pub(super) fn commands(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in prose(page) {
        let spans = text.split('`').skip(1).step_by(2);
        found.extend(spans.filter(|span| span.starts_with("corbie ")).map(|span| (line, span.to_owned())));
    }
    for block in blocks(page).into_iter().filter(|block| block.language == "sh") {
        let lines = block.text.lines().filter(|line| line.starts_with("corbie "));
        found.extend(lines.map(|line| (block.line, line.to_owned())));
    }
    found
}

/// The error if the command or an option does not exist. Values are placeholders and not checked.
pub(super) fn syntax_error(command: &str) -> Option<String> {
    let words: Vec<String> = shell_words(command).into_iter().filter(|word| word != "…").collect();
    let error = Cli::command().try_get_matches_from(words).err()?;
    let is_unknown = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
    is_unknown.then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

/// Splits one command as a shell does: up to a comment, a pipe or the next command.
fn shell_words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match (letter, quote) {
            (letter, Some(mark)) if letter == mark => quote = None,
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_with(String::new);
            }
            ('|' | '&' | ';' | '>' | '#', None) if word.is_none() => break,
            (' ', None) => words.extend(word.take()),
            (letter, _) => word.get_or_insert_with(String::new).push(letter),
        }
    }
    words.extend(word);
    words
}

#[test]
fn a_command_that_is_not_there_is_found_out() {
    assert_eq!(shell_words("corbie add 'a b' \"c\"d  # why | x"), ["corbie", "add", "a b", "cd"]);
    let page = "Say `corbie search X` or `corbie.yaml`.\n\n```sh\ncorbie add a --tga b | jq .\nls\n```\n";
    assert_eq!(commands(page), [(1, "corbie search X".into()), (3, "corbie add a --tga b | jq .".into())]);
    assert_eq!(syntax_error("corbie search X --top 3"), None);
    assert!(syntax_error("corbie add a --tga b").is_some_and(|told| told.contains("--tga")));
    assert!(syntax_error("corbie serach").is_some());
}
