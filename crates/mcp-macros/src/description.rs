//! Extracts descriptions from doc comments.
//!
//! Source lines are wrapped for editors; a description has one line per paragraph. Markdown constructs that need their
//! own lines (lists, tables, quotes, headings, fenced code) keep them.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment among `attributes`; `None` if it is missing or blank.
///
/// `#[doc = include_str!(..)]` counts as missing, because the macro runs before the file can be read.
pub(crate) fn doc_text(attributes: &[Attribute]) -> Option<String> {
    let text = reflow(attributes.iter().filter_map(doc_value).collect::<Vec<_>>().join("\n").lines());
    (!text.is_empty()).then_some(text)
}

fn doc_value(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    }
}

fn reflow<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    let mut in_code = false;
    let mut after_blank = false;
    let mut keep_break = false;
    for line in lines {
        let fence = line.trim_start().starts_with("```");
        let line = if in_code || fence { line.strip_prefix(' ').unwrap_or(line).trim_end() } else { line.trim() };
        if line.is_empty() && !in_code {
            after_blank = true;
            continue;
        }
        if !text.is_empty() {
            text.push_str(match () {
                () if after_blank => "\n\n",
                () if in_code || fence || keep_break || starts_own_line(line) => "\n",
                () => " ",
            });
        }
        text.push_str(line);
        after_blank = false;
        keep_break = fence || line.starts_with(['#', '|']);
        in_code ^= fence;
    }
    text.truncate(text.trim_end().len());
    text
}

fn starts_own_line(line: &str) -> bool {
    let numbered = line.trim_start_matches(|digit: char| digit.is_ascii_digit());
    line.starts_with(['#', '|', '>'])
        || ["- ", "* ", "+ "].iter().any(|bullet| line.starts_with(bullet))
        || (numbered.len() < line.len() && numbered.starts_with(". "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], expected: &str) {
        assert_eq!(reflow(lines.iter().copied()), expected);
    }

    #[test]
    fn lines_of_a_paragraph_are_joined_and_paragraphs_kept() {
        check(
            &[" The weather of", " the coming days.", "", " Celsius.", ""],
            "The weather of the coming days.\n\nCelsius.",
        );
    }

    #[test]
    fn list_items_stay_on_their_own_lines() {
        check(
            &[" Kinds:", " - rain,", "   or drizzle", " - sun", " 1. one"],
            "Kinds:\n- rain, or drizzle\n- sun\n1. one",
        );
    }

    #[test]
    fn code_keeps_its_shape() {
        check(
            &[" Try:", " ```json", " {", "   \"city\": 1", "", " }", " ```", " Then look."],
            "Try:\n```json\n{\n  \"city\": 1\n\n}\n```\nThen look.",
        );
    }

    #[test]
    fn a_heading_does_not_swallow_the_text_below_it() {
        check(&[" # Units", " Celsius."], "# Units\nCelsius.");
    }

    #[test]
    fn an_empty_doc_comment_counts_as_none() {
        let item: syn::ItemFn = syn::parse_quote! {
            ///
            #[inline]
            fn forecast() {}
        };
        assert_eq!(doc_text(&item.attrs), None);
    }
}
