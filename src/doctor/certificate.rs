//! Checks the validity period of the TLS certificate.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::x509_validity::{Validity, validity};
use super::{Check, Findings, SetupContext};

/// Larger than any certificate chain.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Remaining validity below which the check reports a renewal.
const EXPIRY_WARNING: Duration = Duration::from_secs(14 * 24 * 3600);

pub(super) async fn check(subject: Arc<SetupContext>) -> Option<Check> {
    let tls = subject.config.as_ref()?.server.tls.clone()?;
    let read = tokio::task::spawn_blocking(move || -> (String, std::io::Result<Vec<u8>>) {
        let read = || {
            let mut pem = Vec::new();
            File::open(&tls.certificate)?.take(MAX_FILE_BYTES).read_to_end(&mut pem)?;
            Ok(pem)
        };
        (tls.certificate.display().to_string(), read())
    });
    let (path, pem) = read.await.ok()?;
    let mut findings = Findings::default();
    match pem {
        Err(error) => findings.problem(format!("`{path}` cannot be read: {error}"), "correct `server.tls.certificate`"),
        Ok(pem) => match CertificateDer::from_pem_slice(&pem).ok().and_then(|certificate| validity(&certificate)) {
            None => {
                findings.problem(format!("`{path}` contains no PEM certificate"), "correct `server.tls.certificate`")
            }
            Some(validity) => check_validity(&path, validity, SystemTime::now(), &mut findings),
        },
    }
    findings.check("certificate")
}

fn check_validity(path: &str, Validity { from, until }: Validity, now: SystemTime, findings: &mut Findings) {
    let day = |time: SystemTime| humantime::format_rfc3339_seconds(time).to_string();
    let advice = "replace it with a new certificate; the server reloads it automatically";
    if now > until {
        findings.problem(format!("`{path}` expired on {}", day(until)), advice);
    } else if now < from {
        findings.problem(
            format!("`{path}` is not valid before {}", day(from)),
            "check the clock of this machine, or replace the certificate",
        );
    } else if now + EXPIRY_WARNING > until {
        findings.note(format!("`{path}` expires on {}", day(until)), advice);
    } else {
        findings.ok(format!("`{path}` is valid until {}", day(until)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn state_depends_on_the_date() {
        let day = |day: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(day * 24 * 3600);
        let state = |now| {
            let mut findings = Findings::default();
            check_validity("x", Validity { from: day(100), until: day(200) }, now, &mut findings);
            findings.check("certificate").unwrap().state
        };
        assert_eq!([99, 101, 185, 187, 199, 201].map(|now| state(day(now))), {
            use State::{Ok, Problem, Warning};
            [Problem, Ok, Ok, Warning, Warning, Problem]
        });
    }
}
