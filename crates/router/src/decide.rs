//! Routing decision: which models may answer a prompt, in which order.
//!
//! Does no I/O: takes the requested model, the classification and the settings, and returns a [`Decision`].

use super::grounding::GroundingVerdict;
use corbie_config::router as config;

/// Output of a classifier for a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassifierOutput {
    pub routing: CategoryRouting,
    /// Probability of the category.
    pub confidence: f32,
    /// Recommendation for the fallback category, if there is one.
    pub fallback: Option<CategoryRouting>,
}

/// Recommendation for a category.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CategoryRouting {
    pub category: String,
    pub system_prompt: Option<String>,
    pub model: Option<String>,
    pub use_reasoning: bool,
    /// The routing rule that chose the model.
    pub rule: Option<String>,
}

/// Configuration of the decision.
#[derive(Debug, Clone)]
pub struct DecisionPolicy<'a> {
    /// Minimum confidence. Below it, the fallback category applies.
    pub threshold: f32,
    pub settings: &'a config::Router,
    /// Used if no model is named or recommended.
    pub default_model: Option<String>,
    /// How well the knowledge base covers the prompt, if grounding is enabled.
    pub grounding: Option<GroundingVerdict>,
}

/// The selected models, and why. The reason is logged and returned to the caller.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Decision {
    /// Models in the order in which they are tried. Empty if no model is named or recommended.
    pub models: Vec<ModelChoice>,
    pub use_reasoning: bool,
    pub category: Option<String>,
    pub system_prompt: Option<String>,
    /// The confidence was below the threshold.
    pub fell_back: bool,
}

/// A model, and why it was selected.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelChoice {
    pub model: String,
    pub reason: ChoiceReason,
    /// A recommendation: neither the caller nor the operator has named the model.
    pub is_recommended: bool,
    /// Only the provider named with the model may be called.
    pub is_pinned_local: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ChoiceReason {
    /// The caller named the model.
    Requested,
    /// A routing rule of this name.
    Rule(String),
    /// The category's own model.
    Category,
    /// The knowledge base answers the prompt, or contains nothing about it.
    Documents,
    /// One of the category's fallback models.
    Fallback,
    /// The default model.
    #[default]
    Default,
}

/// Returns the models for a prompt. A model that the caller names is not replaced unless the operator allows it. A
/// prompt that was not classified gets the default model (P-11).
pub fn decide(asked: Option<&str>, seen: Option<&ClassifierOutput>, policy: &DecisionPolicy<'_>) -> Decision {
    let settings = policy.settings;
    let sure = seen.is_some_and(|seen| seen.confidence >= policy.threshold);
    let fell_back = !sure && seen.is_some_and(|seen| seen.fallback.is_some());
    let advice = seen.map(|seen| seen.fallback.as_ref().filter(|_| fell_back).unwrap_or(&seen.routing));
    let mut models: Vec<ModelChoice> = Vec::new();
    let stays = advice.is_some_and(|advice| settings.restricted_categories.contains(&advice.category));
    let mut add = |model: &str, why: ChoiceReason, advised: bool| {
        if !models.iter().any(|choice| choice.model == model) {
            models.push(ModelChoice {
                model: model.to_owned(),
                reason: why,
                is_recommended: advised,
                is_pinned_local: stays,
            });
        }
    };
    let by_documents = match policy.grounding.filter(|_| asked.is_none() && !stays) {
        Some(GroundingVerdict::Known) => settings.grounding.answered_model.as_deref(),
        Some(GroundingVerdict::Unknown) => settings.grounding.unanswered_model.as_deref(),
        Some(GroundingVerdict::Unsure) | None => None,
    };
    by_documents.into_iter().for_each(|model| add(model, ChoiceReason::Documents, false));
    let configured = advice.and_then(|advice| settings.models.get(&advice.category));
    match (asked, configured, advice) {
        (Some(model), ..) => add(model, ChoiceReason::Requested, false),
        (None, Some(model), _) => add(model, ChoiceReason::Category, false),
        (None, None, Some(CategoryRouting { model: Some(model), rule, .. })) => {
            add(model, rule.clone().map_or(ChoiceReason::Category, ChoiceReason::Rule), true);
        }
        (None, None, _) => {}
    }
    let fallbacks = advice.filter(|_| asked.is_none()).and_then(|advice| settings.fallbacks.get(&advice.category));
    fallbacks.into_iter().flatten().for_each(|model| add(model, ChoiceReason::Fallback, false));
    if !stays && (asked.is_none() || settings.replace_pinned) {
        policy.default_model.iter().for_each(|model| add(model, ChoiceReason::Default, false));
    }
    Decision {
        models,
        use_reasoning: advice.is_some_and(|advice| advice.use_reasoning),
        category: advice.map(|advice| advice.category.clone()),
        // The system prompt of a wrong category is worse than none.
        system_prompt: advice.filter(|_| sure || fell_back).and_then(|advice| advice.system_prompt.clone()),
        fell_back,
    }
}

impl Decision {
    /// Whether the prompt may only go to the models configured for its category.
    pub fn is_pinned_local(&self) -> bool {
        self.models.iter().any(|choice| choice.is_pinned_local)
    }
}

impl ChoiceReason {
    pub fn as_str(&self) -> &'static str {
        match self {
            ChoiceReason::Requested => "requested",
            ChoiceReason::Rule(_) => "rule",
            ChoiceReason::Category => "category",
            ChoiceReason::Documents => "documents",
            ChoiceReason::Fallback => "fallback",
            ChoiceReason::Default => "default",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decision with modified settings.
    fn decided(
        asked: Option<&str>,
        seen: Option<&ClassifierOutput>,
        more: impl FnOnce(&mut config::Router),
    ) -> Decision {
        let mut settings = settings();
        more(&mut settings);
        decide(asked, seen, &policy(&settings, Some("acme/default")))
    }

    fn settings() -> config::Router {
        let fallbacks = [("law".to_owned(), vec!["acme/clerk".to_owned()])].into();
        config::Router { fallbacks, ..config::Router::default() }
    }

    fn policy<'a>(settings: &'a config::Router, default_model: Option<&str>) -> DecisionPolicy<'a> {
        DecisionPolicy { threshold: 0.6, settings, default_model: default_model.map(str::to_owned), grounding: None }
    }

    fn seen(confidence: f32) -> ClassifierOutput {
        let advice = |category: &str, model: &str, rule: Option<&str>| CategoryRouting {
            category: category.into(),
            system_prompt: Some(format!("You know {category}.")),
            model: Some(model.into()),
            use_reasoning: category == "law",
            rule: rule.map(str::to_owned),
        };
        let fallback = Some(advice("general", "acme/plain", Some("unsure")));
        ClassifierOutput { routing: advice("law", "acme/lawyer", None), confidence, fallback }
    }

    fn models(decision: &Decision) -> Vec<(&str, &'static str)> {
        decision.models.iter().map(|choice| (choice.model.as_str(), choice.reason.as_str())).collect()
    }

    #[test]
    fn p11_c63_a_sure_prompt_gets_its_categorys_model_prompt_and_reasoning() {
        let decision = decided(None, Some(&seen(0.9)), |_| ());
        assert_eq!(
            models(&decision),
            [("acme/lawyer", "category"), ("acme/clerk", "fallback"), ("acme/default", "default")]
        );
        assert_eq!(decision.system_prompt.as_deref(), Some("You know law."));
        assert!(decision.use_reasoning && !decision.fell_back);
    }

    #[test]
    fn c60_f28_f29_below_the_threshold_the_fallback_category_counts() {
        let decision = decided(None, Some(&seen(0.59)), |_| ());
        assert_eq!(decision.category.as_deref(), Some("general"));
        assert_eq!(models(&decision), [("acme/plain", "rule"), ("acme/default", "default")]);
        assert!(decision.fell_back && !decision.use_reasoning);
        let without = ClassifierOutput { fallback: None, ..seen(0.59) };
        let decision = decided(None, Some(&without), |_| ());
        assert_eq!((decision.category.as_deref(), decision.fell_back), (Some("law"), false));
        assert_eq!(decision.system_prompt, None);
        assert_eq!(decided(None, Some(&seen(0.6)), |_| ()).category.as_deref(), Some("law"));
    }

    #[test]
    fn p11_a_model_that_was_asked_for_is_not_replaced_unless_the_operator_says_so() {
        let decision = decided(Some("gpt-4o"), None, |_| ());
        assert_eq!(models(&decision), [("gpt-4o", "requested")]);
        let decision = decided(Some("gpt-4o"), None, |settings| settings.replace_pinned = true);
        assert_eq!(models(&decision), [("gpt-4o", "requested"), ("acme/default", "default")]);
    }

    #[test]
    fn p11_without_a_classification_it_is_the_default_or_nobody() {
        assert_eq!(models(&decided(None, None, |_| ())), [("acme/default", "default")]);
        let nobody = decide(None, None, &policy(&config::Router::default(), None));
        assert_eq!((nobody.models, nobody.system_prompt), (Vec::new(), None));
    }

    #[test]
    fn c63_the_operator_may_name_another_model_for_a_category() {
        let judged = |confidence| {
            decided(None, Some(&seen(confidence)), |settings| {
                settings.models = [("law".to_owned(), "acme/judge".to_owned())].into();
            })
        };
        assert_eq!(models(&judged(0.9))[0], ("acme/judge", "category"));
        assert_eq!(models(&judged(0.1))[0], ("acme/plain", "rule"));
    }

    #[test]
    fn p17_prompts_of_a_category_that_stays_go_to_no_default() {
        let stays =
            decided(None, Some(&seen(0.9)), |settings| settings.restricted_categories = ["law".to_owned()].into());
        assert_eq!(models(&stays), [("acme/lawyer", "category"), ("acme/clerk", "fallback")]);
    }

    #[test]
    fn a_model_is_named_once() {
        let settings = settings();
        let decision = decide(None, Some(&seen(0.9)), &policy(&settings, Some("acme/lawyer")));
        assert_eq!(models(&decision), [("acme/lawyer", "category"), ("acme/clerk", "fallback")]);
    }
}
