//! Mock provider that echoes the prompt, so that every response can be matched to its request.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

#[derive(Debug)]
pub(crate) struct FakeUpstream {
    binary: PathBuf,
    address: SocketAddr,
    child: Option<Child>,
}

impl FakeUpstream {
    pub(crate) fn start(binary: PathBuf, address: SocketAddr) -> io::Result<FakeUpstream> {
        let mut upstream = FakeUpstream { binary, address, child: None };
        upstream.restart()?;
        Ok(upstream)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn restart(&mut self) -> io::Result<()> {
        let port = self.address.port().to_string();
        let mut command = Command::new(&self.binary);
        command.args(["--port", &port]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn()?);
        Ok(())
    }
}

impl Drop for FakeUpstream {
    fn drop(&mut self) {
        self.kill();
    }
}
