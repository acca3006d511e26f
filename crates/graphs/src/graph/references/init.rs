//! The operation that is run once variables are restored.
//!
//! Knows where a meta graph names it. It must never know what it does.

use super::{CollectionKind, Referring, TensorReference};

/// The signature of that operation, which is also the key of its output.
pub(in super::super) const INIT_SIGNATURE: &str = "__saved_model_init_op";
/// The collections that such an operation was in before.
pub(in super::super) const INIT_COLLECTIONS: [&str; 2] = ["saved_model_main_op", "legacy_init_op"];

/// Returns the name of that operation, where a meta graph has one.
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
