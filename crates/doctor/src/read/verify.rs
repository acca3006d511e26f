//! Compares the contents of files with the records of their packages.

use std::{
    fs::{self, File},
    io::Read as _,
    path::Path,
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use crate::{environment::Environment, package::Package};

/// Bytes that are read at a time.
const PIECE: usize = 256 << 10;

impl Environment {
    /// Compares the contents of judged packages' files with the checksums in their records;
    /// [`read`](Self::read) only compares sizes. Files without a checksum, and those that links
    /// lead to outside of the folder of packages, are not read.
    pub fn verify_files(&mut self) {
        for package in self.packages.values_mut() {
            let changed = changed(package);
            package.changed.extend(changed);
        }
    }
}

fn changed(package: &Package) -> Vec<String> {
    let Some(site) = package.site.as_deref().and_then(|site| fs::canonicalize(site).ok()) else {
        return Vec::new();
    };
    let mut changed = Vec::new();
    for file in &package.files {
        let Some(wanted) = &file.sha256 else { continue };
        if package.changed.contains(&file.path) || package.missing.contains(&file.path) {
            continue;
        }
        let path = fs::canonicalize(site.join(&file.path)).ok();
        let Some(path) = path.filter(|path| path.starts_with(&site) && path.is_file()) else {
            continue;
        };
        if sha256(&path).is_some_and(|found| found != wanted.trim_end_matches('=')) {
            changed.push(file.path.clone());
        }
    }
    changed
}

/// Returns the checksum of a file, in the records' format.
fn sha256(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let mut sum = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).ok()? {
            0 => return Some(BASE64_URL_SAFE_NO_PAD.encode(sum.finalize())),
            read => sum.update(piece.get(..read)?),
        }
    }
}
