//! PostgreSQL address in the libpq URL syntax. The password is never displayed.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// Address of a database. It displays the host and database, but not the user or password.
#[derive(Clone)]
pub struct Address {
    config: Config,
    /// CA certificates to trust instead of the default roots.
    root_certificates: Option<PathBuf>,
}

/// Timeout for establishing a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Keep-alive and TCP user timeout, after which a silent peer is considered dead.
const TCP_TIMEOUT: Duration = Duration::from_secs(15);

impl Address {
    /// Parses `postgres://user:password@host:5432/database?sslmode=require&sslrootcert=/path`.
    pub fn parse(text: &str) -> Result<Address, String> {
        let (text, roots, mode) = extract_parameters(text);
        let wrong = |why: String| {
            format!("must be a PostgreSQL connection URL, such as `postgres://user:password@host/name`: {why}")
        };
        // A relative path would name a file in the working folder, which may be untrusted.
        if roots.as_ref().is_some_and(|roots| !roots.is_absolute()) {
            return Err(wrong("`sslrootcert` must be an absolute path".to_owned()));
        }
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(wrong("unknown scheme".to_owned()));
        }
        // The driver's message may repeat parts of the address, including the password.
        let mut config: Config = text.parse().map_err(|_| wrong("it cannot be parsed".to_owned()))?;
        if config.get_dbname().is_none() {
            return Err(wrong("no database name".to_owned()));
        }
        // `hostaddr` overrides the host name.
        let is_near = !config.get_hosts().is_empty()
            && config.get_hosts().iter().all(is_local)
            && config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback);
        config.ssl_mode(match mode.as_deref() {
            None if is_near => SslMode::Disable,
            Some("disable") => SslMode::Disable,
            Some("prefer" | "allow") => SslMode::Prefer,
            None | Some("require" | "verify-ca" | "verify-full") => SslMode::Require,
            Some(other) => return Err(wrong(format!("unsupported `sslmode={other}`"))),
        });
        config
            .connect_timeout(CONNECT_TIMEOUT)
            .keepalives_idle(TCP_TIMEOUT)
            .tcp_user_timeout(TCP_TIMEOUT)
            .application_name("corbie");
        Ok(Address { config, root_certificates: roots })
    }

    /// Configuration of the driver.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// CA certificates to trust instead of the default roots.
    pub fn root_certificates(&self) -> Option<&Path> {
        self.root_certificates.as_deref()
    }
}

/// Extracts the parameters that the driver does not support.
fn extract_parameters(text: &str) -> (String, Option<PathBuf>, Option<String>) {
    let Some((before, query)) = text.split_once('?') else { return (text.to_owned(), None, None) };
    let (mut roots, mut mode, mut rest) = (None, None, Vec::new());
    for parameter in query.split('&') {
        let decoded = |value: &str| percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned();
        match parameter.split_once('=') {
            Some(("sslrootcert", path)) => roots = Some(PathBuf::from(decoded(path))),
            Some(("sslmode", value)) => mode = Some(decoded(value)),
            _ => rest.push(parameter),
        }
    }
    let rest = if rest.is_empty() { before.to_owned() } else { format!("{before}?{}", rest.join("&")) };
    (rest, roots, mode)
}

/// Whether the host is on this machine, so that traffic does not cross a network.
fn is_local(host: &Host) -> bool {
    match host {
        #[cfg(unix)]
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.config.get_hosts().iter().zip(self.config.get_ports().iter().chain(std::iter::repeat(&5432)));
        for (at, (host, port)) in hosts.enumerate() {
            let comma = if at > 0 { "," } else { "" };
            match host {
                #[cfg(unix)]
                Host::Unix(path) => write!(f, "{comma}{}", path.display())?,
                Host::Tcp(name) => write!(f, "{comma}{name}:{port}")?,
            }
        }
        write!(f, "/{}", self.config.get_dbname().unwrap_or_default())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn an_address_shows_where_and_not_who() {
        let address = Address::parse("postgres://crow:se%20cret@db.example:5433/nest?sslmode=require").unwrap();
        assert_eq!(address.to_string(), "db.example:5433/nest");
        assert!(!format!("{address:?}").contains("cret"));
    }

    #[test]
    fn what_goes_over_a_network_is_encrypted_unless_somebody_says_otherwise() {
        let mode = |text| Address::parse(text).unwrap().config.get_ssl_mode();
        assert_eq!(mode("postgres://a@db.example/nest"), SslMode::Require);
        assert_eq!(mode("postgres://a@db.example/nest?sslmode=disable"), SslMode::Disable);
        assert_eq!(mode("postgres://a@127.0.0.1/nest"), SslMode::Disable);
        assert_eq!(mode("postgres://a@localhost/nest?hostaddr=10.0.0.5"), SslMode::Require);
        assert_eq!(mode("postgres://a@/nest?hostaddr=10.0.0.5"), SslMode::Require);
        assert_eq!(mode("postgres://a@%2Ftmp%2Fsocket/nest"), SslMode::Disable);
        assert_eq!(mode("postgres://a@localhost/nest?sslmode=verify-full&sslrootcert=/etc/ca.pem"), SslMode::Require);
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        for text in [
            "postgres://a:secret@/x?nonsense=1",
            "mysql://a:secret@h/x",
            "postgres://a:secret@h",
            "postgres://a:secret@h/x?sslmode=often",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
