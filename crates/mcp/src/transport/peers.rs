//! Peer credentials of Unix sockets (SO_PEERCRED).

use std::io;

use tokio::net::UnixStream;

/// Users that may connect to a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Peers {
    /// The user of this process, and root.
    OwnUser(u32),
    /// Any user that can open the file: its mode decides.
    WhoeverOpens,
}

impl Peers {
    pub(super) fn own_user() -> io::Result<Peers> {
        // The uid as a peer would see it.
        Ok(Peers::OwnUser(UnixStream::pair()?.0.peer_cred()?.uid()))
    }

    pub(super) fn admit(self, stream: &UnixStream) -> bool {
        match self {
            Peers::OwnUser(own) => stream.peer_cred().is_ok_and(|peer| may_call(own, peer.uid())),
            Peers::WhoeverOpens => true,
        }
    }
}

fn may_call(own_user: u32, peer: u32) -> bool {
    peer == own_user || peer == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_may_not_call() {
        assert!(may_call(1000, 1000) && may_call(1000, 0));
        assert!(!may_call(1000, 1001) && !may_call(0, 1000));
    }
}
