//! The memory of a struct that a plug-in fills.
//!
//! The host owns it, as the C API requires, and it is longer than any struct that the host knows: a
//! plug-in that was built with a newer header fills more than the host knows, and must not write
//! into other memory.

use std::{
    alloc::{Layout as AllocationLayout, alloc_zeroed, dealloc, handle_alloc_error},
    ptr::NonNull,
};

use serdes_abi::StructLayout;

/// The size of a block in bytes.
pub(crate) const BLOCK_BYTES: usize = 4096;

/// A zeroed block of [`BLOCK_BYTES`] that a plug-in may write to at any time during a call.
///
/// It is read and written by value only: no reference to its contents exists while a plug-in runs.
#[derive(Debug)]
pub(crate) struct StructMemory {
    start: NonNull<u8>,
}

// SAFETY: a block is memory that its owner alone frees; reads and writes go through raw pointers
// and are ordered by the calls of the plug-in that they surround.
unsafe impl Send for StructMemory {}
// SAFETY: see above; shared access reads only what the plug-in wrote before it returned.
unsafe impl Sync for StructMemory {}

impl StructMemory {
    const LAYOUT: AllocationLayout = match AllocationLayout::from_size_align(BLOCK_BYTES, 64) {
        Ok(layout) => layout,
        Err(_) => panic!("the size and alignment of a block are a valid layout"),
    };

    /// Creates a zeroed block whose `struct_size`, the first eight bytes, is `struct_size`.
    pub(crate) fn new(struct_size: usize) -> Self {
        // SAFETY: the layout is not of size zero.
        let start = unsafe { alloc_zeroed(Self::LAYOUT) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(Self::LAYOUT) };
        let block = Self { start };
        block.write(0, struct_size);
        block
    }

    /// Returns the pointer that a plug-in gets.
    #[inline]
    pub(crate) fn as_ptr<T>(&self) -> *mut T {
        self.start.as_ptr().cast()
    }

    /// Returns the value at `offset` bytes.
    pub(crate) fn read<T: Scalar>(&self, offset: usize) -> T {
        assert!(offset + size_of::<T>() <= BLOCK_BYTES, "the host reads inside its own block");
        // SAFETY: inside the block by the assert; the block is initialised (zeroed) memory;
        // `Scalar` types hold any bytes; unaligned reads need no alignment.
        unsafe { self.start.as_ptr().add(offset).cast::<T>().read_unaligned() }
    }

    /// Writes the value at `offset` bytes.
    pub(crate) fn write<T: Scalar>(&self, offset: usize, value: T) {
        assert!(offset + size_of::<T>() <= BLOCK_BYTES, "the host writes inside its own block");
        // SAFETY: inside the block by the assertion; unaligned writes need no alignment; outside
        // calls this value is the only user of the block.
        unsafe { self.start.as_ptr().add(offset).cast::<T>().write_unaligned(value) }
    }

    /// Returns the offset of the first nonzero byte at or after `offset`.
    pub(crate) fn first_set_from(&self, offset: usize) -> Option<usize> {
        (offset..BLOCK_BYTES).find(|&at| self.read::<u8>(at) != 0)
    }

    /// Returns the size that the struct declares, in bytes.
    pub(crate) fn struct_size(&self) -> usize {
        self.read(0)
    }
}

impl Drop for StructMemory {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { dealloc(self.start.as_ptr(), Self::LAYOUT) }
    }
}

/// A type for which every bit pattern is a value.
///
/// # Safety
/// Implementers hold any bytes of their size.
pub(crate) unsafe trait Scalar: Copy {}

// SAFETY: integers hold any bytes.
unsafe impl Scalar for u8 {}
// SAFETY: integers hold any bytes.
unsafe impl Scalar for i32 {}
// SAFETY: integers hold any bytes.
unsafe impl Scalar for usize {}
// SAFETY: raw pointers hold any bytes; nothing is said of what they point to.
unsafe impl<T> Scalar for *const T {}
// SAFETY: raw pointers hold any bytes; nothing is said of what they point to.
unsafe impl<T> Scalar for *mut T {}
// SAFETY: integers hold any bytes.
unsafe impl Scalar for i64 {}

/// A struct in a block, limited to the fields that its layout and its own size include.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StructView<'a> {
    block: &'a StructMemory,
    layout: &'static StructLayout,
    /// Number of usable bytes of the struct.
    size: usize,
}

impl<'a> StructView<'a> {
    /// Creates the view of the struct in `block` that `layout` describes, with `size` bytes. Sizes
    /// beyond the layout are reduced to it.
    pub(crate) fn new(block: &'a StructMemory, layout: &'static StructLayout, size: usize) -> Self {
        Self { block, layout, size: size.min(layout.size_of) }
    }

    /// Returns the offset of a field that the layout has and that is inside the struct's size.
    fn offset(&self, field: &str, bytes: usize) -> Option<usize> {
        let field = self.layout.field(field)?;
        (field.end() <= self.size && field.size == bytes).then_some(field.offset)
    }

    /// Returns the value of a field, if the struct has it.
    pub(crate) fn scalar<T: Scalar>(&self, field: &str) -> Option<T> {
        self.offset(field, size_of::<T>()).map(|offset| self.block.read(offset))
    }

    /// Returns the function in a field, if the struct has it and it is not NULL.
    ///
    /// # Safety
    /// `F` is the function pointer type that the C API gives the field, or one of the same shape,
    /// in which pointers to the host's structs point to other types.
    pub(crate) unsafe fn function<F: Copy>(&self, field: &str) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<usize>()) };
        // Read as a pointer, to keep the provenance of the plug-in's own pointer.
        let address: *const () = self.scalar(field)?;
        // SAFETY: same size (asserted), not NULL, and the caller guarantees the type, and the
        // plug-in the address.
        (!address.is_null()).then(|| unsafe { std::mem::transmute_copy(&address) })
    }
}

#[cfg(test)]
mod tests {
    use serdes_abi::{FieldLayout, Zero};

    use super::*;

    const fn field(
        name: &'static str,
        kind: &'static str,
        offset: usize,
        size: usize,
    ) -> FieldLayout {
        FieldLayout { name, kind, offset, size, zero: Zero::Value, deprecated: false }
    }

    const fn toy(struct_size: usize, fields: &'static [FieldLayout]) -> StructLayout {
        StructLayout {
            name: "Toy",
            size_of: struct_size.next_multiple_of(8),
            align_of: 8,
            struct_size_macro: "TOY_STRUCT_SIZE",
            macro_last_field: fields[fields.len() - 1].name,
            struct_size,
            fields,
        }
    }

    /// The strategy's example, in version 1.0.0 and with the two fields of 1.1.0.
    static OLD: StructLayout = toy(
        20,
        &[
            field("struct_size", "size_t", 0, 8),
            field("ext", "void*", 8, 8),
            field("old_field", "int32_t", 16, 4),
        ],
    );
    static NEW: StructLayout = toy(
        36,
        &[
            field("struct_size", "size_t", 0, 8),
            field("ext", "void*", 8, 8),
            field("old_field", "int32_t", 16, 4),
            field("new_field1", "void*", 24, 8),
            field("new_field2", "int32_t", 32, 4),
        ],
    );

    /// Returns a struct that a producer of that layout has filled in.
    fn produced(layout: &StructLayout) -> StructMemory {
        let block = StructMemory::new(layout.struct_size);
        block.write(16, 5i32);
        if layout.struct_size > 20 {
            block.write(24, 0x1000usize);
            block.write(32, 7i32);
        }
        block
    }

    fn read(
        block: &StructMemory,
        layout: &'static StructLayout,
    ) -> (Option<i32>, Option<usize>, Option<i32>) {
        let view = StructView::new(block, layout, block.struct_size());
        (view.scalar("old_field"), view.scalar("new_field1"), view.scalar("new_field2"))
    }

    #[test]
    fn structs_of_older_and_newer_headers_are_compatible() {
        assert_eq!(read(&produced(&OLD), &OLD), (Some(5), None, None));
        assert_eq!(read(&produced(&OLD), &NEW), (Some(5), None, None));
        assert_eq!(read(&produced(&NEW), &OLD), (Some(5), None, None));
        assert_eq!(read(&produced(&NEW), &NEW), (Some(5), Some(0x1000), Some(7)));
    }

    #[test]
    fn a_field_that_is_there_by_half_is_not_there() {
        let block = produced(&NEW);
        for size in [25, 31] {
            block.write(0, size as usize);
            assert_eq!(read(&block, &NEW), (Some(5), None, None));
        }
        block.write(0, 32usize);
        assert_eq!(read(&block, &NEW), (Some(5), Some(0x1000), None));
    }

    #[test]
    fn sizes_that_lie_end_at_the_layout() {
        let block = produced(&NEW);
        block.write(0, usize::MAX);
        assert_eq!(read(&block, &NEW), (Some(5), Some(0x1000), Some(7)));
        block.write(0, 0usize);
        assert_eq!(read(&block, &NEW), (None, None, None));
    }

    #[test]
    fn null_is_no_function() {
        let block = produced(&NEW);
        block.write(24, 0usize);
        let view = StructView::new(&block, &NEW, 36);
        // SAFETY: the field is NULL, so that no function is made of it.
        let function: Option<unsafe extern "C" fn()> = unsafe { view.function("new_field1") };
        assert!(function.is_none());
    }
}
