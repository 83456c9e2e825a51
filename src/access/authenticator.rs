//! Authenticator: maps a bearer token to its caller. Knows the operator's token, API tokens and OAuth tokens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use corbie_mcp::transport::{Token, TokenHolder, TokenSet, TokenVerdict, TokenVerifier};
use corbie_mcp::{TrustLevel, TrustState};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};

use super::token::{OPERATOR, PREFIX, TokenRecord};
use crate::config::secret::Secret;
use crate::util::lock::lock;

/// Authenticates callers for all listeners. The set of tokens can be replaced while they run.
pub struct Authenticator {
    tokens: ArcSwap<TokenSet>,
    /// Trust state of each token holder, by digest. A change applies to open connections.
    trust_states: Mutex<HashMap<[u8; 32], TokenState>>,
    /// Trust state of the operator's token. Another secret gets a new state.
    operator: Mutex<([u8; 32], TrustState)>,
    /// Verifies tokens that corbie did not issue.
    external: Option<Arc<dyn TokenVerifier>>,
}

struct TokenState {
    record: TokenRecord,
    trust: TrustState,
}

/// Difference between two sets of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenChanges {
    pub added: Vec<String>,
    pub revoked: Vec<String>,
    pub changed: Vec<String>,
}

/// The tokens at one point in time.
#[derive(Debug, Clone, Copy)]
pub struct TokenSources<'a> {
    /// The token from the settings.
    pub operator: Option<&'a Secret>,
    /// Its trust level. If `None`, that of other callers on the same listener.
    pub operator_trust: Option<TrustLevel>,
    pub records: &'a [TokenRecord],
    /// Overrides the trust level of every token.
    pub trust_override: Option<TrustLevel>,
}

impl Authenticator {
    pub fn new(known: TokenSources<'_>, others: Option<Arc<dyn TokenVerifier>>) -> Authenticator {
        let callers = Authenticator {
            tokens: ArcSwap::from_pointee(TokenSet::new([])),
            trust_states: Mutex::default(),
            operator: Mutex::new(([0; 32], TrustState::new(None))),
            external: others,
        };
        callers.replace(known);
        callers
    }

    /// Replaces the set of tokens. Connections with a revoked token are closed, all other connections stay open.
    pub fn replace(&self, known: TokenSources<'_>) -> TokenChanges {
        let mut standings = lock(&self.trust_states);
        let mut changed = TokenChanges::default();
        let mut next = HashMap::new();
        for record in known.records {
            let level = known.trust_override.or(record.level());
            let standing = match standings.remove(&record.sha256) {
                // A connection keeps the grant and expiry of its token. If these change, the client must reconnect.
                Some(kept) if kept.record.has_same_permissions(record) => {
                    if kept.record != *record {
                        changed.changed.push(record.name.to_string());
                    }
                    kept.trust.set(level);
                    kept.trust
                }
                kept => {
                    let list = if kept.is_some() { &mut changed.changed } else { &mut changed.added };
                    list.push(record.name.to_string());
                    kept.inspect(|kept| kept.trust.revoke());
                    TrustState::with_expiry(level, record.expires)
                }
            };
            next.insert(record.sha256, TokenState { record: record.clone(), trust: standing });
        }
        for gone in standings.values() {
            gone.trust.revoke();
            changed.revoked.push(gone.record.name.to_string());
        }
        *standings = next;
        let operator = self.operator(known);
        let ours = standings.values().map(|kept| kept.record.token(kept.trust.clone()));
        self.tokens.store(Arc::new(TokenSet::new(operator.into_iter().chain(ours))));
        changed
    }

    fn operator(&self, known: TokenSources<'_>) -> Option<Token> {
        let mut operator = lock(&self.operator);
        let digest: [u8; 32] = known.operator.map(|secret| Sha256::digest(secret.expose()).into()).unwrap_or_default();
        if operator.0 != digest {
            operator.1.revoke();
            *operator = (digest, TrustState::new(None));
        }
        operator.1.set(known.trust_override.or(known.operator_trust));
        known.operator.map(|_| Token::from_digest(OPERATOR, digest, operator.1.clone()).operator())
    }

    /// Whether no token can authenticate a caller.
    pub fn is_empty(&self) -> bool {
        self.tokens.load().is_empty() && self.external.is_none()
    }
}

impl TokenVerifier for Authenticator {
    fn verify_now(&self, token: &str) -> TokenVerdict {
        match (self.tokens.load().verify_now(token), &self.external) {
            (known @ TokenVerdict::Valid(_), _) => known,
            // The prefix marks an API token that is no longer valid, so OAuth is not tried.
            (refused, _) if token.starts_with(PREFIX) => refused,
            (_, Some(others)) => others.verify_now(token),
            (refused, None) => refused,
        }
    }

    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, TokenVerdict> {
        match (self.tokens.load().verify_now(token), &self.external) {
            (TokenVerdict::Valid(_), _) | (_, None) => Box::pin(async move { self.verify_now(token) }),
            (_, Some(others)) => others.verify(token),
        }
    }

    fn challenge(&self) -> Option<String> {
        self.external.as_ref()?.challenge()
    }

    fn insufficient_scope(&self, holder: &TokenHolder) -> Option<String> {
        self.external.as_ref()?.insufficient_scope(holder)
    }

    fn resource_metadata(&self) -> Option<Arc<str>> {
        self.external.as_ref()?.resource_metadata()
    }
}

impl std::fmt::Debug for Authenticator {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Callers({:?})", self.tokens.load())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::super::token::NewToken;
    use super::*;
    use crate::config::trust::TrustLevelSetting;

    fn known(records: &[TokenRecord]) -> TokenSources<'_> {
        TokenSources { operator: None, operator_trust: None, records, trust_override: None }
    }

    fn level(callers: &Authenticator, token: &str) -> Option<TrustLevel> {
        match callers.verify_now(token) {
            TokenVerdict::Valid(holder) => holder.trust.current(TrustLevel::Untrusted),
            _ => None,
        }
    }

    #[test]
    fn m96_a_revoked_token_is_worth_nothing_also_where_it_is_in_use() {
        let (kept, lost) =
            (NewToken::generate("a".parse().unwrap(), None), NewToken::generate("b".parse().unwrap(), None));
        let callers = Authenticator::new(known(&[kept.record.clone(), lost.record.clone()]), None);
        let TokenVerdict::Valid(holder) = callers.verify_now(lost.expose()) else { panic!("known") };
        let changed = callers.replace(known(std::slice::from_ref(&kept.record)));
        assert_eq!(changed, TokenChanges { revoked: vec!["b".into()], ..TokenChanges::default() });
        assert!(holder.trust.is_revoked() && !holder.is_operator);
        assert_eq!(level(&callers, lost.expose()), None);
        assert_eq!(level(&callers, kept.expose()), Some(TrustLevel::Untrusted));
    }

    #[test]
    fn m96_another_level_counts_for_connections_that_are_open() {
        let token = NewToken::generate("a".parse().unwrap(), None);
        let callers = Authenticator::new(known(std::slice::from_ref(&token.record)), None);
        let TokenVerdict::Valid(holder) = callers.verify_now(token.expose()) else { panic!("known") };
        let raised = TokenRecord { trust: Some(TrustLevelSetting::Trusted), ..token.record.clone() };
        assert_eq!(callers.replace(known(std::slice::from_ref(&raised))).changed, ["a"]);
        assert_eq!(holder.trust.current(TrustLevel::Untrusted), Some(TrustLevel::Trusted));
        let all = TokenSources { trust_override: Some(TrustLevel::Verified), ..known(std::slice::from_ref(&raised)) };
        callers.replace(all);
        assert_eq!(holder.trust.current(TrustLevel::Untrusted), Some(TrustLevel::Verified));
    }

    #[test]
    fn m96_a_token_that_is_narrowed_ends_what_it_opened_before() {
        let token = NewToken::generate("a".parse().unwrap(), None);
        let callers = Authenticator::new(known(std::slice::from_ref(&token.record)), None);
        let TokenVerdict::Valid(before) = callers.verify_now(token.expose()) else { panic!("known") };
        let narrow = TokenRecord { tools: Some(vec!["classify_text".into()]), ..token.record.clone() };
        assert_eq!(callers.replace(known(std::slice::from_ref(&narrow))).changed, ["a"]);
        assert!(before.trust.is_revoked());
        let TokenVerdict::Valid(now) = callers.verify_now(token.expose()) else { panic!("known") };
        assert!(!now.trust.is_revoked() && now.permissions.is_some());
    }

    #[test]
    fn another_end_takes_the_place_of_the_old_one() {
        let token = NewToken::generate("a".parse().unwrap(), Some(Duration::from_secs(60)));
        let callers = Authenticator::new(known(std::slice::from_ref(&token.record)), None);
        let over = TokenRecord { expires: Some(SystemTime::UNIX_EPOCH), ..token.record.clone() };
        assert_eq!(callers.replace(known(std::slice::from_ref(&over))).changed, ["a"]);
        assert_eq!(level(&callers, token.expose()), None);
    }

    #[test]
    fn x45_the_operators_token_is_one_of_them() {
        let secret = Secret::new("operators-own");
        let with = |trust| TokenSources { operator: Some(&secret), operator_trust: trust, ..known(&[]) };
        let callers = Authenticator::new(with(Some(TrustLevel::Trusted)), None);
        assert_eq!(level(&callers, "operators-own"), Some(TrustLevel::Trusted));
        callers.replace(with(None));
        assert_eq!(level(&callers, "operators-own"), Some(TrustLevel::Untrusted));
        let TokenVerdict::Valid(before) = callers.verify_now("operators-own") else { panic!("known") };
        assert!(before.is_operator, "the share of connections of one caller does not apply");
        let other = Secret::new("another");
        callers.replace(TokenSources { operator: Some(&other), ..known(&[]) });
        assert!(before.trust.is_revoked(), "who came with the old one has to come again");
        callers.replace(known(&[]));
        assert_eq!(level(&callers, "another"), None);
        assert!(callers.is_empty());
    }
}
