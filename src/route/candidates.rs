//! Who is asked for which model, and in which order (P-12, P-17). Pure.

use super::decide::{Choice, Why};
use crate::providers::catalog::{self, Offer};

/// A provider, one of its keys, and a model in its own words.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The place of the provider among the offers.
    pub provider: usize,
    pub key: usize,
    pub model: String,
    pub why: Why,
}

/// Those who can be asked, best first, and models that nobody serves.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Candidates {
    pub asked: Vec<Candidate>,
    pub unserved: Vec<String>,
}

/// What choosing rests on besides the offers.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    pub default_provider: Option<&'a str>,
    /// Whether anybody is asked after the first has failed.
    pub failover: bool,
}

/// Nobody waits for more than this many failures.
const MOST: usize = 16;

/// For each model: its provider with every key, then others that list the same model.
///
/// `lacks` tells that a provider is known not to have a model. Advice for such a model is passed over; what the
/// caller named is asked for all the same, as a list may be incomplete.
pub fn candidates(
    models: &[Choice],
    offers: &[Offer<'_>],
    lacks: impl Fn(usize, &str) -> bool,
    rules: Rules<'_>,
) -> Candidates {
    let mut found = Candidates::default();
    for Choice { model, why } in models {
        let target = catalog::find(model, offers, rules.default_provider);
        let served = target.filter(|target| *why == Why::Asked || !lacks(target.provider, target.model));
        let Some(target) = served else {
            found.unserved.push(model.clone());
            continue;
        };
        let of = |provider: usize| {
            (0..offers[provider].keys).map(move |key| Candidate {
                provider,
                key,
                model: target.model.to_owned(),
                why: why.clone(),
            })
        };
        // A caller who names the provider too wants no other.
        let pinned = *why == Why::Asked && target.model.len() < model.len();
        let elsewhere = (0..offers.len())
            .filter(|other| *other != target.provider && !pinned && offers[*other].lists(target.model))
            .flat_map(of);
        for candidate in of(target.provider).chain(elsewhere) {
            let known = |other: &Candidate| {
                (other.provider, other.key, &other.model) == (candidate.provider, candidate.key, &candidate.model)
            };
            if !found.asked.iter().any(known) {
                found.asked.push(candidate);
            }
        }
    }
    found.asked.truncate(if rules.failover { MOST } else { 1 });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::ModelInfo;
    use crate::providers::chat::Protocol;
    use std::sync::Arc;

    fn offers() -> Vec<Offer<'static>> {
        let offer = |name, official, keys, models: &[&str]| {
            let models = models.iter().map(|id| ModelInfo::named(*id)).collect();
            Offer { name, protocol: Some(Protocol::OpenAi), official, keys, models: Arc::new(models) }
        };
        vec![
            offer("openai", true, 2, &["gpt-4o"]),
            offer("gateway", false, 1, &["gpt-4o", "llama3"]),
            offer("local", false, 1, &["llama3"]),
        ]
    }

    fn order(models: &[(&str, Why)], failover: bool) -> (Vec<String>, Vec<String>) {
        let offers = offers();
        let models: Vec<_> =
            models.iter().map(|(model, why)| Choice { model: (*model).into(), why: why.clone() }).collect();
        let lacks = |provider: usize, model: &str| !offers[provider].lists(model);
        let found = candidates(&models, &offers, lacks, Rules { default_provider: None, failover });
        let name = |candidate: &Candidate| {
            format!("{}#{}/{}", offers[candidate.provider].name, candidate.key, candidate.model)
        };
        (found.asked.iter().map(name).collect(), found.unserved)
    }

    #[test]
    fn p17_first_the_other_key_then_the_same_model_elsewhere_then_the_next_model() {
        let (asked, _) = order(&[("gpt-4o", Why::Category), ("llama3", Why::Default)], true);
        assert_eq!(
            asked,
            ["openai#0/gpt-4o", "openai#1/gpt-4o", "gateway#0/gpt-4o", "gateway#0/llama3", "local#0/llama3"]
        );
    }

    #[test]
    fn p17_without_failover_one_is_asked_with_one_key() {
        assert_eq!(order(&[("gpt-4o", Why::Asked), ("llama3", Why::Default)], false).0, ["openai#0/gpt-4o"]);
    }

    #[test]
    fn x41_advice_that_nobody_serves_is_passed_over() {
        let (asked, unserved) = order(&[("openai/gpt-oss-20b", Why::Category), ("llama3", Why::Default)], false);
        assert_eq!((asked, unserved), (vec!["gateway#0/llama3".into()], vec!["openai/gpt-oss-20b".into()]));
    }

    #[test]
    fn x41_what_the_caller_names_is_asked_for_even_if_no_list_has_it() {
        let (asked, unserved) = order(&[("gpt-9", Why::Asked)], true);
        assert_eq!((asked, unserved), (vec!["openai#0/gpt-9".into(), "openai#1/gpt-9".into()], vec![]));
        assert_eq!(order(&[("mystery", Why::Asked)], true), (vec![], vec!["mystery".into()]));
    }

    #[test]
    fn a_provider_that_the_caller_names_is_the_only_one() {
        assert_eq!(order(&[("gateway/gpt-4o", Why::Asked)], true).0, ["gateway#0/gpt-4o"]);
        assert_eq!(
            order(&[("gateway/gpt-4o", Why::Category)], true).0,
            ["gateway#0/gpt-4o", "openai#0/gpt-4o", "openai#1/gpt-4o"]
        );
    }
}
