//! API token record: permissions, and the digest of the secret.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use corbie_mcp::transport::{RateLimit, Token};
use corbie_mcp::{AllowList, Permissions, TrustLevel, TrustState};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::server::RateLimit as Rate;
use crate::config::trust::TrustLevelSetting;

/// A token in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    pub name: TokenName,
    /// SHA-256 of the secret, in hexadecimal.
    #[serde(with = "hex_digest")]
    pub sha256: [u8; 32],
    /// RFC 3339, to the second.
    #[serde(with = "timestamp")]
    pub created: SystemTime,
    #[serde(default, with = "optional_timestamp", skip_serializing_if = "Option::is_none")]
    pub expires: Option<SystemTime>,
    /// Trust level. If missing, that of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<TrustLevelSetting>,
    /// Tools the holder may use; all if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Knowledge bases the holder may use; all if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge_bases: Option<Vec<String>>,
    /// Rate limit of the holder. If missing, that of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<Rate>,
}

/// A new token. Its secret is available only here.
pub struct NewToken {
    pub record: TokenRecord,
    secret: String,
}

/// Name of a token. It is short and plain because it appears in logs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenName(String);

/// Not a valid token name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a token name must have 1 to 64 letters, digits, `.`, `_` or `-`, and begin with a letter or digit; `operator` is \
     reserved"
)]
pub struct ParseTokenNameError;

/// Name of the operator's token from the settings.
pub(super) const OPERATOR: &str = "operator";

/// Prefix of secrets, so that secret scanners recognize them.
pub(super) const PREFIX: &str = "corbie_";

impl NewToken {
    /// Generates a secret of 256 random bits.
    pub fn generate(name: TokenName, expires_in: Option<Duration>) -> NewToken {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes).expect("the operating system provides random numbers");
        let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
        let created = truncate_to_second(SystemTime::now());
        let record = TokenRecord {
            name,
            sha256: Sha256::digest(&secret).into(),
            created,
            expires: expires_in.map(|expires_in| truncate_to_second(created + expires_in)),
            trust: None,
            tools: None,
            knowledge_bases: None,
            rate_limit: None,
        };
        NewToken { record, secret }
    }

    /// The secret, to be displayed once.
    pub fn expose(&self) -> &str {
        &self.secret
    }
}

impl TokenRecord {
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| now >= expires)
    }

    /// Whether two records are equal in the fields that connections keep. Trust levels may differ.
    pub(super) fn has_same_permissions(&self, other: &TokenRecord) -> bool {
        let kept = |record: &TokenRecord| {
            let TokenRecord { name, expires, tools, knowledge_bases, rate_limit, .. } = record.clone();
            (name, expires, tools, knowledge_bases, rate_limit)
        };
        kept(self) == kept(other)
    }

    /// The token for the server, with a trust state.
    pub(super) fn token(&self, standing: TrustState) -> Token {
        let mut token = Token::from_digest(self.name.as_str(), self.sha256, standing);
        if self.tools.is_some() || self.knowledge_bases.is_some() {
            let only = |names: &Option<Vec<String>>| names.as_ref().map_or(AllowList::All, AllowList::names);
            token =
                token.permissions(Permissions { tools: only(&self.tools), collections: only(&self.knowledge_bases) });
        }
        match self.rate_limit.filter(|limit| limit.per_second > 0) {
            Some(limit) => token.rate_limit(RateLimit { per_second: limit.per_second, burst: limit.burst() }),
            None => token,
        }
    }

    pub(super) fn level(&self) -> Option<TrustLevel> {
        self.trust.map(TrustLevelSetting::into)
    }
}

impl TokenName {
    pub const MAX_LEN: usize = 64;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for TokenName {
    type Err = ParseTokenNameError;

    fn from_str(text: &str) -> Result<TokenName, ParseTokenNameError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        let fits = (1..=TokenName::MAX_LEN).contains(&text.len())
            && text.bytes().all(plain)
            && text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text != OPERATOR;
        if fits { Ok(TokenName(text.to_owned())) } else { Err(ParseTokenNameError) }
    }
}

impl TryFrom<String> for TokenName {
    type Error = ParseTokenNameError;

    fn try_from(text: String) -> Result<TokenName, ParseTokenNameError> {
        text.parse()
    }
}

impl From<TokenName> for String {
    fn from(name: TokenName) -> String {
        name.0
    }
}

impl fmt::Display for TokenName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for NewToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NewToken").field("record", &self.record).finish_non_exhaustive()
    }
}

impl Drop for NewToken {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.secret);
    }
}

fn truncate_to_second(time: SystemTime) -> SystemTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs())
}

mod hex_digest {
    use std::fmt::Write;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(digest: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(64);
        for byte in digest {
            let _ = write!(text, "{byte:02x}");
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        let mut digest = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(D::Error::custom("`sha256` must have 64 hexadecimal digits"));
        }
        for (byte, digits) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(D::Error::custom)?;
            *byte = u8::from_str_radix(digits, 16).map_err(D::Error::custom)?;
        }
        Ok(digest)
    }
}

mod timestamp {
    use std::time::SystemTime;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_rfc3339_seconds(*time))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SystemTime, D::Error> {
        humantime::parse_rfc3339(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

mod optional_timestamp {
    use std::time::SystemTime;

    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    struct Timestamp(#[serde(with = "super::timestamp")] SystemTime);

    pub(super) fn serialize<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => super::timestamp::serialize(time, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<SystemTime>, D::Error> {
        Ok(Option::<Timestamp>::deserialize(deserializer)?.map(|Timestamp(time)| time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s01_a_new_token_shows_its_name_and_not_its_secret() {
        let new = NewToken::generate("laptop".parse().expect("name"), Some(Duration::from_secs(60)));
        assert!(new.expose().starts_with(PREFIX) && new.expose().len() == PREFIX.len() + 43);
        assert!(!format!("{new:?}").contains(new.expose()));
        let kept = serde_json::to_string(&new.record).expect("json");
        assert!(!kept.contains(new.expose()));
        assert_eq!(serde_json::from_str::<TokenRecord>(&kept).expect("read"), new.record);
    }

    #[test]
    fn names_are_short_and_plain() {
        for name in ["a", "laptop-2", "ci.build_7"] {
            assert!(name.parse::<TokenName>().is_ok(), "{name}");
        }
        for name in ["", OPERATOR, "-a", "a b", "a\n", "ä", &"a".repeat(65)] {
            assert_eq!(name.parse::<TokenName>(), Err(ParseTokenNameError), "{name}");
        }
    }

    #[test]
    fn two_secrets_are_never_the_same() {
        let make = || NewToken::generate("a".parse().expect("name"), None).record.sha256;
        assert_ne!(make(), make());
    }
}
