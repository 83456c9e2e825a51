//! MCP protocol versions and version negotiation.
//!
//! No I/O, no clock. The two eras differ in structure. A *legacy* peer starts with `initialize`; a *modern* peer sends
//! its version in the `_meta` of every request, without a handshake.

use std::fmt;

use serde::{Serialize, Serializer};

/// A released protocol version. Ordered by age, so that `version >= Version::V2025_06_18` works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
}

/// The protocol generation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` handshake, server requests, sessions.
    Legacy,
    /// Stateless: `_meta` on every request, `resultType` on every result.
    Modern,
}

/// Origin of an `initialize`, which determines the default for a peer without a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitializeOrigin {
    /// `POST /mcp/initialize`: the classification clients of 2024.
    Rest,
    /// Everything else.
    JsonRpc,
}

impl Version {
    /// All versions, newest first: the order in which they are advertised to clients.
    pub const ALL: [Version; 5] =
        [Version::V2026_07_28, Version::V2025_11_25, Version::V2025_06_18, Version::V2025_03_26, Version::V2024_11_05];

    /// The newest version with an `initialize` handshake.
    pub const NEWEST_LEGACY: Version = Version::V2025_11_25;

    /// Assumed for a peer that never declared a version. It has `structuredContent`, and deployed clients that send an
    /// empty version accept nothing newer.
    pub const DEFAULT: Version = Version::V2025_06_18;

    pub fn as_str(self) -> &'static str {
        match self {
            Version::V2024_11_05 => "2024-11-05",
            Version::V2025_03_26 => "2025-03-26",
            Version::V2025_06_18 => "2025-06-18",
            Version::V2025_11_25 => "2025-11-25",
            Version::V2026_07_28 => "2026-07-28",
        }
    }

    pub fn parse(text: &str) -> Option<Version> {
        Version::ALL.into_iter().find(|version| version.as_str() == text)
    }

    pub fn era(self) -> Era {
        if self >= Version::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }
}

/// The version of the `initialize` reply.
///
/// A legacy version is echoed; an unknown or modern one gets our newest legacy version, because a handshake is always
/// legacy; a missing one gets the default of its origin.
pub(crate) fn negotiate(asked: Option<&str>, opening: InitializeOrigin) -> Version {
    match asked.filter(|text| !text.is_empty()) {
        Some(text) => match Version::parse(text) {
            Some(version) if version.era() == Era::Legacy => version,
            _ => Version::NEWEST_LEGACY,
        },
        None => match opening {
            InitializeOrigin::Rest => Version::V2024_11_05,
            InitializeOrigin::JsonRpc => Version::DEFAULT,
        },
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x01_a_legacy_version_is_echoed() {
        for version in Version::ALL.into_iter().filter(|v| v.era() == Era::Legacy) {
            assert_eq!(negotiate(Some(version.as_str()), InitializeOrigin::JsonRpc), version);
        }
    }

    #[test]
    fn x01_an_unknown_or_modern_version_gets_the_newest_legacy_one() {
        for asked in ["2026-07-28", "1900-01-01", "latest"] {
            assert_eq!(negotiate(Some(asked), InitializeOrigin::JsonRpc), Version::V2025_11_25);
        }
    }

    #[test]
    fn x01_an_absent_or_empty_version_gets_the_default_of_its_place() {
        for asked in [None, Some("")] {
            assert_eq!(negotiate(asked, InitializeOrigin::JsonRpc), Version::V2025_06_18);
            assert_eq!(negotiate(asked, InitializeOrigin::Rest), Version::V2024_11_05);
        }
    }
}
