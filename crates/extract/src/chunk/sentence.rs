//! Sentence boundary detection.
//!
//! Written for prose extracted from documents: a line break does not end a sentence, because PDF breaks lines anywhere,
//! but an empty line does. The Unicode sentence rules end a sentence at every line and after every `Dr.`; these rules
//! know common abbreviations in English and German. Ambiguous boundaries are not boundaries: joining two sentences does
//! no harm.

/// Sentence terminators that require whitespace after them.
const TERMINATORS: [char; 11] = ['.', '!', '?', '…', '؟', '۔', '։', '።', '။', '‽', '⸮'];

/// Sentence terminators that require no whitespace after them.
const WIDE_TERMINATORS: [char; 7] = ['。', '！', '？', '｡', '．', '।', '॥'];

/// Closing punctuation that belongs to the preceding sentence.
const CLOSERS: [char; 17] =
    ['"', '\'', ')', ']', '}', '”', '’', '»', '›', '“', '」', '』', '）', '】', '》', '〉', '］'];

/// Lowercase, without the last dot. Single letters and words with an inner dot need no entry.
const ABBREVIATIONS: [&str; 78] = [
    "abb", "abs", "abt", "al", "allg", "anm", "approx", "apr", "art", "aufl", "aug", "bd", "betr", "bsp", "bspw",
    "bzgl", "bzw", "ca", "cf", "chap", "co", "col", "corp", "dec", "dept", "dez", "dipl", "dr", "ed", "eds", "engl",
    "eq", "est", "evtl", "feb", "fig", "figs", "fr", "geb", "gen", "gest", "ggf", "gov", "hr", "hrn", "hrsg", "inc",
    "ing", "inkl", "jan", "jr", "kap", "ltd", "max", "min", "mio", "mr", "mrs", "ms", "mt", "nov", "nr", "okt", "pp",
    "prof", "rep", "sec", "sen", "sep", "sog", "sr", "st", "str", "tab", "tel", "vgl", "vol", "vs",
];

/// Maximum length of an abbreviation.
const MAX_ABBREVIATION_LEN: usize = 12;

/// Byte offsets of all sentence starts except the first.
pub fn sentence_starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut starts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let next = match bytes[at] {
            b'.' | b'!' | b'?' => after_stops(text, at),
            b'\n' => after_lines(text, at),
            byte if byte.is_ascii() => ScanResult::Inside(at + 1),
            _ => match text[at..].chars().next() {
                Some(stop) if TERMINATORS.contains(&stop) || WIDE_TERMINATORS.contains(&stop) => after_stops(text, at),
                other => ScanResult::Inside(at + other.map_or(1, char::len_utf8)),
            },
        };
        at = match next {
            ScanResult::Inside(at) => at,
            ScanResult::Start(at) => {
                if at < bytes.len() {
                    starts.push(at);
                }
                at
            }
        };
    }
    starts
}

/// Where the scan continues.
enum ScanResult {
    Inside(usize),
    /// A sentence starts there.
    Start(usize),
}

/// Expects a terminator at `at`.
fn after_stops(text: &str, at: usize) -> ScanResult {
    let rest = &text[at..];
    let after = rest.trim_start_matches(|c| TERMINATORS.contains(&c) || WIDE_TERMINATORS.contains(&c));
    let stops = &rest[..rest.len() - after.len()];
    let after = after.trim_start_matches(CLOSERS);
    let end = text.len() - after.len();
    let beyond = after.trim_start();
    let start = text.len() - beyond.len();
    if stops.contains(WIDE_TERMINATORS) {
        // `１．５` is a number.
        let is_number = stops == "．" && beyond.starts_with(char::is_numeric);
        return if is_number { ScanResult::Inside(end) } else { ScanResult::Start(start) };
    }
    let goes_on =
        end == start || beyond.starts_with(char::is_lowercase) || (stops == "." && is_abbreviated(&text[..at]));
    if goes_on { ScanResult::Inside(end) } else { ScanResult::Start(start) }
}

/// Expects a line break at `at`. A second line break, separated only by whitespace, ends the sentence.
fn after_lines(text: &str, at: usize) -> ScanResult {
    let rest = &text[at..];
    let beyond = rest.trim_start();
    let start = text.len() - beyond.len();
    let breaks = rest[..rest.len() - beyond.len()].bytes().filter(|byte| *byte == b'\n').count();
    if breaks > 1 { ScanResult::Start(start) } else { ScanResult::Inside(start) }
}

/// Whether the dot after this text is more likely part of its last word.
fn is_abbreviated(before: &str) -> bool {
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(MAX_ABBREVIATION_LEN + 1))..];
    let word = match near.rfind(|c: char| !c.is_alphanumeric() && c != '.') {
        Some(edge) => near[edge..].trim_start_matches(|c: char| !c.is_alphanumeric()),
        None if near.len() < before.len() => return false,
        None => near,
    };
    let mut letters = word.chars();
    match (letters.next(), letters.next()) {
        // `J. Smith`, `am 3. Oktober`, `1. Introduction`.
        (Some(_), None) => true,
        (Some(one), Some(other)) if one.is_ascii_digit() && other.is_ascii_digit() && word.len() == 2 => true,
        (Some(_), Some(_)) => is_dotted(word) || ABBREVIATIONS.contains(&word.to_lowercase().as_str()),
        (None, _) => false,
    }
}

/// `z.B`, `U.S`, `Ph.D`.
fn is_dotted(word: &str) -> bool {
    word.contains('.') && word.split('.').all(|part| part.len() <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, sentences: &[&str]) {
        let mut edges = sentence_starts(text);
        edges.insert(0, 0);
        edges.push(text.len());
        let found: Vec<&str> = edges.windows(2).map(|edge| text[edge[0]..edge[1]].trim()).collect();
        assert_eq!(found, sentences);
    }

    #[test]
    fn english() {
        check("It rains. It pours! Does it? Yes.", &["It rains.", "It pours!", "Does it?", "Yes."]);
        check(
            "Dr. J. Smith of the U.S. Navy, e.g. Mr. Brown. He left.",
            &["Dr. J. Smith of the U.S. Navy, e.g. Mr. Brown.", "He left."],
        );
        check(
            "It costs 3.50 at example.com. \"Really?\" she said. (So it was.) End",
            &["It costs 3.50 at example.com.", "\"Really?\" she said.", "(So it was.)", "End"],
        );
        check("Well ... maybe. See Fig. 3 for it.", &["Well ... maybe.", "See Fig. 3 for it."]);
    }

    #[test]
    fn german() {
        check(
            "Am 3. Oktober war z. B. Prof. Müller da, d.h. fast alle. Über ihn später.",
            &["Am 3. Oktober war z. B. Prof. Müller da, d.h. fast alle.", "Über ihn später."],
        );
        check("„Wirklich?“ Er schwieg bzw. Anna sprach.", &["„Wirklich?“", "Er schwieg bzw. Anna sprach."]);
    }

    #[test]
    fn without_spaces() {
        check(
            "今日は雨です。「本当ですか？」明日は晴れ！終わり",
            &["今日は雨です。", "「本当ですか？」", "明日は晴れ！", "終わり"],
        );
        check("约１．５米。完", &["约１．５米。", "完"]);
    }

    #[test]
    fn a_line_is_no_sentence_but_an_empty_one_parts_two() {
        check("One that\ngoes on\n \nTwo", &["One that\ngoes on", "Two"]);
    }

    #[test]
    fn nothing_is_empty() {
        check("...", &["..."]);
        check("", &[""]);
        check(" . A", &[".", "A"]);
    }
}
