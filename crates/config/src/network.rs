//! `network`: egress policy.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::address::ParseAddressError;

/// Outgoing connections: providers, proxies, MCP servers and the trace collector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Network {
    /// Link-local, cloud metadata, multicast and broadcast addresses (`169.254.10.1`) or networks (`169.254.10.0/24`)
    /// that corbie may connect to. All other such addresses are refused, also when a host name resolves to them.
    /// Loopback and private networks are always allowed.
    #[schemars(length(max = 64))]
    pub allowed_addresses: Vec<AddressBlock>,
}

/// An address or a CIDR block: `169.254.10.1`, `169.254.10.0/24`, `fe80::/10`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressBlock {
    address: IpAddr,
    /// Prefix length: at most 32 for IPv4 and 128 for IPv6.
    length: u8,
}

impl AddressBlock {
    pub const fn new(address: IpAddr, length: u8) -> AddressBlock {
        AddressBlock { address, length }
    }

    /// An address of the other IP version is never contained.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (own, other, width) = match (self.address, address) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (u128::from(own.to_bits()), u128::from(other.to_bits()), 32),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits(), other.to_bits(), Ipv6Addr::BITS),
            _ => return false,
        };
        let ignored = width - u32::from(self.length);
        // A shift by 128 bits overflows; the prefix length is then 0 and everything matches.
        (own ^ other).checked_shr(ignored).unwrap_or(0) == 0
    }
}

impl FromStr for AddressBlock {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let not = ParseAddressError("address block");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| not)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => most,
            // Rust also parses `+8`.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().map_err(|_| not)?,
            Some(_) => return Err(not),
        };
        if length > most { Err(not) } else { Ok(AddressBlock { address, length }) }
    }
}

impl fmt::Display for AddressBlock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.length) {
            (IpAddr::V4(address), 32) => address.fmt(out),
            (IpAddr::V6(address), 128) => address.fmt(out),
            (address, length) => write!(out, "{address}/{length}"),
        }
    }
}

impl TryFrom<String> for AddressBlock {
    type Error = ParseAddressError;

    fn try_from(text: String) -> Result<Self, ParseAddressError> {
        text.parse()
    }
}

impl From<AddressBlock> for String {
    fn from(block: AddressBlock) -> Self {
        block.to_string()
    }
}

impl JsonSchema for AddressBlock {
    fn schema_name() -> Cow<'static, str> {
        "AddressBlock".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "address-block", "examples": ["169.254.10.0/24"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p21_blocks_of_addresses_are_read_as_they_are_written() {
        for text in ["169.254.10.1", "169.254.10.0/24", "0.0.0.0/0", "fe80::/10", "fd00:ec2::254", "::/0"] {
            assert_eq!(text.parse::<AddressBlock>().unwrap().to_string(), text);
        }
        for text in ["", "169.254.10.1/33", "169.254.10.0/", "169.254.10.0/+8", "fe80::/129", "localhost", "10.0/8"] {
            assert!(text.parse::<AddressBlock>().is_err(), "{text}");
        }
    }

    #[test]
    fn p21_a_block_holds_what_begins_like_it() {
        let holds =
            |block: &str, address: &str| block.parse::<AddressBlock>().unwrap().contains(address.parse().unwrap());
        assert!(holds("10.1.2.0/23", "10.1.3.255") && !holds("10.1.2.0/23", "10.1.4.0"));
        assert!(holds("10.1.2.3", "10.1.2.3") && !holds("10.1.2.3", "10.1.2.2"));
        assert!(holds("fe80::/10", "febf::1") && !holds("fe80::/10", "fec0::1"));
        assert!(holds("::/0", "ff02::1") && holds("0.0.0.0/0", "255.255.255.255") && !holds("0.0.0.0/0", "::1"));
    }
}
