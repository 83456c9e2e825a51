//! Formats the grounding result of a prompt and its effect on routing.

use crate::route::tools::DocumentsOutput;

/// A label and its text.
pub(super) type LabelledLine = (&'static str, String);

/// Why the documents were not searched although grounding is enabled.
#[derive(Debug, Clone, Copy)]
pub(super) enum NotSearched {
    /// The user named a model, which takes precedence.
    ModelNamed,
    /// Prompts of this category are pinned to the local model.
    PinnedLocal,
    /// The search failed or timed out.
    Failed,
}

/// Lines for a grounding result. `asked` is the target that gets the passages.
pub(super) fn lines(documents: &DocumentsOutput, asked: Option<&str>) -> Vec<LabelledLine> {
    let DocumentsOutput { relevance, passages, verdict, sources, model_without_documents } = documents;
    let best = format!("the best passage is {:.0} % relevant", 100.0 * relevance);
    let known = match *verdict {
        "answered" => format!("they answer it: {best}"),
        "unsure" => format!("they may answer it: {best}"),
        _ => "they say nothing about it".into(),
    };
    let mut lines = vec![("documents", known)];
    if !sources.is_empty() {
        lines.push(("found in", sources.join(" · ")));
    }
    let given = match passages {
        0 => None,
        1 => Some("it is given 1 passage".to_owned()),
        count => Some(format!("it is given {count} passages")),
    };
    let model =
        model_without_documents.as_ref().zip(asked).map(|(other, asked)| format!("{asked} is asked and not {other}"));
    let changes: Vec<String> = model.into_iter().chain(given).collect();
    lines.push(("changes", if changes.is_empty() { "nothing".into() } else { changes.join("; ") }));
    lines
}

impl NotSearched {
    pub(super) fn line(self) -> LabelledLine {
        let why = match self {
            NotSearched::ModelNamed => "a model was named",
            NotSearched::PinnedLocal => "prompts of this category stay where they are",
            NotSearched::Failed => "the knowledge base could not be searched; see `corbie status`",
        };
        ("documents", format!("not asked: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_known_is_told_with_what_it_changes() {
        let documents =
            |verdict: &'static str, passages: usize, model_without_documents: Option<&str>| DocumentsOutput {
                relevance: 0.826,
                passages,
                verdict,
                sources: vec!["a.pdf, page 2".into(), "b.md".into()][..passages.min(2)].to_vec(),
                model_without_documents: model_without_documents.map(str::to_owned),
            };
        let told = |documents: DocumentsOutput| {
            let lines = lines(&documents, Some("acme/small"));
            lines.iter().map(|(label, text)| format!("{label}: {text}")).collect::<Vec<_>>()
        };
        assert_eq!(
            told(documents("answered", 2, Some("acme/large"))),
            [
                "documents: they answer it: the best passage is 83 % relevant",
                "found in: a.pdf, page 2 · b.md",
                "changes: acme/small is asked and not acme/large; it is given 2 passages",
            ]
        );
        assert_eq!(told(documents("unsure", 1, None))[2], "changes: it is given 1 passage");
        assert_eq!(
            told(documents("unanswered", 0, None)),
            ["documents: they say nothing about it", "changes: nothing"]
        );
    }
}
