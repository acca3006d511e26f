use std::sync::LazyLock;

use super::{
    CompactLayout, ConcreteEvenSharding, ConcreteSharding, CustomCallCompileOptions,
    CustomCallProgram, HloProgram, HloSharding, IfrtIrCompileOptions, IfrtIrExecutableVersion,
    IfrtIrProgram, OpaqueSharding, PjRtLayout, PluginCompileOptions, PluginProgram,
    ShardingParamSharding, SingleDeviceSharding, XlaCompileOptions, XlaExecutableVersion,
    sharding_spec::{
        ConcreteEvenShardingSpec, ConcreteShardingSpec, HloShardingSpec, OpaqueShardingSpec,
        ShardingParamShardingSpec, SingleDeviceShardingSpec,
    },
};
use crate::codec::{Registered, RegistryError, SerDesRegistry};

macro_rules! built_in_types {
    ($($type:ty),* $(,)?) => {
        /// The type names that every registry of [`register_built_in_types`] knows.
        pub const BUILT_IN_NAMES: &[&str] = &[$(<$type>::TYPE_NAME),*];

        /// Adds the SerDes of all registered types of this module.
        ///
        /// # Errors
        /// [`RegistryError`] if one of the types or names is registered already.
        pub fn register_built_in_types(registry: &SerDesRegistry) -> Result<(), RegistryError> {
            $(registry.register_message::<$type, _>()?;)*
            Ok(())
        }
    };
}

built_in_types! {
    SingleDeviceSharding,
    OpaqueSharding,
    ConcreteSharding,
    ConcreteEvenSharding,
    ShardingParamSharding,
    HloSharding,
    SingleDeviceShardingSpec,
    OpaqueShardingSpec,
    ConcreteShardingSpec,
    ConcreteEvenShardingSpec,
    ShardingParamShardingSpec,
    HloShardingSpec,
    CompactLayout,
    PjRtLayout,
    CustomCallProgram,
    CustomCallCompileOptions,
    PluginProgram,
    PluginCompileOptions,
    HloProgram,
    XlaCompileOptions,
    XlaExecutableVersion,
    IfrtIrProgram,
    IfrtIrCompileOptions,
    IfrtIrExecutableVersion,
}

/// The registry of the process. It knows the built-in types from the start; other crates add theirs.
pub fn global_registry() -> &'static SerDesRegistry {
    static REGISTRY: LazyLock<SerDesRegistry> = LazyLock::new(|| {
        let registry = SerDesRegistry::new();
        // The registry is empty, and a test asserts that no built-in type collides with another.
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
