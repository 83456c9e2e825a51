//! Authorization of tool calls: permissions and trust of the caller.

use crate::error::Error;
use crate::trust::{Caller, Effect, TrustLevel};

/// Checks permissions and trust for a tool call.
///
/// `least` is the trust the tool requires beyond its effect.
pub(crate) fn authorize(tool: &str, effect: Effect, least: Option<TrustLevel>, caller: &Caller) -> Result<(), Error> {
    if !caller.may_use(tool) {
        return Err(Error::NotGranted { what: format!("`{tool}`") });
    }
    require_trust(
        tool,
        effect,
        least.map_or(effect.required_trust(), |least| least.max(effect.required_trust())),
        caller,
    )
}

/// Checks that a caller's trust is sufficient for an effect.
pub(crate) fn check_trust(tool: &str, effect: Effect, caller: &Caller) -> Result<(), Error> {
    require_trust(tool, effect, effect.required_trust(), caller)
}

fn require_trust(tool: &str, effect: Effect, needed: TrustLevel, caller: &Caller) -> Result<(), Error> {
    if caller.trust >= needed {
        return Ok(());
    }
    Err(Error::TrustDenied { tool: tool.to_owned(), effect, trust: caller.trust, needed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::Transport;

    #[test]
    fn m95_each_effect_needs_its_level_and_no_less() {
        for trust in [TrustLevel::Untrusted, TrustLevel::Verified, TrustLevel::Trusted] {
            for effect in [Effect::Reads, Effect::Changes, Effect::Destroys] {
                let caller = Caller::new(Transport::Stdio, "test", trust);
                assert_eq!(authorize("t", effect, None, &caller).is_ok(), trust as u8 >= effect as u8);
            }
        }
    }

    #[test]
    fn m85_a_tool_may_ask_for_more_trust_than_its_effect_and_never_for_less() {
        let allowed = |effect, least, trust| {
            authorize("t", effect, Some(least), &Caller::new(Transport::Stdio, "x", trust)).is_ok()
        };
        assert!(!allowed(Effect::Reads, TrustLevel::Trusted, TrustLevel::Verified));
        assert!(allowed(Effect::Reads, TrustLevel::Trusted, TrustLevel::Trusted));
        assert!(!allowed(Effect::Destroys, TrustLevel::Untrusted, TrustLevel::Verified));
    }

    #[test]
    fn m97_a_refusal_names_the_tool_the_state_and_the_way_out() {
        let caller = Caller::new(Transport::Http, "test", TrustLevel::Verified);
        let text = authorize("wipe", Effect::Destroys, None, &caller).expect_err("refused").to_string();
        assert_eq!(
            text,
            "tool `wipe` destroys data and requires trust level `trusted`, but the caller's is `verified`; the operator can raise it with `--trust trusted` or `trust` in the configuration"
        );
    }
}
