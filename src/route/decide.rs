//! Decides which model answers a prompt.
//!
//! Pure: takes what the caller asked for, what the classifier said and what the operator configured, and returns a
//! [`Decision`]. All waiting happens elsewhere.

use serde::Serialize;

use crate::classify::Taxonomy;
use crate::classify::advice::Facts;
use crate::classify::taxonomy::Category;

/// What is known of a prompt once it was classified.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    pub text: &'a str,
    pub taxonomy: &'a Taxonomy,
    pub class: usize,
    pub confidence: f32,
    pub out_of_scope: f32,
}

/// What the operator configured.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Below this confidence the fallback category counts. A wrong expert's prompt is worse than none.
    pub threshold: f32,
    pub fallback: Option<String>,
    /// Whether the category's system prompt goes before the caller's.
    pub prompts: bool,
    /// Used where nothing else names a model.
    pub default_model: Option<String>,
}

/// What the router chose, and why. The reason is logged and told to the caller.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decision {
    /// None where nobody names a model: then there is nothing to ask.
    pub model: Option<String>,
    pub use_reasoning: bool,
    pub category: Option<String>,
    pub system_prompt: Option<String>,
    pub why: Why,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "by", content = "rule")]
pub enum Why {
    /// The caller named the model.
    Asked,
    /// A routing rule of this name.
    Rule(String),
    /// The category's own model.
    Category,
    /// The prompt was not classified; it is the default model.
    Default,
}

/// A model that the caller names is never replaced; a prompt that was not classified gets the default (P-11).
pub fn decide(asked: Option<&str>, seen: Option<Seen<'_>>, policy: &Policy) -> Decision {
    let advised = seen.map(|seen| advise(seen, policy));
    let (category, use_reasoning) = match &advised {
        Some((category, advice)) => (Some(*category), advice.use_reasoning),
        None => (None, false),
    };
    let (model, why) = match (asked, advised) {
        (Some(model), _) => (Some(model.to_owned()), Why::Asked),
        (None, Some((_, advice))) => (Some(advice.model), advice.rule.map_or(Why::Category, Why::Rule)),
        (None, None) => (policy.default_model.clone(), Why::Default),
    };
    Decision {
        model,
        use_reasoning,
        category: category.map(|category| category.name.clone()),
        system_prompt: category.filter(|_| policy.prompts).map(|category| category.system_prompt.clone()),
        why,
    }
}

/// Advice that outlives the facts it was given for.
struct Advised {
    model: String,
    use_reasoning: bool,
    rule: Option<String>,
}

fn advise<'a>(seen: Seen<'a>, policy: &Policy) -> (&'a Category, Advised) {
    let Seen { text, taxonomy, class, confidence, out_of_scope } = seen;
    let categories = &taxonomy.categories;
    let fallback = policy.fallback.as_deref().filter(|_| confidence < policy.threshold);
    let fallback = fallback.and_then(|name| categories.iter().find(|category| category.name == name));
    let category = fallback.unwrap_or(&categories[class]);
    let advice = taxonomy.routing.advise(Facts { text, category, confidence, out_of_scope });
    let rule = advice.model_rule.map(str::to_owned);
    (category, Advised { model: advice.model.to_owned(), use_reasoning: advice.use_reasoning, rule })
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "
model: acme/plain
categories:
  - {name: law, model: acme/lawyer, system_prompt: You know the law., use_reasoning: true}
  - {name: general}
routing:
  model: [{name: unsure, when: {confidence_below: 0.3}, use: acme/large}]
";

    fn policy() -> Policy {
        Policy {
            threshold: 0.6,
            fallback: Some("general".into()),
            prompts: true,
            default_model: Some("acme/default".into()),
        }
    }

    fn decided(asked: Option<&str>, confidence: f32, policy: &Policy) -> Decision {
        let taxonomy = Taxonomy::parse(YAML).unwrap();
        let seen = Seen { text: "may he do that", taxonomy: &taxonomy, class: 0, confidence, out_of_scope: 0.0 };
        decide(asked, Some(seen), policy)
    }

    #[test]
    fn p11_c63_a_sure_prompt_gets_its_categorys_model_prompt_and_reasoning() {
        let decision = decided(None, 0.9, &policy());
        assert_eq!((decision.model.as_deref(), decision.why), (Some("acme/lawyer"), Why::Category));
        assert_eq!(decision.system_prompt.as_deref(), Some("You know the law."));
        assert!(decision.use_reasoning);
    }

    #[test]
    fn c60_below_the_threshold_the_fallback_category_counts() {
        let decision = decided(None, 0.59, &policy());
        assert_eq!((decision.category.as_deref(), decision.model.as_deref()), (Some("general"), Some("acme/plain")));
        let decision = decided(None, 0.59, &Policy { fallback: None, ..policy() });
        assert_eq!(decision.category.as_deref(), Some("law"));
        let decision = decided(None, 0.2, &policy());
        assert_eq!((decision.model.as_deref(), decision.why), (Some("acme/large"), Why::Rule("unsure".into())));
    }

    #[test]
    fn p11_a_model_that_was_asked_for_is_never_replaced() {
        let decision = decided(Some("gpt-4o"), 0.9, &policy());
        assert_eq!((decision.model.as_deref(), decision.why), (Some("gpt-4o"), Why::Asked));
        assert_eq!(decision.category.as_deref(), Some("law"));
    }

    #[test]
    fn p11_without_a_classification_it_is_the_default_or_nobody() {
        let decision = decide(None, None, &policy());
        assert_eq!((decision.model.as_deref(), decision.why), (Some("acme/default"), Why::Default));
        let nobody = decide(None, None, &Policy { default_model: None, ..policy() });
        assert_eq!((nobody.model, nobody.system_prompt), (None, None));
    }

    #[test]
    fn prompts_can_be_switched_off() {
        assert_eq!(decided(None, 0.9, &Policy { prompts: false, ..policy() }).system_prompt, None);
    }
}
