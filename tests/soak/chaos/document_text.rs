//! Texts of the test documents. Every paragraph contains its version, so that a mixture of two versions shows.

/// A word unique to one version of one document.
pub(crate) fn unique_word(client: usize, document: usize, version: u64) -> String {
    // Letters only, and no natural-language word, so that full-text search either finds it or does not.
    let letters = |mut number: u64| -> String {
        let mut word = String::new();
        for _ in 0..6 {
            word.push(char::from(b'a' + (number % 20) as u8));
            number /= 20;
        }
        word
    };
    format!("qz{}{}{}", letters(client as u64), letters(document as u64), letters(version))
}

pub(super) const SENTENCES: [&str; 6] = [
    "A kestrel hovered over the harbour while ships waited for the tide.",
    "The lanterns were lit before the ropes had been coiled.",
    "Nobody on the pier remembered who had written the ledger.",
    "Grain, salt and timber were weighed in the morning.",
    "The pilot came back with the second boat and two crates of oranges.",
    "Fog lay on the water until the bell of the customs house rang.",
];

/// Several paragraphs; their number depends on the version.
pub(crate) fn document_text(client: usize, document: usize, version: u64) -> String {
    let word = unique_word(client, document, version);
    let first = version as usize + document;
    let paragraph = |number: usize| {
        let sentence = |step: usize| SENTENCES[(first + number * 2 + step) % SENTENCES.len()];
        format!("{word} {number}: {} {} That was entry {version}.{number}.", sentence(0), sentence(1))
    };
    let paragraphs: Vec<String> = (0..2 + first % 7).map(paragraph).collect();
    paragraphs.join("\n\n") + "\n"
}

/// Whether a passage belongs to a single version.
pub(crate) fn is_of_one_version(found: &str, word: &str) -> bool {
    found.split_whitespace().filter(|each| each.starts_with("qz")).all(|each| each == word)
}
