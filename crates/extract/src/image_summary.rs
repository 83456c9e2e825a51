//! Synthetic text for images without recognizable text, so that search can find them by metadata.

use crate::{Format, Metadata};

/// Maximum characters of one metadata value; the description may have four times as many.
const MAX_VALUE_CHARS: usize = 250;
/// Maximum number of keywords to include.
const MAX_KEYWORDS: usize = 30;

/// Summarizes a file in one line: its name (also split into words), its format and size, when, where, with which device
/// and by whom it was created, and its title, description and copyright.
pub fn summarize(name: Option<&str>, format: Format, metadata: &Metadata) -> String {
    let mut sentences = Vec::new();
    if let Some(name) = name {
        let name = single_line(name.rsplit(['/', '\\']).next().unwrap_or(name), MAX_VALUE_CHARS);
        let stem = name.rsplit_once('.').map_or(name.as_str(), |(stem, _)| stem);
        sentences.extend(
            [split_words(stem)].into_iter().filter(|words| !words.is_empty()).map(|words| format!("{name}: {words}")),
        );
    }
    sentences.push(kind(format, metadata));
    if !metadata.keywords.is_empty() {
        let keywords = metadata.keywords.iter().take(MAX_KEYWORDS).map(|word| single_line(word, MAX_VALUE_CHARS / 4));
        sentences.push(format!("Keywords: {}", keywords.collect::<Vec<_>>().join(", ")));
    }
    let said = |text: &Option<String>, most: usize| text.as_ref().map(|text| single_line(text, most));
    let title = said(&metadata.title, MAX_VALUE_CHARS);
    let description = said(&metadata.subject, 4 * MAX_VALUE_CHARS).filter(|text| Some(text) != title.as_ref());
    let rights = said(&metadata.copyright, MAX_VALUE_CHARS).map(|text| format!("Copyright: {text}"));
    sentences.extend([title, description, rights].into_iter().flatten());
    let ended = sentences
        .iter()
        .map(|text| text.trim())
        .filter(|text| !text.is_empty())
        .map(|text| if text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") });
    ended.collect::<Vec<_>>().join(" ")
}

/// The format and size of the file, and how it was created.
fn kind(format: Format, metadata: &Metadata) -> String {
    let (kind, made) = match format {
        Format::Jpg | Format::Png => ("Picture", "taken"),
        Format::Svg => ("Drawing", "made"),
        _ => ("Document", "made"),
    };
    let mut text = format!("{kind}, {}", format.as_str().to_uppercase());
    if let (Some(width), Some(height)) = (metadata.width, metadata.height) {
        text += &format!(", {width} by {height} pixels");
    }
    let known = [("", &metadata.created), ("with ", &metadata.device), ("at ", &metadata.place)];
    let known = known.into_iter().filter_map(|(before, said)| Some((before, said.as_ref()?)));
    let known: Vec<String> =
        known.map(|(before, said)| format!("{before}{}", single_line(said, MAX_VALUE_CHARS))).collect();
    if !known.is_empty() {
        text += &format!(", {made} {}", known.join(" "));
    }
    if let Some(author) = &metadata.author {
        text += &format!(", by {}", single_line(author, MAX_VALUE_CHARS));
    }
    text
}

/// Collapses text to one line without control characters, truncated to `most` characters.
fn single_line(text: &str, most: usize) -> String {
    let text: String =
        text.chars().take(4 * most).map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().take(most).collect()
}

/// Splits a name into words: `harbour-at_dawn` and `HarbourAtDawn` both have three.
fn split_words(name: &str) -> String {
    let mut words = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let begins_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
        let after_small = before.is_some_and(|before| before.is_lowercase() || before.is_numeric());
        let after_large = before.is_some_and(char::is_uppercase);
        // `aPart` splits before the `P`, `PDFPart` before its last capital.
        if letter.is_uppercase() && (after_small || (after_large && begins_small)) {
            words.push(' ');
        }
        words.push(if letter.is_alphanumeric() { letter } else { ' ' });
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn a_photograph_is_told_by_all_that_is_known_about_it() {
        let metadata = Metadata {
            title: some("First boats"),
            author: some("Ann Lee"),
            subject: some("They leave before the sun is up!"),
            created: some("2024-05-06T07:08:09"),
            width: Some(4000),
            height: Some(3000),
            device: some("Canon EOS R5"),
            place: some("48.8584, 2.2945"),
            keywords: vec!["sea".to_owned(), "boats".to_owned()],
            copyright: some("2024 Ann Lee"),
            ..Metadata::default()
        };
        assert_eq!(
            summarize(Some("shore/harbour-at-dawn.jpg"), Format::Jpg, &metadata),
            "harbour-at-dawn.jpg: harbour at dawn. Picture, JPG, 4000 by 3000 pixels, taken 2024-05-06T07:08:09 with Canon EOS \
             R5 at 48.8584, 2.2945, by Ann Lee. Keywords: sea, boats. First boats. They leave before the sun is up! \
             Copyright: 2024 Ann Lee."
        );
    }

    #[test]
    fn nothing_is_told_that_is_not_known() {
        assert_eq!(summarize(None, Format::Png, &Metadata::default()), "Picture, PNG.");
        let title = || some("A plan");
        let metadata =
            Metadata { title: title(), subject: title(), width: Some(9), height: Some(8), ..Metadata::default() };
        assert_eq!(
            summarize(Some("plan.svg"), Format::Svg, &metadata),
            "plan.svg: plan. Drawing, SVG, 9 by 8 pixels. A plan."
        );
    }

    #[test]
    fn names_are_parted_into_words() {
        let check = |name: &str, expected: &str| assert_eq!(split_words(name), expected);
        check("harbour-at_dawn", "harbour at dawn");
        check("HarbourAtDawn", "Harbour At Dawn");
        check("PDFPartTwo", "PDF Part Two");
        check("IMG_20240506.final (2)", "IMG 20240506 final 2");
        check("GrößeÄndern", "Größe Ändern");
        check("b2bMarket", "b2b Market");
        check("---", "");
    }

    #[test]
    fn what_a_file_says_stays_one_line_of_bounded_length() {
        let long = some(&"word\n\u{1b}[2J\0".repeat(10_000));
        let keywords = vec![long.clone().unwrap_or_default(); 1000];
        let metadata = Metadata {
            title: long.clone(),
            subject: long.clone(),
            author: long.clone(),
            created: long.clone(),
            device: long.clone(),
            place: long.clone(),
            copyright: long.clone(),
            keywords,
            ..Metadata::default()
        };
        let told = summarize(long.as_deref(), Format::Jpg, &metadata);
        assert!(!told.chars().any(char::is_control));
        assert!(told.chars().count() < 5_000, "{}", told.chars().count());
    }
}
