//! Egress policy: the addresses that corbie connects to.
//!
//! Protects against SSRF. A person who can configure a server, or controls its DNS name, must not be able to direct
//! corbie to addresses that only this machine can reach: cloud metadata services issue credentials to local callers. A
//! server may be anywhere, including this machine and private networks, but not at a link-local or cloud metadata
//! address. The check applies to the address of the connection, after name resolution, so that no name bypasses it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use url::{Host, Url};

use super::Config;
use super::address::HttpUrl;
use super::diagnostic::KeyPath;
use super::external_classifier::SettingDiagnostic;
use super::network::{AddressBlock, Network};

/// Permits all addresses except the forbidden ones, unless the operator allows them. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct EgressPolicy {
    allowed: Arc<[AddressBlock]>,
}

/// The address is forbidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("address blocked by the egress policy (link-local or cloud metadata)")]
pub struct EgressDenied;

/// Addresses at which no provider or other server can be.
const DENIED_BLOCKS: [AddressBlock; 12] = [
    // This network: most systems treat `0.0.0.0` as the local host.
    ipv4_block(0, 0, 0, 0, 8),
    // Link-local, including the metadata service of most clouds at 169.254.169.254.
    ipv4_block(169, 254, 0, 0, 16),
    // Metadata services of Alibaba, Azure and Oracle.
    ipv4_block(100, 100, 100, 200, 32),
    ipv4_block(168, 63, 129, 16, 32),
    ipv4_block(192, 0, 0, 192, 32),
    // Multicast, broadcast, unspecified and link-local.
    ipv4_block(224, 0, 0, 0, 4),
    ipv4_block(255, 255, 255, 255, 32),
    ipv6_block([0; 8], 128),
    ipv6_block([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    // Ranges that Amazon and Google reserve for their machines, including metadata services.
    ipv6_block([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32),
    ipv6_block([0xfd20, 0xce, 0, 0, 0, 0, 0, 0], 32),
    ipv6_block([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];

/// Error for a forbidden address.
const DENIED_MESSAGE: &str = "is blocked by the egress policy (link-local or cloud metadata address); use another \
address (`127.0.0.1` for this machine), or allow it in `network.allowed_addresses`";

impl EgressPolicy {
    pub fn new(settings: &Network) -> EgressPolicy {
        EgressPolicy { allowed: settings.allowed_addresses.clone().into() }
    }

    /// Whether an address may be connected to. For an address with an embedded IPv4 address, both count.
    pub fn check(&self, address: IpAddr) -> Result<(), EgressDenied> {
        let meant = [Some(address), embedded_ipv4(address)];
        let any_of = |blocks: &[AddressBlock]| {
            meant.iter().flatten().any(|address| blocks.iter().any(|block| block.contains(*address)))
        };
        if any_of(&DENIED_BLOCKS) && !any_of(&self.allowed) { Err(EgressDenied) } else { Ok(()) }
    }

    /// The same for a URL with an IP address. The address of a host name is available only after resolution.
    pub fn check_url(&self, url: &Url) -> Result<(), EgressDenied> {
        match url.host() {
            Some(Host::Ipv4(address)) => self.check(address.into()),
            Some(Host::Ipv6(address)) => self.check(address.into()),
            Some(Host::Domain(_)) | None => Ok(()),
        }
    }
}

/// The IPv4 address embedded in an IPv6 address that a system or gateway translates.
fn embedded_ipv4(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else { return None };
    let segments = address.segments();
    let bits = |first: usize| u32::from(segments[first]) << 16 | u32::from(segments[first + 1]);
    let inner = match segments {
        // Unspecified and loopback embed none.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
        // IPv4-compatible, IPv4-mapped and IPv4-translated.
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => bits(6),
        // NAT64, with the well-known and the local-use prefix.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] => bits(6),
        // 6to4.
        [0x2002, ..] => bits(1),
        // Teredo, which stores it inverted.
        [0x2001, 0, ..] => !bits(6),
        // ISATAP.
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => bits(6),
        _ => return None,
    };
    Some(Ipv4Addr::from_bits(inner).into())
}

const fn ipv4_block(a: u8, b: u8, c: u8, d: u8, length: u8) -> AddressBlock {
    AddressBlock::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), length)
}

const fn ipv6_block(segments: [u16; 8], length: u8) -> AddressBlock {
    let [a, b, c, d, e, f, g, h] = segments;
    AddressBlock::new(IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), length)
}

impl Config {
    /// URLs with a forbidden IP address. Host names are checked when they are resolved.
    pub(super) fn denied_addresses(&self) -> Vec<SettingDiagnostic> {
        let policy = EgressPolicy::new(&self.network);
        let mut named: Vec<(KeyPath, &Option<HttpUrl>)> = Vec::new();
        for (name, provider) in &self.providers.named {
            let path = KeyPath::default().key("providers").key(name);
            named.push((path.key("base_url"), &provider.base_url));
            named.push((path.key("proxy"), &provider.proxy));
        }
        named.push((KeyPath::dotted("classification.mcp_server.url"), &self.classification.mcp_server.url));
        named.push((KeyPath::dotted("telemetry.otlp.endpoint"), &self.telemetry.otlp.endpoint));
        if let Some(older) = &self.classifier.mcp_category_model {
            named.push((KeyPath::dotted("classifier.mcp_category_model.url"), &older.url));
        }
        let mut urls: Vec<(KeyPath, &Url)> =
            named.into_iter().filter_map(|(path, url)| Some((path, url.as_ref()?.expose()))).collect();
        if let Some(oauth) = &self.server.oauth {
            urls.push((KeyPath::dotted("server.oauth.issuer"), oauth.issuer.url()));
            urls.extend(oauth.jwks_url.iter().map(|url| (KeyPath::dotted("server.oauth.jwks_url"), url.expose())));
        }
        let wrong = urls.into_iter().filter(|(_, url)| policy.check_url(url).is_err());
        wrong.map(|(path, _)| SettingDiagnostic { path, message: DENIED_MESSAGE.into() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permitted(allowed: &[&str], address: &str) -> bool {
        let allowed = allowed.iter().map(|block| block.parse().unwrap()).collect();
        EgressPolicy { allowed }.check(address.parse().unwrap()).is_ok()
    }

    const METADATA: [&str; 26] = [
        "0.0.0.0",
        "0.1.2.3",
        "169.254.0.1",
        "169.254.169.254",
        "169.254.255.255",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "224.0.0.1",
        "239.255.255.255",
        "255.255.255.255",
        "::",
        "::2",
        "fe80::1",
        "febf::1",
        "ff02::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "::ffff:0:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "2001:0:1:2:3:4:5601:5601",
        "2a00::200:5efe:a9fe:a9fe",
    ];

    #[test]
    fn p21_the_link_and_the_metadata_of_clouds_are_forbidden_however_they_are_written() {
        for address in METADATA {
            assert!(!permitted(&[], address), "{address}");
        }
    }

    #[test]
    fn p21_this_machine_private_networks_and_the_world_are_permitted() {
        for address in [
            "127.0.0.1",
            "127.1.2.3",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "100.100.100.201",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.0",
            "192.0.0.193",
            "223.255.255.255",
            "1.1.1.1",
            "::1",
            "fd00::1",
            "fd00:ec3::254",
            "fec0::1",
            "2606:4700:4700::1111",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::101:101",
            "2002:a00:1::1",
        ] {
            assert!(permitted(&[], address), "{address}");
        }
    }

    #[test]
    fn p21_the_operator_allows_single_addresses_and_networks_in_every_form_of_theirs() {
        assert!(permitted(&["169.254.10.0/24"], "169.254.10.7"));
        assert!(permitted(&["169.254.10.0/24"], "::ffff:169.254.10.7"));
        assert!(!permitted(&["169.254.10.0/24"], "169.254.11.7"));
        assert!(permitted(&["fe80::/10"], "fe80::1"));
        assert!(permitted(&["10.0.0.1", "169.254.1.1"], "169.254.1.1"));
        assert!(!permitted(&["169.254.1.1"], "169.254.1.2"));
        // A block of the other address family does not apply.
        assert!(!permitted(&["::/0"], "169.254.1.1"));
    }

    #[test]
    fn p21_a_url_is_judged_by_the_number_it_names_in_any_spelling() {
        let judge = |url: &str| EgressPolicy::default().check_url(&url.parse().unwrap());
        for url in [
            "http://169.254.169.254/latest",
            "http://2852039166/",
            "http://0xa9.254.43518/",
            "http://0251.0376.0251.0376/",
            "https://[::ffff:a9fe:a9fe]/",
            "http://user@0:80/",
        ] {
            assert_eq!(judge(url), Err(EgressDenied), "{url}");
        }
        for url in ["http://127.0.0.1:11434/v1", "http://169.254.169.254.example/", "https://api.example"] {
            assert_eq!(judge(url), Ok(()), "{url}");
        }
    }
}
