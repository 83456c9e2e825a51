//! Parses a page of the documentation: blocks, comments before them, headings and links. Pure.

/// A fenced block.
#[derive(Debug, PartialEq)]
pub(super) struct Block {
    /// Line of its fence, from 1.
    pub(super) line: usize,
    pub(super) language: String,
    /// Without the indent of the fence.
    pub(super) text: String,
    /// The comments between the text before and the fence, such as `not run: needs a key`.
    pub(super) annotations: Vec<String>,
}

/// A link or an image.
#[derive(Debug, PartialEq)]
pub(super) struct Link {
    pub(super) line: usize,
    pub(super) target: String,
}

impl Block {
    /// Value of a mark: `why` for `not run: why`, empty for `fails`.
    pub(super) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.iter().find_map(|mark| match mark.strip_prefix(name)? {
            "" => Some(""),
            rest => rest.strip_prefix(':').map(str::trim),
        })
    }
}

pub(super) fn blocks(page: &str) -> Vec<Block> {
    let (mut found, mut marks, mut open) = (Vec::new(), Vec::new(), None::<(usize, Block)>);
    for (line, text) in (1..).zip(page.lines()) {
        let content = text.trim_start();
        if let Some((indent, mut block)) = open.take() {
            if content.starts_with("```") {
                found.push(block);
            } else {
                let indented = text.len() - content.len();
                block.text += &text[indent.min(indented)..];
                block.text.push('\n');
                open = Some((indent, block));
            }
        } else if let Some(language) = content.strip_prefix("```") {
            let block = Block {
                line,
                language: language.trim().into(),
                text: String::new(),
                annotations: std::mem::take(&mut marks),
            };
            open = Some((text.len() - content.len(), block));
        } else if let Some(mark) = content.strip_prefix("<!--").and_then(|rest| rest.trim_end().strip_suffix("-->")) {
            marks.push(mark.trim().to_owned());
        } else if !content.is_empty() {
            marks.clear();
        }
    }
    found
}

/// Heading anchors: lower case, dashes for spaces, a number appended to duplicates.
pub(super) fn anchors(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (_, line) in prose(page) {
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if !(1..=6).contains(&level) || !heading.starts_with(' ') {
            continue;
        }
        let kept = |letter: &char| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter);
        let name: String = heading.trim().to_lowercase().chars().filter(kept).collect();
        let name = name.replace(' ', "-");
        let before = found.iter().filter(|other| is_numbered(other, &name)).count();
        found.push(if before == 0 { name } else { format!("{name}-{before}") });
    }
    found
}

fn is_numbered(other: &str, name: &str) -> bool {
    let rest = other.strip_prefix(name).map(|rest| rest.strip_prefix('-').unwrap_or(rest));
    rest.is_some_and(|rest| rest.chars().all(|letter| letter.is_ascii_digit()))
}

pub(super) fn links(page: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, text) in prose(page) {
        let outside: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
        for (before, after) in [("](", ')'), ("src=\"", '"'), ("srcset=\"", '"'), ("href=\"", '"')] {
            let targets = outside.split(before).skip(1).filter_map(|rest| rest.split(after).next());
            found.extend(targets.map(|target| Link { line, target: target.to_owned() }));
        }
    }
    found
}

/// The lines outside of blocks, with line numbers.
pub(super) fn prose(page: &str) -> Vec<(usize, &str)> {
    let mut inside = false;
    let lines = (1..).zip(page.lines());
    let outside = lines.filter(|(_, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    outside.collect()
}

#[test]
fn a_block_has_its_language_its_text_and_the_marks_before_it() {
    let page = "Text.\n\n<!-- not run: needs a key -->\n<!-- fails -->\n\n```console\n$ a\n```\n\n1. One\n\n   ```yaml\n   a:\n     b: 1\n   ```\n";
    let blocks = blocks(page);
    assert_eq!((blocks[0].line, blocks[0].text.as_str()), (6, "$ a\n"));
    assert_eq!(
        (blocks[0].annotation("not run"), blocks[0].annotation("fails"), blocks[0].annotation("not")),
        (Some("needs a key"), Some(""), None)
    );
    assert_eq!((blocks[1].language.as_str(), blocks[1].text.as_str()), ("yaml", "a:\n  b: 1\n"));
    assert_eq!(blocks[1].annotations, [""; 0]);
}

#[test]
fn headings_and_links_are_those_outside_of_code() {
    let page = "# One `two`, three!\n\n[a](b.md#c) and `[no](no.md)`\n\n```sh\n# no\n[no](no.md)\n```\n## Same\n## Same\n<img src=\"x.png\">\n";
    assert_eq!(anchors(page), ["one-two-three", "same", "same-1"]);
    let targets: Vec<(usize, String)> = links(page).into_iter().map(|link| (link.line, link.target)).collect();
    assert_eq!(targets, [(3, "b.md#c".into()), (11, "x.png".into())]);
}
