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
    let best = format!("relevance of the best passage {:.0} %", 100.0 * relevance);
    let known = match *verdict {
        "answered" => format!("answer the prompt ({best})"),
        "unsure" => format!("may answer the prompt ({best})"),
        _ => "do not cover the prompt".into(),
    };
    let mut lines = vec![("documents", known)];
    if !sources.is_empty() {
        lines.push(("sources", sources.join(" · ")));
    }
    let given = match passages {
        0 => None,
        1 => Some("1 passage added".to_owned()),
        count => Some(format!("{count} passages added")),
    };
    let model = model_without_documents.as_ref().zip(asked).map(|(other, asked)| format!("{asked} instead of {other}"));
    let changes: Vec<String> = model.into_iter().chain(given).collect();
    lines.push(("effect", if changes.is_empty() { "none".into() } else { changes.join("; ") }));
    lines
}

impl NotSearched {
    pub(super) fn line(self) -> LabelledLine {
        let why = match self {
            NotSearched::ModelNamed => "a model was requested",
            NotSearched::PinnedLocal => "prompts of this category stay local",
            NotSearched::Failed => "the search failed; see `corbie status`",
        };
        ("documents", format!("not searched: {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grounding_result_is_shown_with_its_effect() {
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
                "documents: answer the prompt (relevance of the best passage 83 %)",
                "sources: a.pdf, page 2 · b.md",
                "effect: acme/small instead of acme/large; 2 passages added",
            ]
        );
        assert_eq!(told(documents("unsure", 1, None))[2], "effect: 1 passage added");
        assert_eq!(told(documents("unanswered", 0, None)), ["documents: do not cover the prompt", "effect: none"]);
    }
}
