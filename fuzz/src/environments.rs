//! The target over environments, whose corpus the crate `serdes-doctor` replays.

use std::{fs, path::Path};

use serdes_doctor::{Environment, TablesOnly, Verdict, diagnose};

/// The files of a package that are in the input after the lock, in order.
const FILES: [&str; 5] = [
    "jax_cuda12_pjrt-0.9.2.dist-info/METADATA",
    "jax_cuda12_pjrt-0.9.2.dist-info/RECORD",
    "jax_cuda12_pjrt-0.9.2.dist-info/entry_points.txt",
    "jax_plugins/xla_cuda12/version.py",
    "jax_plugins/xla_cuda12/xla_cuda_plugin.so",
];

/// Reads a lock, and an environment with one package beside jax and jaxlib, and judges both. A
/// judgement with problems must not fit, and each problem must be a line with checked remedies.
pub fn environments(input: &[u8]) {
    let Ok(folder) = tempfile::tempdir() else { return };
    let mut parts = input.splitn(FILES.len() + 1, |byte| *byte == 0);
    let lock = folder.path().join("requirements.txt");
    if fs::write(&lock, parts.next().unwrap_or_default()).is_err() {
        return;
    }
    judge(&lock);
    let site = folder.path().join("env/lib/python3.12/site-packages");
    let write = |name: &str, bytes: &[u8]| {
        let path = site.join(name);
        let created = path.parent().map(fs::create_dir_all);
        matches!(created, Some(Ok(()))) && fs::write(path, bytes).is_ok()
    };
    let mut written = true;
    for name in ["jax", "jaxlib"] {
        let text = format!("Name: {name}\nVersion: 0.9.2\n");
        written &= write(&format!("{name}-0.9.2.dist-info/METADATA"), text.as_bytes());
    }
    for (name, part) in FILES.into_iter().zip(parts) {
        written &= write(name, part);
    }
    let config = folder.path().join("env/pyvenv.cfg");
    if written && fs::write(config, "version = 3.12.1\n").is_ok() {
        judge(&folder.path().join("env"));
    }
}

fn judge(path: &Path) {
    let Ok(environments) = Environment::read(path) else { return };
    for environment in environments {
        let diagnosis = diagnose(&environment, &TablesOnly);
        let fits_not = diagnosis.verdict() == Verdict::DoesNotFit;
        assert_eq!(fits_not, !diagnosis.problems.is_empty());
        for problem in &diagnosis.problems {
            assert!(!problem.message.contains('\n'), "{:?}", problem.message);
            for remedy in &problem.remedies {
                assert_eq!(remedy.command.is_some(), !remedy.changes.is_empty());
            }
        }
        assert!(diagnosis.to_json().is_object());
        assert!(!diagnosis.to_string().is_empty());
    }
}
