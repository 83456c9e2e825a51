//! Invariants of taxonomies: a text is accepted or rejected with diagnostics, and an accepted one can be written in
//! every format.

use std::fmt::Write;
use std::path::Path;

use corbie::classify::Taxonomy;
use corbie::classify::taxonomy::{Category, scalar};
use serde_json::{Value, json};

/// The first byte selects the text format.
pub(super) fn check_invariants(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let file = ["taxonomy.yaml", "taxonomy.toml", "taxonomy.json"][usize::from(first % 3)];
    match Taxonomy::parse_for(text, Path::new(file)) {
        Ok(taxonomy) => check_accepted(&taxonomy),
        Err(error) => super::config::check_diagnostics(&error, bytes),
    }
}

fn check_accepted(taxonomy: &Taxonomy) {
    assert!(!taxonomy.categories.is_empty());
    assert!(taxonomy.remainder.is_none_or(|remainder| remainder < taxonomy.categories.len()));
    let _ = taxonomy.warnings();
    for (file, text) in [("again.yaml", yaml(taxonomy)), ("again.json", json(taxonomy))] {
        let again = Taxonomy::parse_for(&text, Path::new(file)).unwrap_or_else(|error| panic!("{error}\nin {text}"));
        assert_eq!(again.categories, taxonomy.categories, "{text}");
        assert_eq!(again.remainder, taxonomy.remainder, "{text}");
        // An equivalent file keeps all category indices.
        let kept = again.clone().with_stable_ids(taxonomy).expect("no more categories than before");
        assert_eq!(kept.categories, taxonomy.categories);
    }
}

/// In the format that commands write.
fn yaml(taxonomy: &Taxonomy) -> String {
    let mut text = String::new();
    if let Some(remainder) = taxonomy.remainder {
        let _ = writeln!(text, "remainder: {}", scalar(&taxonomy.categories[remainder].name));
    }
    text.push_str("categories:\n");
    for category in &taxonomy.categories {
        let Category { name, description, system_prompt, model, use_reasoning, .. } = category;
        let _ = writeln!(text, "  - name: {}", scalar(name));
        for (key, value) in [("description", description), ("system_prompt", system_prompt), ("model", model)] {
            let _ = writeln!(text, "    {key}: {}", scalar(value));
        }
        let _ = writeln!(text, "    use_reasoning: {use_reasoning}");
        let examples: Vec<String> = category.examples.iter().map(ToString::to_string).collect();
        let lists = [("patterns", &category.patterns), ("words", &category.words), ("certain", &category.certain)];
        for (key, items) in lists.into_iter().chain([("examples", &examples)]).filter(|(_, items)| !items.is_empty()) {
            let _ = writeln!(text, "    {key}:");
            for item in items {
                let _ = writeln!(text, "      - {}", scalar(item));
            }
        }
    }
    text
}

fn json(taxonomy: &Taxonomy) -> String {
    let category = |category: &Category| {
        json!({
            "name": category.name,
            "description": category.description,
            "system_prompt": category.system_prompt,
            "model": category.model,
            "use_reasoning": category.use_reasoning,
            "patterns": category.patterns,
            "words": category.words,
            "certain": category.certain,
            "examples": category.examples,
        })
    };
    let mut all = json!({ "categories": taxonomy.categories.iter().map(category).collect::<Vec<Value>>() });
    if let Some(remainder) = taxonomy.remainder {
        all["remainder"] = json!(taxonomy.categories[remainder].name);
    }
    all.to_string()
}
