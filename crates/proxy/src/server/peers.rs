//! Identities of clients.

use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    budget::{Budget, Budgets, Peer},
    digest::{Digest, hash, hexadecimal},
    limits::Limits,
};

/// Identity of a client: its proven credentials, or else its address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity {
    /// Digest of its certificate, which the server has verified.
    pub(crate) certificate: Option<Digest>,
    /// Digest of its token.
    pub(crate) token: Option<Digest>,
    /// True if the token came with the session only: other calls of this client have none.
    pub(crate) late: bool,
    pub(crate) address: IpAddr,
}

impl Identity {
    /// Creates the identity of a client at this address without credentials.
    pub(crate) fn at(address: IpAddr) -> Self {
        Self { certificate: None, token: None, late: false, address: canonical(address) }
    }

    /// Creates the identity of the program that contains the server.
    pub(crate) fn own() -> Self {
        Self::at(IpAddr::V4(Ipv4Addr::UNSPECIFIED))
    }

    /// Returns true if a call of `caller` may reach a session of this identity.
    pub(crate) fn admits(&self, caller: &Self) -> bool {
        if self.certificate != caller.certificate {
            return false;
        }
        match (self.token, caller.token) {
            (Some(own), Some(theirs)) => own == theirs,
            (None, None) => self.certificate.is_some() || self.address == caller.address,
            (Some(_), None) => self.late && self.address == caller.address,
            (None, Some(_)) => false,
        }
    }

    /// Returns the owner name in a state for arrays of an authenticated client: a hash of its
    /// identity, the same on every server.
    pub(crate) fn owner(&self) -> Option<String> {
        let proofs = [self.certificate, self.token];
        proofs.iter().any(Option::is_some).then(|| {
            let mut bytes = b"owner of arrays in a state of serdes".to_vec();
            for proof in proofs {
                bytes.push(u8::from(proof.is_some()));
                bytes.extend(proof.unwrap_or_default());
            }
            // Hash the digest again: from the digest itself a short token could be guessed.
            hexadecimal(&hash(&bytes), 32)
        })
    }

    const fn key(&self) -> Key {
        match (self.certificate, self.token) {
            (None, None) => Key::Address(self.address),
            (certificate, token) => Key::Proved(certificate, token),
        }
    }
}

/// For logs; contains no token.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(digest) = self.certificate {
            write!(f, "certificate {} ", hexadecimal(&digest, 8))?;
        }
        if self.token.is_some() {
            f.write_str("token ")?;
        }
        write!(f, "at {}", self.address)
    }
}

/// Maps all addresses that a single machine can choose between to one: both loopbacks, both forms
/// of IPv4, and the addresses of an IPv6 network.
fn canonical(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(Ipv6Addr::LOCALHOST) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    Proved(Option<Digest>, Option<Digest>),
    Address(IpAddr),
}

/// The caller of a call, and its connection.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) identity: Identity,
    pub(crate) peer: Arc<Peer>,
    /// Budget for sessions of the connection.
    pub(crate) sessions: Budget,
    /// True if a token is to come with the session.
    pub(crate) token_to_come: bool,
}

/// The peers that hold resources.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    known: Mutex<HashMap<Key, Weak<Peer>>>,
    next: AtomicU64,
}

impl Peers {
    /// Returns the peer of an identity.
    pub(crate) fn of(&self, identity: &Identity, limits: &Limits) -> Arc<Peer> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = known.get(&identity.key()).and_then(Weak::upgrade) {
            return peer;
        }
        // Remove dropped peers when the map is full, so that the cost is amortized.
        if known.len() == known.capacity() {
            known.retain(|_, peer| peer.strong_count() > 0);
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let peer = Arc::new(Peer { number, budgets: Budgets::of_peer(limits) });
        known.insert(identity.key(), Arc::downgrade(&peer));
        peer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Identity {
        Identity::at(address.parse().unwrap())
    }

    #[test]
    fn session_admits_only_the_identity_that_opened_it() {
        let token = |byte| Identity { token: Some([byte; 32]), ..at("192.0.2.1") };
        let certificate = |byte| Identity { certificate: Some([byte; 32]), ..at("192.0.2.1") };
        assert!(at("192.0.2.1").admits(&at("192.0.2.1")));
        assert!(!at("192.0.2.1").admits(&at("192.0.2.2")));
        assert!(!at("192.0.2.1").admits(&token(1)));
        assert!(token(1).admits(&Identity { token: Some([1; 32]), ..at("192.0.2.9") }));
        assert!(!token(1).admits(&token(2)));
        assert!(!token(1).admits(&at("192.0.2.1")));
        assert!(certificate(1).admits(&Identity { certificate: Some([1; 32]), ..at("192.0.2.9") }));
        assert!(!certificate(1).admits(&certificate(2)));
        assert!(!certificate(1).admits(&at("192.0.2.1")));
        let late = Identity { late: true, ..token(1) };
        assert!(late.admits(&at("192.0.2.1")) && !late.admits(&at("192.0.2.2")));
    }

    #[test]
    fn peer_is_one_machine_under_any_of_its_addresses() {
        let peers = Peers::default();
        let limits = Limits::default();
        let number = |address| peers.of(&at(address), &limits).number;
        let held = peers.of(&at("127.0.0.1"), &limits);
        assert_eq!(number("::1"), held.number);
        assert_eq!(number("::ffff:127.0.0.1"), held.number);
        assert_ne!(number("127.0.0.2"), held.number);
        let held = peers.of(&at("2001:db8:0:1::5"), &limits);
        assert_eq!(number("2001:db8:0:1:ffff::6"), held.number);
        assert_ne!(number("2001:db8:0:2::5"), held.number);
    }

    #[test]
    fn peers_that_are_gone_are_forgotten() {
        let peers = Peers::default();
        let limits = Limits::default();
        for number in 0..10_000_u32 {
            peers.of(&Identity::at(Ipv4Addr::from(number).into()), &limits);
        }
        assert!(peers.known.lock().unwrap().len() < 100);
    }
}
