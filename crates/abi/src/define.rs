//! The macro that defines a struct of the C API once: its type, its compile-time assertions, and
//! its description as data.

/// Defines a `repr(C)` struct with its published offsets.
///
/// The form is `NAME, sizeof N, STRUCT_SIZE macro "M" = N ending at FIELD;` followed by one line
/// per field: offset, name, type, kind in C, and the meaning of zero ([`Zero`](crate::Zero)).
macro_rules! c_struct {
    (
        $(#[$attribute:meta])*
        $name:ident, sizeof $size_of:literal, $macro_name:literal = $struct_size:literal ending at $last:ident;
        $( $(#[$field_attribute:meta])* $offset:literal $field:ident: $type:ty, $kind:literal, $zero:ident; )+
    ) => {
        $(#[$attribute])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            $( $(#[$field_attribute])* pub $field: $type, )+
        }

        impl $name {
            /// The value of this struct's STRUCT_SIZE macro, in bytes: the end of the last field
            /// that the macro names, without padding.
            pub const STRUCT_SIZE: usize = $struct_size;

            /// The description of this struct as data.
            pub const LAYOUT: $crate::StructLayout = $crate::StructLayout {
                name: stringify!($name),
                size_of: $size_of,
                align_of: 8,
                struct_size_macro: $macro_name,
                macro_last_field: $crate::layout::c_name(stringify!($last)),
                struct_size: $struct_size,
                fields: &[
                    $( $crate::FieldLayout {
                        name: $crate::layout::c_name(stringify!($field)),
                        kind: $kind,
                        offset: $offset,
                        size: $crate::layout::size_of_kind($kind),
                        zero: $crate::Zero::$zero,
                        deprecated: false,
                    }, )+
                ],
            };
        }

        #[cfg(target_pointer_width = "64")]
        const _: () = {
            assert!(core::mem::size_of::<$name>() == $size_of);
            assert!(core::mem::align_of::<$name>() == 8);
            $(
                assert!(core::mem::offset_of!($name, $field) == $offset);
                assert!(core::mem::size_of::<$type>() == $crate::layout::size_of_kind($kind));
            )+
            let layout = $name::LAYOUT;
            match layout.field(layout.macro_last_field) {
                Some(field) => assert!(field.end() == $struct_size),
                None => panic!("the last announced field is not a field"),
            }
        };
    };
}
