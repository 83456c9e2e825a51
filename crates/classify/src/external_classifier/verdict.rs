//! Validated verdict of a classification server on a text. Pure.

use std::sync::Arc;

use serde_json::Value;

use super::tool_result::ToolResult;
use super::{Categories, Error};

/// Verdict of a classification server on a text.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternalPrediction {
    /// Always a valid index into `categories`.
    pub class: usize,
    /// From 0 to 1.
    pub confidence: f32,
    /// The recommended model.
    pub model: String,
    pub use_reasoning: bool,
    /// One per category, if the server reports them.
    pub probabilities: Option<Vec<f32>>,
    pub entropy: Option<f32>,
    /// The categories that `class` refers to.
    pub categories: Arc<Categories>,
}

/// A protocol violation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum InvalidPrediction {
    /// It would be valid for a different list of categories: ours may be stale.
    CategoryMismatch(String),
    ProtocolViolation(String),
}

const MAX_MODEL_BYTES: usize = 1024;

impl ExternalPrediction {
    pub(super) fn read(
        answer: &ToolResult,
        categories: &Arc<Categories>,
    ) -> Result<ExternalPrediction, InvalidPrediction> {
        let wrong = |what: &str| InvalidPrediction::ProtocolViolation(what.into());
        let count = categories.names().len();
        let class = answer.get("class").and_then(Value::as_u64).ok_or_else(|| wrong("`class` is not a number"))?;
        let class = usize::try_from(class).ok().filter(|class| *class < count);
        let class =
            class.ok_or_else(|| InvalidPrediction::CategoryMismatch(format!("`class` is not below {count}")))?;
        let named = answer.get("category").and_then(Value::as_str);
        if named.is_some_and(|named| named != categories.names()[class]) {
            return Err(InvalidPrediction::CategoryMismatch("`category` does not match `class`".into()));
        }
        let confidence = answer.get("confidence").and_then(parse_probability);
        let model = answer.get("model").and_then(Value::as_str);
        let use_reasoning = answer.get("use_reasoning").and_then(Value::as_bool);
        Ok(ExternalPrediction {
            class,
            confidence: confidence.ok_or_else(|| wrong("`confidence` is not between 0 and 1"))?,
            model: model
                .filter(|model| !model.is_empty() && model.len() <= MAX_MODEL_BYTES)
                .ok_or_else(|| wrong("`model` is not a model name"))?
                .to_owned(),
            use_reasoning: use_reasoning.ok_or_else(|| wrong("`use_reasoning` is not a boolean"))?,
            probabilities: match answer.get("probabilities") {
                None | Some(Value::Null) => None,
                Some(listed) => Some(probabilities(listed, count)?),
            },
            entropy: answer.get("entropy").and_then(Value::as_f64).map(|entropy| entropy as f32),
            categories: categories.clone(),
        })
    }

    /// The name of the category.
    pub fn category(&self) -> &str {
        &self.categories.names()[self.class]
    }
}

fn probabilities(listed: &Value, count: usize) -> Result<Vec<f32>, InvalidPrediction> {
    let shares: Option<Vec<f32>> = listed.as_array().and_then(|listed| listed.iter().map(parse_probability).collect());
    let shares = shares
        .ok_or_else(|| InvalidPrediction::ProtocolViolation("`probabilities` are not all between 0 and 1".into()))?;
    if shares.len() != count {
        return Err(InvalidPrediction::CategoryMismatch(format!(
            "got {} `probabilities` for {count} categories",
            shares.len()
        )));
    }
    // Tolerance for rounding.
    if !(0.95..=1.05).contains(&shares.iter().sum::<f32>()) {
        return Err(InvalidPrediction::ProtocolViolation("`probabilities` do not sum to 1".into()));
    }
    Ok(shares)
}

/// A number from 0 to 1, with a tolerance for single precision rounding.
fn parse_probability(value: &Value) -> Option<f32> {
    const ROUNDING: f64 = 1e-4;
    let fits = |share: &f64| (-ROUNDING..=1.0 + ROUNDING).contains(share);
    value.as_f64().filter(fits).map(|share| share.clamp(0.0, 1.0) as f32)
}

impl From<InvalidPrediction> for Error {
    fn from(flaw: InvalidPrediction) -> Error {
        let (InvalidPrediction::CategoryMismatch(what) | InvalidPrediction::ProtocolViolation(what)) = flaw;
        Error::Invalid(what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(changes: Value) -> Result<ExternalPrediction, InvalidPrediction> {
        let listed = json!({"categories": ["math", "law", "general"]});
        let categories = Arc::new(Categories::parse(listed.as_object().unwrap().clone()).unwrap());
        let mut answer = json!({"class": 1, "confidence": 0.9, "model": "acme/lawyer", "use_reasoning": true});
        for (key, value) in changes.as_object().unwrap() {
            answer[key] = value.clone();
        }
        ExternalPrediction::read(answer.as_object().unwrap(), &categories)
    }

    #[test]
    fn c61_an_answer_with_the_four_required_members_is_enough() {
        let verdict = read(json!({})).unwrap();
        assert_eq!((verdict.class, verdict.category(), verdict.confidence), (1, "law", 0.9));
        assert_eq!((verdict.model.as_str(), verdict.use_reasoning), ("acme/lawyer", true));
        assert_eq!((verdict.probabilities, verdict.entropy), (None, None));
    }

    #[test]
    fn c61_the_optional_members_are_kept() {
        let verdict = read(json!({"probabilities": [0.05, 0.9, 0.07], "entropy": 0.4, "category": "law"})).unwrap();
        assert_eq!((verdict.probabilities, verdict.entropy), (Some(vec![0.05, 0.9, 0.07]), Some(0.4)));
    }

    #[test]
    fn c61_an_answer_that_breaks_a_rule_is_not_used() {
        for changes in [
            json!({"class": -1}),
            json!({"class": 1.5}),
            json!({"class": "law"}),
            json!({"confidence": 1.01}),
            json!({"confidence": -0.1}),
            json!({"confidence": "high"}),
            json!({"model": null}),
            json!({"model": ""}),
            json!({"use_reasoning": "yes"}),
            json!({"probabilities": [0.2, 0.2, 0.2]}),
            json!({"probabilities": [0.5, 0.5, 0.5]}),
            json!({"probabilities": [1.5, -0.3, -0.2]}),
            json!({"probabilities": "many"}),
        ] {
            assert!(matches!(read(changes.clone()), Err(InvalidPrediction::ProtocolViolation(_))), "{changes}");
        }
    }

    #[test]
    fn c61_an_answer_that_fits_another_list_says_so() {
        for changes in [json!({"class": 3}), json!({"category": "math"}), json!({"probabilities": [0.5, 0.5]})] {
            assert!(matches!(read(changes.clone()), Err(InvalidPrediction::CategoryMismatch(_))), "{changes}");
        }
    }
}
