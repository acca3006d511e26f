//! Defines the symbol that frameworks look up.

/// Turns the current crate, a cdylib, into a PJRT plug-in: defines `GetPjrtApi`.
///
/// A second symbol declares, in the library's file, the oldest minor of frameworks that the plug-in
/// supports, for tools that inspect the library without loading it.
///
/// The argument is a type that implements [`pjrt::Plugin`](crate::pjrt::Plugin).
///
/// Nothing is exported when the crate is built for its own unit tests.
#[macro_export]
macro_rules! export_pjrt {
    ($plugin:ty $(,)?) => {
        const _: () = {
            #[cfg_attr(not(test), unsafe(no_mangle))]
            #[allow(unsafe_code, reason = "a plug-in's entry is a C function")]
            #[allow(non_snake_case, reason = "the C API gives it this name")]
            #[cfg_attr(test, allow(dead_code, reason = "only compiled"))]
            /// Returns the table of the plug-in's functions.
            pub extern "C" fn GetPjrtApi() -> *const () {
                static TABLE: $crate::pjrt::ApiTable = $crate::pjrt::ApiTable::new();
                TABLE.get::<$plugin>()
            }

            assert!($crate::pjrt::Minor::OLDEST_SUPPORTED.number() == 29, "the symbol's number");

            #[cfg_attr(not(test), unsafe(export_name = "serdes_oldest_framework_minor_29"))]
            #[allow(unsafe_code, reason = "tools look for a symbol of this name")]
            #[cfg_attr(test, allow(dead_code, reason = "only compiled"))]
            /// The oldest minor of frameworks that the plug-in supports.
            pub static OLDEST_FRAMEWORK_MINOR: u8 = 29;
        };
    };
}
