//! Hashes that identify certificates and tokens, whose text is not kept.

use ring::digest;

/// A hash that identifies a certificate or a token.
pub(crate) type Digest = [u8; 32];

/// Computes the SHA-256 hash.
pub(crate) fn hash(bytes: &[u8]) -> Digest {
    let mut digest = Digest::default();
    let found = digest::digest(&digest::SHA256, bytes);
    digest.iter_mut().zip(found.as_ref()).for_each(|(to, from)| *to = *from);
    digest
}

/// Returns the first `bytes` of a hash as hexadecimal text.
pub(crate) fn hexadecimal(digest: &Digest, bytes: usize) -> String {
    digest.iter().take(bytes).map(|byte| format!("{byte:02x}")).collect()
}
