//! The target over paths that may be addresses.
//!
//! An input is a text that a user could write after `--to` or into a script. The target inserts a
//! secret where signed addresses, and addresses with a password, have theirs.

use std::path::Path;

use serdes_device_state::files::Tree;
use serdes_tensors::storage::Storage;

/// A secret that no message may contain.
const SECRET: &str = "wJalrXUtnFEMI";

/// Schemes of addresses.
const SCHEMES: [&str; 9] = ["s3", "s3a", "gs", "gcs", "az", "azure", "file", "http", "https"];

/// Returns the name of a path in messages, and the error about it.
fn told(storage: &Storage, text: &str) -> String {
    let path = Path::new(text);
    let error = storage.system_path(path).err().map(|error| error.to_string());
    format!("{} {}", storage.name(path), error.unwrap_or_default())
}

/// Resolves a text as an address, without a request to a store or server.
pub fn addresses(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let storage = Storage::anywhere();
    let path = Path::new(text);
    if let Ok(Some(found)) = storage.system_path(path) {
        assert!(storage.is_of_system(path));
        // A path is unchanged. An address of a file gives an absolute path.
        let is_address = text.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("file://"));
        assert!(if is_address { found.is_absolute() } else { *found == *path }, "{text:?}");
    } else {
        assert!(!storage.is_of_system(path));
        let scheme = text.split(':').next().unwrap_or_default().to_ascii_lowercase();
        assert!(SCHEMES.contains(&&*scheme), "{text:?}");
    }
    // With storage of the file system alone, every text is a path.
    assert!(Storage::system().is_of_system(path));
    assert_eq!(Storage::system().name(path), text);
    for scheme in SCHEMES {
        let with_password = told(&storage, &format!("{scheme}://me:{SECRET}@{text}"));
        assert!(!with_password.contains(SECRET), "{with_password}");
        // In other addresses the query is a part of a key or a file name.
        if scheme.starts_with("http") && !text.contains(SECRET) {
            let signed = told(&storage, &format!("{scheme}://{text}?X-Amz-Signature={SECRET}"));
            assert!(!signed.contains(SECRET), "{signed}");
        }
    }
}
