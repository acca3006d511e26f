//! The macros that define the types: handles, structs that are compared with the history, and
//! arguments of calls.

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            #[derive(Debug)]
            pub struct $name {
                _opaque: [u8; 0],
            }
        )*
    };
}

/// The form is `STRUCT of FUNCTION { field: type, … }`, without the two fields with which each
/// struct begins.
macro_rules! arguments {
    ($($name:ident of $function:literal { $($(#[$doc:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            #[doc = concat!("Arguments of `", $function, "`.")]
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                /// The size of the struct that the caller declares, in bytes.
                pub struct_size: usize,
                /// NULL, or a chain of extensions.
                pub extension_start: *mut c_void,
                $(
                    $(#[$doc])*
                    #[doc = concat!("`", stringify!($field), "`.")]
                    pub $field: $type,
                )*
            }

            described!($name { $($field: $type,)* });

            // SAFETY: `described` compares the layout with the history; every field is a number or
            // a pointer, for which all bytes are values.
            unsafe impl Arguments for $name {
                const FUNCTION: &'static &'static str = &$function;
                const STRUCT: &'static crate::pjrt::Struct = $name::HISTORY;

                fn new() -> Self {
                    // SAFETY: zero is a value of every number and pointer.
                    let zero: Self = unsafe { core::mem::zeroed() };
                    Self { struct_size: size_of::<Self>(), ..zero }
                }
            }
        )*
    };
}

/// Compares a `repr(C)` type with the newest layout of its struct, and defines its `HISTORY`.
macro_rules! described {
    ($name:ident { $($field:ident: $type:ty,)* }) => {
        impl $name {
            /// The layout of the struct in each minor.
            pub const HISTORY: &'static crate::pjrt::Struct = match crate::pjrt::structure(stringify!($name)) {
                Some(history) => history,
                None => panic!("the history has no such struct"),
            };
        }

        #[cfg(target_pointer_width = "64")]
        const _: () = {
            let history = $name::HISTORY;
            match history.size(crate::pjrt::Minor::NEWEST) {
                Some(size) => assert!(size_of::<$name>() == size.size_of),
                None => panic!("the newest minor has no such struct"),
            }
            assert!(align_of::<$name>() == 8);
            $(
                let name = crate::layout::c_name(stringify!($field));
                match history.field(name, crate::pjrt::Minor::NEWEST) {
                    Some(field) => {
                        assert!(core::mem::offset_of!($name, $field) == field.offset as usize);
                        assert!(size_of::<$type>() == field.size as usize);
                    }
                    None => panic!("the newest minor has no such field"),
                }
            )*
        };
    };
}
