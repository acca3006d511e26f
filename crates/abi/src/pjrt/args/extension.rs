//! Functions of extensions, and the macro that makes their arguments: as they are in 0.114
//! to 0.117, the only minors in which an extension's structs were measured.

/// A function of an extension, and the struct that it takes.
///
/// # Safety
/// The type is `repr(C)` and begins with its size as `usize`; any bytes are a value of it.
pub unsafe trait ExtensionArguments: Copy {
    /// The function, by its name in C.
    const FUNCTION: &'static &'static str;
    /// The number of its extension.
    const EXTENSION: i32;
    /// The offset of its pointer in the extension, in bytes.
    const OFFSET: usize;

    /// Creates a struct without values: its size, and zero.
    fn new() -> Self;
}

/// `STRUCT of FUNCTION at OFFSET, SIZE { field: type, … }`, without the two fields that each begins
/// with.
macro_rules! extension_arguments {
    ($extension:literal: $($name:ident of $function:literal at $offset:literal, $size:literal { $($field:ident: $type:ty,)* })*) => {
        $(
            #[doc = concat!("Arguments of `", $function, "`.")]
            #[repr(C)]
            #[derive(Clone, Copy, Debug)]
            pub struct $name {
                /// The length of the struct that the caller declares, in bytes.
                pub struct_size: usize,
                /// NULL, or a chain of extensions.
                pub extension_start: *mut c_void,
                $(
                    #[doc = concat!("`", stringify!($field), "`.")]
                    pub $field: $type,
                )*
            }

            #[cfg(target_pointer_width = "64")]
            const _: () = assert!(size_of::<$name>() == $size && align_of::<$name>() == 8);

            // SAFETY: `repr(C)` and the two first fields are above; every field is a number or a
            // pointer, for which all bytes are values.
            unsafe impl ExtensionArguments for $name {
                const FUNCTION: &'static &'static str = &$function;
                const EXTENSION: i32 = $extension;
                const OFFSET: usize = $offset;

                fn new() -> Self {
                    // SAFETY: zero is a value of every number and pointer.
                    let zero: Self = unsafe { core::mem::zeroed() };
                    Self { struct_size: size_of::<Self>(), ..zero }
                }
            }
        )*
    };
}
