//! The registered types of this module, whose names occur in data.

use std::sync::LazyLock;

use super::{
    CustomCallCompileOptions, CustomCallProgram, HloProgram, IfrtIrCompileOptions,
    IfrtIrExecutableVersion, IfrtIrProgram, Layout, PluginCompileOptions, PluginProgram, Sharding,
    ShardingSpec, XlaCompileOptions, XlaExecutableVersion, kinds::BuiltIn,
};
use crate::codec::{DecodeError, RegistryError, SerDesRegistry};

/// Built-in types without several kinds: programs, their compile options and versions of
/// executables.
const OF_NO_FAMILY: &[BuiltIn] = &[
    BuiltIn::of::<CustomCallProgram, _>(),
    BuiltIn::of::<CustomCallCompileOptions, _>(),
    BuiltIn::of::<PluginProgram, _>(),
    BuiltIn::of::<PluginCompileOptions, _>(),
    BuiltIn::of::<HloProgram, _>(),
    BuiltIn::of::<XlaCompileOptions, _>(),
    BuiltIn::of::<XlaExecutableVersion, _>(),
    BuiltIn::of::<IfrtIrProgram, _>(),
    BuiltIn::of::<IfrtIrCompileOptions, _>(),
    BuiltIn::of::<IfrtIrExecutableVersion, _>(),
];

/// All registered types of this module.
const BUILT_IN: [&[BuiltIn]; 4] =
    [Sharding::KINDS, ShardingSpec::KINDS, Layout::KINDS, OF_NO_FAMILY];

#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
const COUNT: usize = {
    let (mut count, mut list) = (0, 0);
    while list < BUILT_IN.len() {
        count += BUILT_IN[list].len();
        list += 1;
    }
    count
};

/// The type names that [`register_built_in_types`] adds to a registry.
#[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
pub const BUILT_IN_NAMES: &[&str] = &{
    let (mut names, mut count, mut list) = ([""; COUNT], 0, 0);
    while list < BUILT_IN.len() {
        let mut position = 0;
        while position < BUILT_IN[list].len() {
            names[count] = BUILT_IN[list][position].type_name;
            count += 1;
            position += 1;
        }
        list += 1;
    }
    names
};

fn built_in() -> impl Iterator<Item = &'static BuiltIn> {
    BUILT_IN.into_iter().flatten()
}

/// Returns the package and the name of the message in data with this type name.
pub(super) fn message_of(type_name: &str) -> Option<(&'static str, &'static str)> {
    built_in().find(|built_in| built_in.type_name == type_name).map(|built_in| built_in.message)
}

/// Returns the error for data with the type name `found` where `expected` was required:
/// [`DecodeError::WrongType`] for a known name, else [`DecodeError::UnknownTypeName`].
pub(super) fn not_a(expected: &'static str, found: String) -> DecodeError {
    if BUILT_IN_NAMES.contains(&found.as_str()) {
        DecodeError::wrong_type(expected, found)
    } else {
        DecodeError::unknown_type_name(found)
    }
}

/// Registers the SerDes of every built-in type of this module.
///
/// # Errors
/// [`RegistryError`] if one of the types or names is registered already.
pub fn register_built_in_types(registry: &SerDesRegistry) -> Result<(), RegistryError> {
    built_in().try_for_each(|built_in| (built_in.register)(registry))
}

/// Returns the registry of the process. It contains the built-in types from the start; other crates
/// add theirs.
pub fn global_registry() -> &'static SerDesRegistry {
    static REGISTRY: LazyLock<SerDesRegistry> = LazyLock::new(|| {
        let registry = SerDesRegistry::new();
        // Cannot fail: the registry is empty, and a test asserts that no two built-in types
        // collide.
        let _ = register_built_in_types(&registry);
        registry
    });
    &REGISTRY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_built_in_type_collides_with_another() {
        let registry = SerDesRegistry::new();
        register_built_in_types(&registry).unwrap();
        let mut names = BUILT_IN_NAMES.to_vec();
        names.sort_unstable();
        assert_eq!(registry.type_names(), names);
        assert_eq!(global_registry().type_names(), names);
        assert!(register_built_in_types(&registry).is_err());
    }
}
