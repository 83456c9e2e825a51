//! Validity period of an X.509 certificate.

use std::time::SystemTime;

use x509_cert::Certificate;
use x509_cert::der::Decode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from: SystemTime,
    pub(super) until: SystemTime,
}

/// `None` if this is not a certificate.
pub(super) fn validity(certificate: &[u8]) -> Option<Validity> {
    let validity = Certificate::from_der(certificate).ok()?.tbs_certificate.validity;
    Some(Validity { from: validity.not_before.to_system_time(), until: validity.not_after.to_system_time() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_period_is_parsed() {
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
