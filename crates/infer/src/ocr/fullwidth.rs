//! Replaces full-width punctuation by ASCII in Latin text.
//!
//! The recognizer was trained mostly on Chinese and sometimes returns a full-width comma or bracket between Latin
//! letters.

/// Replaces full-width signs if the text is in Latin script.
pub(crate) fn to_ascii_punctuation(text: String) -> String {
    let is_latin = text.chars().any(|letter| letter.is_alphabetic() && letter < '\u{250}');
    let is_chinese = text.chars().any(|letter| matches!(letter, '\u{3040}'..='\u{9fff}'));
    if !is_latin || is_chinese || !text.chars().any(is_wide) {
        return text;
    }
    let mut written = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if !is_wide(letter) {
            written.push(letter);
            continue;
        }
        let sign = match letter {
            '℃' => "°C",
            '℉' => "°F",
            '。' => ".",
            '、' => ",",
            '【' => "[",
            '】' => "]",
            '￥' => "¥",
            // Full-width forms are in ASCII order.
            letter => {
                let plain = u8::try_from(u32::from(letter).saturating_sub(0xfee0)).map_or(letter, char::from);
                written.push(plain);
                ""
            }
        };
        written.push_str(sign);
        // A full-width sign includes spacing; the ASCII sign needs a space. Numbers are written without.
        let ends_part = written.ends_with([',', ';', ':', '.', '!', '?', ')', ']']);
        if ends_part && letters.peek().is_some_and(|next| next.is_alphabetic()) {
            written.push(' ');
        } else if written.ends_with(['(', '[']) {
            let before = written[..written.len() - 1].chars().next_back();
            if before.is_some_and(char::is_alphabetic) {
                written.insert(written.len() - 1, ' ');
            }
        }
    }
    written
}

fn is_wide(letter: char) -> bool {
    matches!(letter, '℃' | '℉' | '。' | '、' | '【' | '】' | '￥' | '\u{ff01}'..='\u{ff5e}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin_lines_have_latin_signs() {
        for (read, written) in [
            ("32℉ or 0℃，as you like", "32°F or 0°C, as you like"),
            ("IBAN 0130 00，BIC，VAT 1，204", "IBAN 0130 00, BIC, VAT 1,204"),
            ("iron（mostly nails）and wine", "iron (mostly nails) and wine"),
            ("Really？ Yes！", "Really? Yes!"),
            ("plain, as it was (read)", "plain, as it was (read)"),
        ] {
            assert_eq!(to_ascii_punctuation(read.to_owned()), written);
        }
    }

    #[test]
    fn chinese_lines_keep_theirs() {
        for text in ["新鲜甘草，A4（大）。", "（1）", "「。", ""] {
            assert_eq!(to_ascii_punctuation(text.to_owned()), text);
        }
    }
}
