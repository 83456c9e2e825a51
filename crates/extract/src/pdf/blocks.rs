//! Groups lines into paragraphs, headings and list items.

use super::lines::TextLine;

/// Lines that form one block.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LineGroup {
    pub(super) text: String,
    pub(super) lines: usize,
    pub(super) x0: f32,
    pub(super) x1: f32,
    pub(super) top: f32,
    pub(super) bottom: f32,
    pub(super) size: f32,
    pub(super) bold: bool,
    pub(super) mono: bool,
    pub(super) artifact: bool,
    pub(super) list_item: bool,
    /// Whether it runs from left to right on the page, so that its coordinates are page coordinates.
    pub(super) upright: bool,
}

/// Number of lines before and after a line for measuring the right margin.
const CONTEXT_LINES: usize = 40;

/// Groups the lines of a region, in order.
pub(super) fn groups(lines: &[TextLine]) -> Vec<LineGroup> {
    let mut groups: Vec<LineGroup> = Vec::new();
    let leading = usual_leading(lines);
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.text.is_empty()) {
        let before = index.checked_sub(1).map(|before| &lines[before]);
        let around = &lines[index.saturating_sub(CONTEXT_LINES)..lines.len().min(index + CONTEXT_LINES)];
        let goes_on = before
            .is_some_and(|before| continues_paragraph(before, line, leading) && !ends_early(before, line, around));
        match groups.last_mut() {
            Some(group) if goes_on => {
                append(group, &line.text);
                group.lines += 1;
                group.x0 = group.x0.min(line.x0);
                group.x1 = group.x1.max(line.x1);
                group.bottom = line.y;
            }
            _ => groups.push(LineGroup {
                text: line.text.clone(),
                lines: 1,
                x0: line.x0,
                x1: line.x1,
                top: line.y - line.size,
                bottom: line.y,
                size: line.size,
                bold: line.bold,
                mono: line.mono,
                artifact: line.artifact,
                list_item: starts_list_item(&line.text),
                upright: true,
            }),
        }
    }
    groups
}

/// Appends a group from another region if it continues a word, or a sentence at the top of the next column. Otherwise
/// returns it.
pub(super) fn join(group: &mut LineGroup, next: LineGroup) -> Option<LineGroup> {
    let alike = group.size.min(next.size) >= 0.85 * group.size.max(next.size) && group.artifact == next.artifact;
    let broken = is_broken(&group.text, &next.text) || continues_in_next_column(group, &next);
    if !alike || group.mono || !broken {
        return Some(next);
    }
    append(group, &next.text);
    group.lines += next.lines;
    None
}

/// Whether both are prose, the next is higher and further right, and the sentence does not end between them.
fn continues_in_next_column(group: &LineGroup, next: &LineGroup) -> bool {
    let is_prose = |group: &LineGroup| group.lines > 1 && group.upright && !group.mono && !group.artifact;
    is_prose(group)
        && is_prose(next)
        && group.bold == next.bold
        && next.top < group.bottom - group.size
        && next.x0 > group.x0 + 8.0 * group.size
        && group.text.ends_with(|letter: char| letter.is_alphabetic() || letter == ',')
        && next.text.starts_with(char::is_lowercase)
}

/// The most frequent line distance.
fn usual_leading(lines: &[TextLine]) -> f32 {
    let mut leadings: Vec<f32> =
        lines.windows(2).map(|pair| pair[1].y - pair[0].y).filter(|leading| *leading > 1.0).collect();
    if leadings.is_empty() {
        return f32::INFINITY;
    }
    leadings.sort_by(f32::total_cmp);
    leadings[(leadings.len() - 1) / 3]
}

fn continues_paragraph(before: &TextLine, line: &TextLine, leading: f32) -> bool {
    let step = line.y - before.y;
    let size = before.size.max(line.size);
    let alike =
        before.size.min(line.size) >= 0.85 * size && before.bold == line.bold && before.artifact == line.artifact;
    // Lines of code stay in one block; the first line of a paragraph is often indented.
    let indented = !line.mono && line.x0 - before.x0 > size && line.x0 - before.x0 < 6.0 * size;
    // With hanging indents, as in bibliographies, all lines except the first are indented; such a line continues a
    // sentence.
    let indented = indented && !line.text.starts_with(char::is_lowercase);
    alike
        && step > 0.0
        && step <= (1.25 * leading).min(2.2 * size)
        && !starts_list_item(&line.text)
        && !(indented && before.x0 <= line.x0 && !starts_list_item(&before.text))
        && before.mono == line.mono
}

/// Whether a line ends although the first word of the next would have fit: the next line is a new paragraph. False if
/// the sentence continues, because then the early break is intentional.
fn ends_early(before: &TextLine, line: &TextLine, around: &[TextLine]) -> bool {
    let size = before.size;
    let alike = around.iter().filter(|other| (other.x0 - before.x0).abs() < 2.0 * size && other.size < 1.2 * size);
    let right = alike.map(|other| other.x1).fold(before.x1, f32::max);
    let letters = line.text.chars().count().max(1) as f32;
    let first = line.text.split(' ').next().map_or(0, |word| word.chars().count()) as f32;
    let word = (line.x1 - line.x0) * first / letters;
    let begins_alike = (line.x0 - before.x0).abs() < size;
    let goes_on = line.text.starts_with(char::is_lowercase) || before.text.ends_with(['-', ',']);
    !line.mono && begins_alike && !goes_on && right - before.x1 > word + 1.5 * size
}

/// Appends a line and joins a hyphenated word.
fn append(group: &mut LineGroup, line: &str) {
    if group.mono {
        group.text.push('\n');
        group.text.push_str(line);
        return;
    }
    let text = &mut group.text;
    if is_broken(text, line) {
        text.pop();
    } else if !joins_without_space(text, line) {
        text.push(' ');
    }
    text.push_str(line);
}

/// Whether a word is hyphenated at the end of a text and continues in the next.
fn is_broken(text: &str, next: &str) -> bool {
    let head = text.strip_suffix(['-', '\u{ad}', '\u{2010}']);
    head.is_some_and(|head| head.ends_with(char::is_alphabetic)) && next.starts_with(char::is_lowercase)
}

/// Chinese and Japanese have no space at a line break.
fn joins_without_space(before: &str, after: &str) -> bool {
    let ideographic =
        |letter: char| matches!(letter, '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}');
    before.chars().next_back().is_some_and(ideographic) && after.chars().next().is_some_and(ideographic)
}

/// Whether a line starts with a bullet or a list number.
pub(super) fn starts_list_item(text: &str) -> bool {
    let mut words = text.split(' ');
    let (Some(first), Some(_)) = (words.next(), words.next()) else { return false };
    let mut letters = first.chars();
    match (letters.next(), letters.next()) {
        (Some('•' | '◦' | '▪' | '■' | '●' | '○' | '‣' | '⁃' | '–' | '-' | '*' | '·' | '➢' | '✓' | '❖' | '□'), None) => {
            true
        }
        _ => {
            let counter = first.strip_suffix(['.', ')']).map(|counter| counter.trim_start_matches('('));
            counter.is_some_and(|counter| {
                let digits = counter.len() <= 2 && counter.bytes().all(|byte| byte.is_ascii_digit());
                let letter = counter.len() == 1 && counter.bytes().all(|byte| byte.is_ascii_lowercase());
                !counter.is_empty() && (digits || letter)
            })
        }
    }
}
