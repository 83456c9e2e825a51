//! Validity period of an X.509 certificate. Parses only the DER elements on the path to the two dates, so no ASN.1
//! library is needed.

use std::time::{Duration, SystemTime};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from: SystemTime,
    pub(super) until: SystemTime,
}

const SEQUENCE: u8 = 0x30;
/// Tag of the version, which v1 certificates omit.
const VERSION: u8 = 0xa0;
/// Time types with two-digit and four-digit years.
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// `None` if this is not a certificate.
pub(super) fn validity(certificate: &[u8]) -> Option<Validity> {
    let (_, certificate, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (_, mut body, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
    if let Some((VERSION, _, rest)) = element(body) {
        body = rest;
    }
    // Serial number, algorithm and issuer.
    for _ in 0..3 {
        body = element(body)?.2;
    }
    let (_, dates, _) = element(body).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (from_tag, from, rest) = element(dates)?;
    let (until_tag, until, _) = element(rest)?;
    Some(Validity { from: time(from_tag, from)?, until: time(until_tag, until)? })
}

/// The first element: its tag, its content, and the remaining bytes.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = bytes.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        ..0x80 => (usize::from(first), rest),
        _ => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = digits
                .iter()
                .try_fold(0_usize, |length, digit| Some(length.checked_mul(256)? + usize::from(*digit)))?;
            (length, rest)
        }
    };
    let (inside, rest) = rest.split_at_checked(length)?;
    Some((tag, inside, rest))
}

/// Parses `YYMMDDhhmmssZ`, or with a four-digit year. Dates before 1970 become 1970.
fn time(tag: u8, text: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(text)
        .ok()?
        .strip_suffix('Z')
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: u16 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    if year < 1970 {
        return Some(SystemTime::UNIX_EPOCH);
    }
    let part = |at: usize| rest.get(at..at + 2);
    let written = format!("{year:04}-{}-{}T{}:{}:{}Z", part(0)?, part(2)?, part(4)?, part(6)?, part(8)?);
    // The year 9999 means no expiry, and may be beyond the range of the parser.
    humantime::parse_rfc3339(&written).ok().or_else(|| {
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::from(u32::MAX) * 60)).filter(|_| year == 9999)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dates_of_a_certificate_are_found() {
        let mut parameters = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(1999, 12, 31);
        parameters.not_after = rcgen::date_time_ymd(2051, 2, 3);
        let made = parameters.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let day = |text| humantime::parse_rfc3339(text).unwrap();
        let expected = Validity { from: day("1999-12-31T00:00:00Z"), until: day("2051-02-03T00:00:00Z") };
        assert_eq!(validity(made.der()), Some(expected));
        // Truncated or corrupted input must not panic.
        for end in 0..made.der().len() {
            let _ = validity(&made.der()[..end]);
            let mut changed = made.der().to_vec();
            changed[end] ^= 0xff;
            let _ = validity(&changed);
        }
        assert_eq!(validity(b""), None);
    }
}
