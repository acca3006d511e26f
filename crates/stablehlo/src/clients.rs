//! Versions of the programs that the proxy's clients send.

use super::StableHloVersion;

/// A release whose proxy client is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProxyClient {
    /// The release: `jaxlib-0.10.2`.
    pub release: &'static str,
    /// The version at which it writes every program: about twelve weeks old on its day.
    pub writes: StableHloVersion,
}

impl ProxyClient {
    pub(super) const fn new(release: &'static str, writes: StableHloVersion) -> Self {
        Self { release, writes }
    }

    /// Returns the way in which its programs reach a plug-in that reads up to version `reader`.
    pub fn passage(&self, reader: StableHloVersion) -> Passage {
        if self.writes.release() <= reader.release() {
            Passage::AsTheyAre
        } else if reader >= StableHloVersion::OLDEST_TARGET
            && self.writes.release() <= StableHloVersion::NEWEST_KNOWN
        {
            Passage::Rewritten
        } else {
            Passage::Bridged
        }
    }
}

/// The way in which the programs of a client reach a plug-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Passage {
    /// Unchanged: the plug-in knows everything that can be in them.
    AsTheyAre,
    /// Rewritten: new features are replaced where the older version can express them.
    Rewritten,
    /// Through a [`ProgramBridge`](super::ProgramBridge), which new features need.
    Bridged,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_pass_by_the_versions_of_client_and_plugin() {
        let passages = |reader: &str| {
            let reader = reader.parse().unwrap();
            ProxyClient::KNOWN.iter().map(|client| client.passage(reader)).collect::<Vec<_>>()
        };
        use Passage::{AsTheyAre, Bridged, Rewritten};
        assert_eq!(passages("1.20.0"), [AsTheyAre; 6]);
        assert!(passages("1.13.3").ends_with(&[Rewritten; 2]));
        assert_eq!(passages("1.13.0")[2], AsTheyAre);
        assert_eq!(passages("1.12.0")[..2], [AsTheyAre, Rewritten]);
        assert_eq!(passages("0.20.0")[..2], [Bridged, Bridged]);
        assert!(ProxyClient::KNOWN.is_sorted_by_key(|client| client.writes));
    }
}
