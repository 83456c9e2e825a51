//! Checks the embedding model and the classifier.

use std::sync::Arc;

use corbie_infer::{Purpose, damaged_builtin_files};

use super::{Check, Findings, SetupContext};
use crate::classify::Classification;
use crate::inference::Inference;

const TEXT: &str = "What is the square root of 144?";

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let config = subject.config.as_ref()?;
    let mut findings = Findings::default();
    let damaged = tokio::task::spawn_blocking(damaged_builtin_files).await.ok()?;
    if !damaged.is_empty() {
        let advice = "the program file is damaged; reinstall corbie";
        findings.problem(format!("built-in model files have wrong checksums: {}", damaged.join(", ")), advice);
        return findings.check("models");
    }
    let inference = match &subject.running {
        Some((inference, _)) => inference.clone(),
        None => Inference::new(config.inference.clone()),
    };
    let embedded = inference.embed(vec![TEXT.to_owned()], Purpose::Query).await;
    match embedded.as_ref().map(|embedded| embedded.first()) {
        Ok(Some(embedding)) => findings.ok(format!("embedding model `{}`: OK", embedding.model)),
        Ok(None) => findings.problem("the embedding model returned no vector", "check `inference.embedding`"),
        Err(error) => {
            findings.problem(error.to_string(), "check `inference.embedding`, or remove it to use the built-in model")
        }
    }
    let classification = match &subject.running {
        Some((_, classification)) => Ok(classification.clone()),
        None => Classification::new(config.classification.clone(), inference),
    };
    match classification {
        Err(error) => {
            findings.problem(error.to_string(), "correct the taxonomy; `corbie taxonomy check` lists its errors")
        }
        Ok(classification) => match (classification.classify(TEXT).await.map(|_| ()), classification.health().1) {
            (Ok(()), None) => findings.ok("classifier: OK"),
            (Ok(()), Some(why)) => findings.problem(why, "check `classification` and `inference` in the settings"),
            (Err(error), _) => findings.problem(error.to_string(), "check `classification` in the settings"),
        },
    }
    findings.check("models")
}
