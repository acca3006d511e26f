//! The target over artifacts of JAX, whose corpus the crate `serdes-jax-artifacts` replays.

use serdes_jax_artifacts::{Artifact, Kind, Options, releases, sniff};

/// Reads bytes as a kind of artifact, and judges them for every release. A verdict must have
/// reasons or be acceptable, and must name the releases that read the bytes.
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
