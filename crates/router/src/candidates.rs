//! Failover candidates: which providers are tried for which model, and in which order (P-12, P-17). No I/O.

use super::decide::{ChoiceReason, ModelChoice};
use corbie_llm::provider_selection::{self, ProviderOffer, SelectionRule};

/// A provider, one of its keys, and the model name as the provider spells it.
#[derive(Debug, Clone, PartialEq)]
pub struct FailoverCandidate {
    /// Index of the provider among the offers.
    pub provider: usize,
    pub key: usize,
    pub model: String,
    pub reason: ChoiceReason,
    /// How the provider was selected.
    pub selected_by: SelectionRule,
}

/// Candidates, best first, and the models that no provider serves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidates {
    pub ranked: Vec<FailoverCandidate>,
    pub unserved: Vec<String>,
}

/// Bounds how many failures a caller waits for.
const MAX_CANDIDATES: usize = 16;

/// For each model: its provider with every key, then other providers that list the same model, unless the caller also
/// named the provider.
///
/// `lacks` returns whether a provider does not have a model. A model that a category recommends is then skipped
/// . A model that a caller or the operator named is tried anyway, because model lists are often incomplete.
pub fn candidates(
    models: &[ModelChoice],
    offers: &[ProviderOffer<'_>],
    lacks: impl Fn(usize, &str) -> bool,
    default_provider: Option<&str>,
) -> Candidates {
    let mut found = Candidates::default();
    for ModelChoice { model, reason: why, is_recommended: advised, is_pinned_local: stays } in models {
        // A prompt that must stay goes only to a provider named by prefix, never to a guess.
        let target = provider_selection::select_provider(model, offers, default_provider)
            .filter(|found| !stays || found.rule == SelectionRule::Prefix);
        let served = target.filter(|target| !advised || !lacks(target.provider, target.model));
        let of = |provider: usize, model: &str, by: SelectionRule| {
            let (model, why) = (model.to_owned(), why.clone());
            (0..offers[provider].keys).map(move |key| FailoverCandidate {
                provider,
                key,
                model: model.clone(),
                reason: why.clone(),
                selected_by: by,
            })
        };
        // A caller who also names the provider accepts no other. A detected local server never replaces a remote
        // provider, because any process on this machine may run it.
        let pinned = *stays
            || *why == ChoiceReason::Requested && target.is_some_and(|target| target.rule == SelectionRule::Prefix);
        let far = served.is_some_and(|served| !offers[served.provider].detected);
        let others = (0..offers.len()).filter(|other| {
            !pinned && served.is_none_or(|served| served.provider != *other) && !(far && offers[*other].detected)
        });
        // A prefix before the slash names the provider, so the bare name is not searched elsewhere. But the prefix may
        // also be part of the model name.
        let elsewhere =
            others.filter(|other| offers[*other].lists(model)).map(|other| of(other, model, SelectionRule::List));
        let first = served.map(|served| of(served.provider, served.model, served.rule));
        let mut is_served = false;
        for candidate in first.into_iter().chain(elsewhere).flatten() {
            is_served = true;
            let known = |other: &FailoverCandidate| {
                (other.provider, other.key, &other.model) == (candidate.provider, candidate.key, &candidate.model)
            };
            if !found.ranked.iter().any(known) {
                found.ranked.push(candidate);
            }
        }
        if !is_served {
            found.unserved.push(model.clone());
        }
    }
    found.ranked.truncate(MAX_CANDIDATES);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use corbie_llm::ModelInfo;
    use corbie_llm::chat::Protocol;
    use std::sync::Arc;

    fn offers() -> Vec<ProviderOffer<'static>> {
        let offer = |name, official, keys, models: &[&str]| {
            let models = models.iter().map(|id| ModelInfo::from_id(*id)).collect();
            let (protocol, detected) = (Protocol::OpenAi, name == "found");
            ProviderOffer { name, protocol, official, detected, keys, models: Arc::new(models) }
        };
        vec![
            offer("openai", true, 2, &["gpt-4o"]),
            offer("gateway", false, 1, &["gpt-4o", "llama3", "openai/gpt-oss-120b"]),
            offer("local", false, 1, &["llama3"]),
            offer("found", false, 1, &["gpt-4o", "llama3:latest", "phi"]),
        ]
    }

    fn choice(model: &str, why: ChoiceReason, stays: bool) -> ModelChoice {
        let advised = matches!(why, ChoiceReason::Category | ChoiceReason::Rule(_));
        ModelChoice { model: model.into(), reason: why, is_recommended: advised, is_pinned_local: stays }
    }

    fn order(models: &[(&str, ChoiceReason)]) -> (Vec<String>, Vec<String>) {
        let offers = offers();
        let models: Vec<_> = models.iter().map(|(model, why)| choice(model, why.clone(), false)).collect();
        let lacks = |provider: usize, model: &str| !offers[provider].lists(model);
        let found = candidates(&models, &offers, lacks, None);
        let name = |candidate: &FailoverCandidate| {
            format!("{}#{}/{}", offers[candidate.provider].name, candidate.key, candidate.model)
        };
        (found.ranked.iter().map(name).collect(), found.unserved)
    }

    #[test]
    fn p17_first_the_other_key_then_the_same_model_elsewhere_then_the_next_model() {
        let (asked, _) = order(&[("gpt-4o", ChoiceReason::Category), ("llama3", ChoiceReason::Default)]);
        assert_eq!(
            asked,
            ["openai#0/gpt-4o", "openai#1/gpt-4o", "gateway#0/gpt-4o", "gateway#0/llama3", "local#0/llama3"]
        );
    }

    #[test]
    fn a_server_that_was_found_stands_in_for_nobody_far_away() {
        assert!(!order(&[("gpt-4o", ChoiceReason::Requested)]).0.iter().any(|name| name.starts_with("found")));
        assert_eq!(order(&[("phi", ChoiceReason::Requested)]).0, ["found#0/phi"]);
    }

    #[test]
    fn x41_advice_that_nobody_serves_is_passed_over() {
        let (asked, unserved) =
            order(&[("openai/gpt-oss-20b", ChoiceReason::Category), ("phi", ChoiceReason::Default)]);
        assert_eq!((asked, unserved), (vec!["found#0/phi".into()], vec!["openai/gpt-oss-20b".into()]));
    }

    #[test]
    fn x41_a_name_with_a_slash_may_be_a_whole_name_elsewhere() {
        assert_eq!(order(&[("openai/gpt-oss-120b", ChoiceReason::Category)]).0, ["gateway#0/openai/gpt-oss-120b"]);
    }

    #[test]
    fn x41_what_the_caller_or_the_operator_names_is_asked_for_even_if_no_list_has_it() {
        for why in [ChoiceReason::Requested, ChoiceReason::Default, ChoiceReason::Fallback] {
            let (asked, unserved) = order(&[("gpt-9", why)]);
            assert_eq!((asked, unserved), (vec!["openai#0/gpt-9".into(), "openai#1/gpt-9".into()], vec![]));
        }
        assert_eq!(order(&[("mystery", ChoiceReason::Requested)]), (vec![], vec!["mystery".into()]));
    }

    #[test]
    fn what_must_stay_goes_to_the_provider_that_is_named_with_it_and_to_nobody_else() {
        let offers = offers();
        let names = |model: &str| {
            let found =
                candidates(&[choice(model, ChoiceReason::Category, true)], &offers, |_, _| false, Some("gateway"));
            let name =
                |candidate: &FailoverCandidate| format!("{}/{}", offers[candidate.provider].name, candidate.model);
            found.ranked.iter().map(name).collect::<Vec<_>>()
        };
        assert_eq!(names("local/llama3"), ["local/llama3"]);
        for elsewhere in ["llama3", "gpt-4o", "openai/gpt-oss-120b", "gone/llama3", "mystery"] {
            assert!(!names(elsewhere).iter().any(|name| name.starts_with("gateway")), "{elsewhere}");
        }
    }

    #[test]
    fn a_provider_that_is_named_is_the_only_one() {
        assert_eq!(order(&[("gateway/gpt-4o", ChoiceReason::Requested)]).0, ["gateway#0/gpt-4o"]);
        assert_eq!(order(&[("gateway/gpt-4o", ChoiceReason::Category)]).0, ["gateway#0/gpt-4o"]);
    }
}
