//! Model selector: an explicit model name, `auto`, or `auto:POLICY`.

use corbie_config::policy::RoutingPolicy;
use corbie_config::router as config;

/// Selects automatic routing.
pub const AUTO: &str = "auto";

/// The requested model, or the settings with which one is selected.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelSelector<'a> {
    /// The model the caller names.
    pub(super) model: Option<&'a str>,
    pub(super) settings: &'a config::Router,
    /// Overrides the global default model.
    pub(super) default_model: Option<&'a str>,
}

/// A policy merged with the settings it does not override.
#[derive(Debug)]
pub(super) struct NamedPolicy {
    settings: config::Router,
    default_model: Option<String>,
}

/// No policy of this name is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnknownPolicy;

impl NamedPolicy {
    pub(super) fn new(policy: &RoutingPolicy, router: &config::Router) -> NamedPolicy {
        NamedPolicy { settings: router.with_policy(policy), default_model: policy.default_model.clone() }
    }
}

impl<'a> ModelSelector<'a> {
    /// Parses `auto`, `auto:NAME`, a missing name and every other name.
    pub(super) fn of(
        model: Option<&'a str>,
        settings: &'a config::Router,
        policies: impl FnOnce(&str) -> Option<&'a NamedPolicy>,
    ) -> Result<ModelSelector<'a>, UnknownPolicy> {
        let plain = ModelSelector { model: None, settings, default_model: None };
        let Some(model) = model else { return Ok(plain) };
        match model.strip_prefix(AUTO) {
            Some("") => Ok(plain),
            Some(name) if name.starts_with(':') => {
                let named = policies(&name[1..]).ok_or(UnknownPolicy)?;
                let default_model = named.default_model.as_deref();
                Ok(ModelSelector { model: None, settings: &named.settings, default_model })
            }
            _ => Ok(ModelSelector { model: Some(model), ..plain }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_and_its_policies_are_no_models_and_every_other_name_is() {
        let settings = config::Router::default();
        let policy =
            RoutingPolicy { enabled: Some(false), default_model: Some("small".into()), ..RoutingPolicy::default() };
        let cheap = NamedPolicy::new(&policy, &settings);
        let wish = |model| ModelSelector::of(model, &settings, |name| (name == "cheap").then_some(&cheap));
        for model in [None, Some("auto")] {
            let wish = wish(model).unwrap();
            assert_eq!((wish.model, wish.settings.enabled, wish.default_model), (None, true, None));
        }
        let wanted = wish(Some("auto:cheap")).unwrap();
        assert_eq!((wanted.model, wanted.settings.enabled, wanted.default_model), (None, false, Some("small")));
        assert!(wish(Some("auto:")).is_err() && wish(Some("auto:dear")).is_err());
        for model in ["gpt-4o", "automatic", "house/auto", "house/auto:cheap"] {
            assert_eq!(wish(Some(model)).unwrap().model, Some(model));
        }
    }

    #[test]
    fn what_must_stay_stays_under_every_policy() {
        let settings = config::Router { restricted_categories: ["law".to_owned()].into(), ..config::Router::default() };
        let model = |category: &str| (category.to_owned(), "far/model".to_owned());
        let policy = RoutingPolicy {
            models: [model("law"), model("math")].into(),
            fallbacks: [("law".to_owned(), vec!["far/model".to_owned()])].into(),
            ..RoutingPolicy::default()
        };
        let over = settings.with_policy(&policy);
        assert_eq!((over.restricted_categories, over.fallbacks), (settings.restricted_categories, settings.fallbacks));
        assert_eq!(over.models, [model("math")].into());
    }
}
