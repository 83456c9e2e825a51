//! Selects the provider for a model name (P-12). Pure: callers pass in the configured providers and their models.

use std::sync::Arc;

use super::ModelInfo;
use super::chat::Protocol;

/// The view of a provider that selection needs.
#[derive(Debug, Clone)]
pub struct ProviderOffer<'a> {
    pub name: &'a str,
    pub protocol: Protocol,
    /// The vendor itself rather than a compatible server, so model names identify it.
    pub official: bool,
    /// Detected on this machine rather than configured.
    pub detected: bool,
    pub keys: usize,
    /// The listed models, as far as known.
    pub models: Arc<Vec<ModelInfo>>,
}

/// The selected provider, and its name for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'a> {
    /// Index of the provider among the offers.
    pub provider: usize,
    pub model: &'a str,
    pub rule: SelectionRule,
}

/// How the provider was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionRule {
    /// By the prefix before the model name.
    Prefix,
    /// By the model family.
    Family,
    /// By its model list.
    List,
    /// As the default provider, after the other rules.
    Default,
}

/// Model name prefixes of the vendors.
const FAMILIES: [(&str, Protocol); 6] = [
    ("gpt-", Protocol::OpenAi),
    ("chatgpt-", Protocol::OpenAi),
    // Longer prefixes, because other vendors also name models `text-embedding-…`.
    ("text-embedding-3-", Protocol::OpenAi),
    ("text-embedding-ada-", Protocol::OpenAi),
    ("claude-", Protocol::Anthropic),
    ("gemini-", Protocol::Google),
];

/// Finds the provider of a model: the provider prefix before a slash, the vendor of its family, the first provider that
/// lists it, and finally the default provider.
pub fn select_provider<'a>(model: &'a str, offers: &[ProviderOffer<'_>], default: Option<&str>) -> Option<Target<'a>> {
    let at = |provider: Option<usize>, model: &'a str, by: SelectionRule| {
        provider.map(|provider| Target { provider, model, rule: by })
    };
    let named = |name: &str| offers.iter().position(|offer| offer.name == name);
    let prefixed = || {
        model
            .split_once('/')
            .and_then(|(name, rest)| at(named(name).filter(|_| !rest.is_empty()), rest, SelectionRule::Prefix))
    };
    let of_family = || {
        let protocol = family(model)?;
        at(offers.iter().position(|offer| offer.official && offer.protocol == protocol), model, SelectionRule::Family)
    };
    let listed = || at(offers.iter().position(|offer| offer.lists(model)), model, SelectionRule::List);
    let by_default = || at(default.and_then(named), model, SelectionRule::Default);
    prefixed().or_else(of_family).or_else(listed).or_else(by_default)
}

impl ProviderOffer<'_> {
    pub fn lists(&self, model: &str) -> bool {
        self.models.iter().any(|listed| listed.matches_name(model))
    }
}

fn family(model: &str) -> Option<Protocol> {
    // Everyone but OpenAI hosts OpenAI's open-weight models.
    if model.starts_with("gpt-oss") {
        return None;
    }
    let of = |(start, protocol): &(&str, Protocol)| model.starts_with(start).then_some(*protocol);
    // `o1`, `o4-mini`: an `o` and a digit.
    let numbered = model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    FAMILIES.iter().find_map(of).or(numbered.then_some(Protocol::OpenAi))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(model: &str, default: Option<&str>, expected: Option<(&str, &str)>) {
        let offer = |name, protocol, official, models: &[&str]| {
            let models = models.iter().map(|id| ModelInfo::from_id(*id)).collect();
            ProviderOffer { name, protocol, official, detected: false, keys: 1, models: Arc::new(models) }
        };
        let offers = [
            offer("local", Protocol::OpenAi, false, &["llama3", "gpt-oss:20b", "meta-llama/Llama-3"]),
            offer("openai", Protocol::OpenAi, true, &[]),
            offer("anthropic", Protocol::Anthropic, true, &[]),
            offer("google", Protocol::Google, true, &[]),
        ];
        let found = select_provider(model, &offers, default).map(|target| (offers[target.provider].name, target.model));
        assert_eq!(found, expected, "{model}");
    }

    #[test]
    fn p12_a_provider_before_the_slash_is_taken_if_there_is_one() {
        check("anthropic/claude-x", None, Some(("anthropic", "claude-x")));
        check("local/gpt-4o", None, Some(("local", "gpt-4o")));
        // A slash may also be part of the model name.
        check("meta-llama/Llama-3", None, Some(("local", "meta-llama/Llama-3")));
        check("openai/", None, None);
    }

    #[test]
    fn p09_p12_families_go_to_their_companies() {
        check("gpt-4o", None, Some(("openai", "gpt-4o")));
        check("o4-mini", None, Some(("openai", "o4-mini")));
        check("text-embedding-3-small", None, Some(("openai", "text-embedding-3-small")));
        check("text-embedding-005", None, None);
        check("claude-opus-9", None, Some(("anthropic", "claude-opus-9")));
        check("gemini-3-pro", None, Some(("google", "gemini-3-pro")));
    }

    #[test]
    fn p12_then_whoever_lists_it_and_then_the_default() {
        check("gpt-oss:20b", Some("openai"), Some(("local", "gpt-oss:20b")));
        check("llama3:latest", None, Some(("local", "llama3:latest")));
        check("llama3", Some("openai"), Some(("local", "llama3")));
        check("mystery", Some("google"), Some(("google", "mystery")));
        check("mystery", None, None);
        check("mystery", Some("nobody"), None);
        check("ouija", None, None);
    }
}
