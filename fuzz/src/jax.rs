//! The target over artifacts of JAX, which the crate `serdes-jax-artifacts` replays itself.

use serdes_jax_artifacts::{Artifact, Kind, Options, releases, sniff};

/// Reads bytes as that kind, and judges them for every release: a verdict has reasons or is
/// acceptable, and the releases that read the bytes are named.
pub fn jax_artifacts(kind: Kind, input: &[u8]) {
    let options = Options::new();
    let _ = sniff(input);
    let artifact = Artifact::with_kind(kind, input);
    let read_by = artifact.inspect(&options).read_by;
    for release in releases().iter().filter(|release| release.is_judged()) {
        let judgement = artifact.judge(release, &options);
        assert_eq!(judgement.is_acceptable(), judgement.reasons.is_empty());
        assert_eq!(judgement.is_acceptable(), read_by.contains(&release));
    }
}
