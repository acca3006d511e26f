//! The operation that is run once variables are restored.
//!
//! Depends on the fields that name the operation, but not on the operation itself.

use super::{CollectionKind, Referring, TensorReference};

/// The signature of that operation, which is also the key of its output.
pub(in super::super) const INIT_SIGNATURE: &str = "__saved_model_init_op";
/// The collections that contained such an operation in earlier releases.
pub(in super::super) const INIT_COLLECTIONS: [&str; 2] = ["saved_model_main_op", "legacy_init_op"];

/// Returns the name of that operation, if a meta graph has one.
pub(in super::super) fn init_name(referring: &Referring) -> Option<String> {
    if let Some(signature) = referring.signatures.get(INIT_SIGNATURE) {
        return match signature.outputs.get(INIT_SIGNATURE) {
            Some(TensorReference::Name(text)) => Some(text.clone()),
            _ => None,
        };
    }
    let found = INIT_COLLECTIONS.iter().find_map(|key| referring.collections.get(*key))?;
    match (found.kind, found.values.as_slice()) {
        (CollectionKind::Nodes, [name]) => Some(String::from_utf8_lossy(name).into_owned()),
        _ => None,
    }
}
