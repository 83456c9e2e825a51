//! `corbie ask --documents`: an answer from the knowledge base, with its sources.

use std::io::{self, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::super::knowledge::backend::Backend;
use super::super::knowledge::error::KnowledgeError;
use super::super::knowledge::search::{source_line, write_passages};
use super::super::knowledge::{resolve_base, text};
use super::super::{CommandResult, json_output, sanitize, sanitize_line};
use super::{Ask, stream_output};
use crate::config::LoadedConfig;
use crate::knowledge::document::BaseName;

pub(super) async fn run(command: &Ask, question: &str, loaded: &LoadedConfig, out: &mut dyn Write) -> CommandResult {
    let peer = Backend::find_without_tasks(&loaded.config).await?;
    peer.detect_models().await;
    let waiting = stream_output::waiting_progress();
    let reply = ask_documents(command, question, &peer).await;
    drop(waiting);
    peer.finish().await;
    match reply? {
        reply if command.json => json_output::write(&reply, out)?,
        reply => write_answer(&reply, question, out)?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn ask_documents(command: &Ask, question: &str, peer: &Backend) -> Result<Value, KnowledgeError> {
    resolve_base::must_exist(peer, command.knowledge_base.as_ref().map(BaseName::as_str)).await?;
    let mut arguments = json!({ "question": question });
    if let Some(model) = &command.model {
        arguments["model"] = json!(model);
    }
    if let Some(most) = command.max_tokens {
        arguments["max_tokens"] = most.into();
    }
    if let Some(base) = &command.knowledge_base {
        arguments["knowledge_base"] = json!(base);
    }
    peer.call("knowledge-ask", arguments).await
}

/// Prints the answer and its sources; without an answer, prints the reason and the passages.
fn write_answer(reply: &Value, question: &str, out: &mut dyn Write) -> io::Result<()> {
    let list = |member: &str| reply[member].as_array().cloned().unwrap_or_default();
    let passages = list("passages");
    let message = sanitize_line(text(reply, "message"));
    let Some(answer) = reply["answer"].as_str() else {
        if passages.is_empty() {
            return writeln!(out, "{message}");
        }
        writeln!(io::stderr(), "corbie: {message}")?;
        return write_passages(&passages, question, out);
    };
    writeln!(out, "{}", sanitize(answer.trim_end()))?;
    let (heading, sources) = match list("citations") {
        cited if cited.is_empty() => ("The answer cites no sources. Passages given to the model:", passages),
        cited => ("Sources:", cited),
    };
    writeln!(out, "\n{heading}")?;
    for source in sources {
        writeln!(out, "[{}] {}", source["number"], source_line(&source))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(reply: Value) -> String {
        let mut out = Vec::new();
        write_answer(&reply, "why", &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_answer_is_followed_by_the_sources_it_cites() {
        let passage =
            |number: u64| json!({ "number": number, "filename": "a.pdf", "metadata": { "page_num": number } });
        let passages = json!([passage(1), passage(2)]);
        let answer = json!({ "answer": "So [2].\u{1b}[2J\n", "citations": [passage(2)], "passages": passages });
        assert_eq!(written(answer), "So [2].[2J\n\nSources:\n[2] a.pdf, page 2\n");
        let uncited = written(json!({ "answer": "So.", "citations": [], "passages": passages }));
        assert!(uncited.contains("cites no sources") && uncited.contains("[1] a.pdf, page 1\n[2]"), "{uncited}");
        let nothing = json!({ "answer": null, "citations": [], "passages": [], "message": "No documents found" });
        assert_eq!(written(nothing), "No documents found\n");
    }
}
