//! Authenticator: maps a bearer token to its caller. Knows the operator's token, API tokens and OAuth tokens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use corbie_mcp::transport::{Authority, Holder, Token, Tokens, Verdict};
use corbie_mcp::{Standing, TrustLevel};
use futures_util::future::BoxFuture;
use sha2::{Digest, Sha256};

use super::token::{OPERATOR, PREFIX, TokenRecord};
use crate::config::secret::Secret;
use crate::locked::locked;

/// Authenticates callers for all listeners. The set of tokens can be replaced while they run.
pub struct Callers {
    tokens: ArcSwap<Tokens>,
    /// Trust state of each token holder, by digest. A change applies to open connections.
    standings: Mutex<HashMap<[u8; 32], Kept>>,
    /// Trust state of the operator's token. Another secret gets a new state.
    operator: Mutex<([u8; 32], Standing)>,
    /// Verifies tokens that corbie did not issue.
    others: Option<Arc<dyn Authority>>,
}

struct Kept {
    record: TokenRecord,
    standing: Standing,
}

/// Difference between two sets of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changed {
    pub added: Vec<String>,
    pub revoked: Vec<String>,
    pub changed: Vec<String>,
}

/// The tokens at one point in time.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The token from the settings.
    pub operator: Option<&'a Secret>,
    /// Its trust level. If `None`, that of other callers on the same listener.
    pub operator_trust: Option<TrustLevel>,
    pub records: &'a [TokenRecord],
    /// Overrides the trust level of every token.
    pub all: Option<TrustLevel>,
}

impl Callers {
    pub fn new(known: Known<'_>, others: Option<Arc<dyn Authority>>) -> Callers {
        let callers = Callers {
            tokens: ArcSwap::from_pointee(Tokens::new([])),
            standings: Mutex::default(),
            operator: Mutex::new(([0; 32], Standing::new(None))),
            others,
        };
        callers.replace(known);
        callers
    }

    /// Replaces the set of tokens. Connections with a revoked token are closed, all other connections stay open.
    pub fn replace(&self, known: Known<'_>) -> Changed {
        let mut standings = locked(&self.standings);
        let mut changed = Changed::default();
        let mut next = HashMap::new();
        for record in known.records {
            let level = known.all.or(record.level());
            let standing = match standings.remove(&record.sha256) {
                // A connection keeps the grant and expiry of its token. If these change, the client must reconnect.
                Some(kept) if kept.record.allows_the_same(record) => {
                    if kept.record != *record {
                        changed.changed.push(record.name.to_string());
                    }
                    kept.standing.set(level);
                    kept.standing
                }
                kept => {
                    let list = if kept.is_some() { &mut changed.changed } else { &mut changed.added };
                    list.push(record.name.to_string());
                    kept.inspect(|kept| kept.standing.revoke());
                    Standing::until(level, record.expires)
                }
            };
            next.insert(record.sha256, Kept { record: record.clone(), standing });
        }
        for gone in standings.values() {
            gone.standing.revoke();
            changed.revoked.push(gone.record.name.to_string());
        }
        *standings = next;
        let operator = self.operator(known);
        let ours = standings.values().map(|kept| kept.record.token(kept.standing.clone()));
        self.tokens.store(Arc::new(Tokens::new(operator.into_iter().chain(ours))));
        changed
    }

    fn operator(&self, known: Known<'_>) -> Option<Token> {
        let mut operator = locked(&self.operator);
        let digest: [u8; 32] = known.operator.map(|secret| Sha256::digest(secret.expose()).into()).unwrap_or_default();
        if operator.0 != digest {
            operator.1.revoke();
            *operator = (digest, Standing::new(None));
        }
        operator.1.set(known.all.or(known.operator_trust));
        known.operator.map(|_| Token::of_digest(OPERATOR, digest, operator.1.clone()))
    }

    /// Whether no token can authenticate a caller.
    pub fn is_empty(&self) -> bool {
        self.tokens.load().is_empty() && self.others.is_none()
    }
}

impl Authority for Callers {
    fn look(&self, token: &str) -> Verdict {
        match (self.tokens.load().look(token), &self.others) {
            (known @ Verdict::Known(_), _) => known,
            // The prefix marks an API token that is no longer valid, so OAuth is not tried.
            (refused, _) if token.starts_with(PREFIX) => refused,
            (_, Some(others)) => others.look(token),
            (refused, None) => refused,
        }
    }

    fn find_out<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Verdict> {
        match (self.tokens.load().look(token), &self.others) {
            (Verdict::Known(_), _) | (_, None) => Box::pin(async move { self.look(token) }),
            (_, Some(others)) => others.find_out(token),
        }
    }

    fn challenge(&self) -> Option<String> {
        self.others.as_ref()?.challenge()
    }

    fn insufficient(&self, holder: &Holder) -> Option<String> {
        self.others.as_ref()?.insufficient(holder)
    }

    fn resource_metadata(&self) -> Option<Arc<str>> {
        self.others.as_ref()?.resource_metadata()
    }
}

impl std::fmt::Debug for Callers {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Callers({:?})", self.tokens.load())
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::super::token::NewToken;
    use super::*;
    use crate::config::trust::Level;

    fn known(records: &[TokenRecord]) -> Known<'_> {
        Known { operator: None, operator_trust: None, records, all: None }
    }

    fn level(callers: &Callers, token: &str) -> Option<TrustLevel> {
        match callers.look(token) {
            Verdict::Known(holder) => holder.standing.now(TrustLevel::Untrusted),
            _ => None,
        }
    }

    #[test]
    fn m96_a_revoked_token_is_worth_nothing_also_where_it_is_in_use() {
        let (kept, lost) = (NewToken::make("a".parse().unwrap(), None), NewToken::make("b".parse().unwrap(), None));
        let callers = Callers::new(known(&[kept.record.clone(), lost.record.clone()]), None);
        let Verdict::Known(holder) = callers.look(lost.expose()) else { panic!("known") };
        let changed = callers.replace(known(std::slice::from_ref(&kept.record)));
        assert_eq!(changed, Changed { revoked: vec!["b".into()], ..Changed::default() });
        assert!(holder.standing.is_revoked());
        assert_eq!(level(&callers, lost.expose()), None);
        assert_eq!(level(&callers, kept.expose()), Some(TrustLevel::Untrusted));
    }

    #[test]
    fn m96_another_level_counts_for_connections_that_are_open() {
        let token = NewToken::make("a".parse().unwrap(), None);
        let callers = Callers::new(known(std::slice::from_ref(&token.record)), None);
        let Verdict::Known(holder) = callers.look(token.expose()) else { panic!("known") };
        let raised = TokenRecord { trust: Some(Level::Trusted), ..token.record.clone() };
        assert_eq!(callers.replace(known(std::slice::from_ref(&raised))).changed, ["a"]);
        assert_eq!(holder.standing.now(TrustLevel::Untrusted), Some(TrustLevel::Trusted));
        let all = Known { all: Some(TrustLevel::Verified), ..known(std::slice::from_ref(&raised)) };
        callers.replace(all);
        assert_eq!(holder.standing.now(TrustLevel::Untrusted), Some(TrustLevel::Verified));
    }

    #[test]
    fn m96_a_token_that_is_narrowed_ends_what_it_opened_before() {
        let token = NewToken::make("a".parse().unwrap(), None);
        let callers = Callers::new(known(std::slice::from_ref(&token.record)), None);
        let Verdict::Known(before) = callers.look(token.expose()) else { panic!("known") };
        let narrow = TokenRecord { tools: Some(vec!["classify_text".into()]), ..token.record.clone() };
        assert_eq!(callers.replace(known(std::slice::from_ref(&narrow))).changed, ["a"]);
        assert!(before.standing.is_revoked());
        let Verdict::Known(now) = callers.look(token.expose()) else { panic!("known") };
        assert!(!now.standing.is_revoked() && now.grant.is_some());
    }

    #[test]
    fn another_end_takes_the_place_of_the_old_one() {
        let token = NewToken::make("a".parse().unwrap(), Some(Duration::from_secs(60)));
        let callers = Callers::new(known(std::slice::from_ref(&token.record)), None);
        let over = TokenRecord { expires: Some(SystemTime::UNIX_EPOCH), ..token.record.clone() };
        assert_eq!(callers.replace(known(std::slice::from_ref(&over))).changed, ["a"]);
        assert_eq!(level(&callers, token.expose()), None);
    }

    #[test]
    fn x45_the_operators_token_is_one_of_them() {
        let secret = Secret::new("operators-own");
        let with = |trust| Known { operator: Some(&secret), operator_trust: trust, ..known(&[]) };
        let callers = Callers::new(with(Some(TrustLevel::Trusted)), None);
        assert_eq!(level(&callers, "operators-own"), Some(TrustLevel::Trusted));
        callers.replace(with(None));
        assert_eq!(level(&callers, "operators-own"), Some(TrustLevel::Untrusted));
        let Verdict::Known(before) = callers.look("operators-own") else { panic!("known") };
        let other = Secret::new("another");
        callers.replace(Known { operator: Some(&other), ..known(&[]) });
        assert!(before.standing.is_revoked(), "who came with the old one has to come again");
        callers.replace(known(&[]));
        assert_eq!(level(&callers, "another"), None);
        assert!(callers.is_empty());
    }
}
