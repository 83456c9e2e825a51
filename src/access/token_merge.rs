//! Three-way merge of token files.
//!
//! Tokens are identified by their secrets, and a token revoked on either side stays revoked. Version numbers increase,
//! but not along a single line: a restored database continues from its backup and assigns numbers that other versions
//! already had.

use std::collections::{HashMap, HashSet};

use super::token::{TokenName, TokenRecord};
use super::token_file::{MAX_TOKENS, TokenFileContent, to_text};

/// A version of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRevision<'a> {
    pub number: i64,
    pub text: &'a str,
}

/// The tokens of earlier versions by secret, each with the first version that contained it.
#[derive(Debug, Default)]
pub struct FirstVersions(HashMap<[u8; 32], i64>);

type TokensByDigest = HashMap<[u8; 32], TokenRecord>;

impl FirstVersions {
    /// Adds a version. A version that cannot be parsed is ignored.
    pub fn record(&mut self, version: FileRevision<'_>) {
        for token in TokenFileContent::parse(version.text).map(|content| content.tokens).unwrap_or_default() {
            let first = self.0.entry(token.sha256).or_insert(version.number);
            *first = version.number.min(*first);
        }
    }
}

/// Merges two files: `base` is the last version this instance agreed on, `theirs` is the current version in the
/// database, and `seen` contains the earlier versions.
///
/// - A token missing in `ours` was revoked here if the base contains it, or if the base is newer than a version that
///   does.
/// - If the database was reset to a version before the base, tokens revoked since then cannot be distinguished from
///   tokens created after the reset. All tokens missing in `ours` then count as revoked.
/// - A token missing in `theirs` was revoked there if an earlier version contains it, or if the base contains it and is
///   older than `theirs`. If the base is not older, a restored database has lost the token, and it is kept.
/// - Two tokens with the same name are both kept, and the second is renamed.
/// - For a token in both files, `theirs` applies unless only this instance has changed it.
///
/// Returns `None` if one of the files cannot be parsed.
pub fn merge_tokens(
    base: Option<FileRevision<'_>>,
    ours: &str,
    theirs: FileRevision<'_>,
    seen: &FirstVersions,
) -> Option<String> {
    let here = TokenFileContent::parse(ours)?.tokens;
    let there = TokenFileContent::parse(theirs.text)?.tokens;
    let (ours, base_tokens) =
        (by_digest(here.clone()), base.map_or(Some(TokensByDigest::new()), |base| parse_tokens(base.text))?);
    let is_theirs = base.is_none_or(|base| base.number < theirs.number);
    let first_seen = |token: &TokenRecord| seen.0.get(&token.sha256).copied().filter(|first| *first < theirs.number);
    let came_before = |token: &TokenRecord, base: FileRevision<'_>| {
        base.number > theirs.number || first_seen(token).is_some_and(|first| first <= base.number)
    };
    let revoked_here = |token: &TokenRecord| {
        let was_known = base_tokens.contains_key(&token.sha256) || base.is_some_and(|base| came_before(token, base));
        was_known && !ours.contains_key(&token.sha256)
    };
    let revoked_there =
        |token: &TokenRecord| first_seen(token).is_some() || (is_theirs && base_tokens.contains_key(&token.sha256));

    let mut tokens: Vec<TokenRecord> = Vec::new();
    for token in there.iter().filter(|token| !revoked_here(token)) {
        let kept = match (base_tokens.get(&token.sha256), ours.get(&token.sha256)) {
            (Some(was), Some(is)) if was == token => is,
            _ => token,
        };
        tokens.push(kept.clone());
    }
    let there: HashSet<[u8; 32]> = there.iter().map(|token| token.sha256).collect();
    let is_new = |token: &&TokenRecord| !there.contains(&token.sha256) && !revoked_there(token);
    tokens.extend(here.iter().filter(is_new).cloned());
    // Beyond the limit, new tokens are dropped and have to be created again. Revoked tokens stay revoked.
    tokens.truncate(MAX_TOKENS);
    make_names_unique(&mut tokens);
    to_text(tokens).ok()
}

fn parse_tokens(text: &str) -> Option<TokensByDigest> {
    Some(by_digest(TokenFileContent::parse(text)?.tokens))
}

fn by_digest(tokens: Vec<TokenRecord>) -> TokensByDigest {
    tokens.into_iter().map(|token| (token.sha256, token)).collect()
}

/// Renames all but the first token of each name.
fn make_names_unique(tokens: &mut [TokenRecord]) {
    let mut names = HashSet::new();
    for token in tokens {
        let name = token.name.clone();
        for number in 2.. {
            if names.insert(token.name.clone()) {
                break;
            }
            token.name = with_number(&name, number);
        }
        if token.name != name {
            tracing::warn!(token = %name, new_name = %token.name, "token name was used on two instances; renamed one of \
                them");
        }
    }
}

/// A name with a numeric suffix, truncated if necessary.
fn with_number(name: &TokenName, number: usize) -> TokenName {
    let end = format!("-{number}");
    let room = TokenName::MAX_LEN - end.len();
    // Names are ASCII.
    let begin = &name.as_str()[..name.as_str().len().min(room)];
    format!("{begin}{end}").parse().unwrap_or_else(|_| name.clone())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::super::token::NewToken;
    use super::*;

    fn token(name: &str) -> TokenRecord {
        NewToken::generate(name.parse().unwrap(), None).record.clone()
    }

    fn text(tokens: &[&TokenRecord]) -> String {
        to_text(tokens.iter().map(|token| (*token).clone()).collect()).unwrap()
    }

    /// A version number and the tokens of that version.
    type VersionTokens<'a> = (i64, &'a [&'a TokenRecord]);

    fn merging(
        base: Option<VersionTokens<'_>>,
        ours: &[&TokenRecord],
        theirs: VersionTokens<'_>,
        former: &[VersionTokens<'_>],
    ) -> Vec<TokenRecord> {
        let mut seen = FirstVersions::default();
        for (number, tokens) in former {
            seen.record(FileRevision { number: *number, text: &text(tokens) });
        }
        let base = base.map(|(number, tokens)| (number, text(tokens)));
        let base = base.as_ref().map(|(number, text)| FileRevision { number: *number, text });
        let (number, theirs) = (theirs.0, text(theirs.1));
        let merged = merge_tokens(base, &text(ours), FileRevision { number, text: &theirs }, &seen).unwrap();
        TokenFileContent::parse(&merged).unwrap().tokens
    }

    /// The names of the merged tokens, in order.
    fn names(tokens: &[TokenRecord]) -> String {
        tokens.iter().map(|token| token.name.to_string()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_was_made_and_revoked_in_two_places_comes_together() {
        let (a, b, c, d) = (token("a"), token("b"), token("c"), token("d"));
        let base = (3, &[&a, &b][..]);
        let after =
            |ours: &[&TokenRecord], theirs: &[&TokenRecord]| names(&merging(Some(base), ours, (4, theirs), &[base]));
        assert_eq!(after(&[&a, &b, &c], &[&a, &b, &d]), "a b d c", "both have made one");
        assert_eq!(after(&[&a, &c], &[&a, &b]), "a c", "revoked here");
        assert_eq!(after(&[&a, &b, &c], &[&b]), "b c", "revoked there");
        assert_eq!(after(&[&a, &b, &c], &[&a, &b, &token("c")]), "a b c c-2", "one name, two secrets");
        let nothing = FileRevision { number: 1, text: "" };
        assert_eq!(merge_tokens(None, "not tokens", nothing, &FirstVersions::default()), None);
    }

    #[test]
    fn s05_a_secret_that_was_replaced_stays_replaced() {
        let (old, new, other) = (token("laptop"), token("laptop"), token("other"));
        let base = (1, &[&old][..]);
        for (ours, theirs) in [([&new].as_slice(), [&old, &other].as_slice()), (&[&old, &other], &[&new])] {
            let tokens = merging(Some(base), ours, (2, theirs), &[]);
            assert!(tokens.contains(&new) && tokens.contains(&other));
            assert!(tokens.iter().all(|token| token.sha256 != old.sha256), "the old secret is gone");
        }
        // A change made only here applies.
        let mut narrowed = old.clone();
        narrowed.tools = Some(vec!["knowledge-*".to_owned()]);
        let tokens = merging(Some(base), &[&narrowed], (2, &[&old, &other]), &[]);
        assert!(tokens.contains(&narrowed) && tokens.contains(&other));
    }

    #[test]
    fn s05_without_a_base_what_is_new_joins_and_what_was_revoked_does_not_come_back() {
        let (a, b, c) = (token("a"), token("b"), token("c"));
        let former: [VersionTokens<'_>; 3] = [(1, &[&a]), (2, &[&a, &b]), (3, &[&a])];
        assert_eq!(names(&merging(None, &[&b, &c], (3, &[&a]), &former)), "a c");
        // A base that is behind makes no difference.
        assert_eq!(names(&merging(Some((1, &[&a])), &[&a, &b], (3, &[&a]), &former)), "a");
    }

    #[test]
    fn s05_with_a_database_that_was_restored_nothing_that_was_revoked_comes_back() {
        let (kept, before, since, lost) = (token("kept"), token("before"), token("since"), token("lost"));
        // The base is version 10. After the backup of version 5, `before` was revoked and `lost` was created.
        let base = Some((10, &[&kept, &lost][..]));
        let backup: VersionTokens<'_> = (5, &[&kept, &before]);
        assert_eq!(names(&merging(base, &[&kept, &lost], backup, &[backup])), "kept lost");
        // Another instance continued from the backup and revoked a token. Tokens created there have to be created
        // again.
        let further: VersionTokens<'_> = (6, &[&before, &since]);
        assert_eq!(names(&merging(base, &[&kept, &lost], further, &[backup])), "lost");
        // The versions of the restored database have reached the number of the base.
        let met: VersionTokens<'_> = (10, &[&kept, &before, &since]);
        assert_eq!(names(&merging(base, &[&kept, &lost], met, &[backup, (9, &[&kept, &before])])), "kept since lost");
    }

    #[test]
    fn a_long_name_has_room_for_a_number() {
        let long = "n".repeat(TokenName::MAX_LEN);
        let tokens = merging(None, &[&token(&long)], (1, &[&token(&long)]), &[]);
        assert_eq!(tokens[0].name.as_str(), long);
        assert_eq!(tokens[1].name.as_str(), format!("{}-2", &long[2..]));
    }
}
