//! Hashes that stand for certificates and tokens, whose text is not kept.

use ring::digest;

/// A hash that stands for a certificate or a token.
pub(crate) type Digest = [u8; 32];

/// SHA-256.
pub(crate) fn hash(bytes: &[u8]) -> Digest {
    let mut digest = Digest::default();
    let found = digest::digest(&digest::SHA256, bytes);
    digest.iter_mut().zip(found.as_ref()).for_each(|(to, from)| *to = *from);
    digest
}

/// Returns the first `bytes` of a hash, as people read them.
pub(crate) fn hexadecimal(digest: &Digest, bytes: usize) -> String {
    digest.iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}
