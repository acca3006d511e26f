//! Structs of a host: detects their layout, and writes this crate's structs into them.
//!
//! We fill the newest structs, which have types. A host gets the fields that its layout and ours
//! share, by name.

use serdes_abi::{
    Layout, RFC_257, SP_StreamExecutor, StructLayout, TENSORFLOW_2_4, TENSORFLOW_2_5,
    TENSORFLOW_2_8, TENSORFLOW_2_14,
};

use crate::{Result, Status};

/// A struct of the host, with its layout and capacity.
#[derive(Clone, Copy)]
pub(crate) struct HostStruct {
    start: *mut u8,
    layout: &'static StructLayout,
    /// The number of bytes that we may write.
    capacity: usize,
}

impl HostStruct {
    /// Creates a view of the struct at `start` with this layout.
    ///
    /// The host declares the available size in `struct_size`. Three cases are special. The layout's
    /// own STRUCT_SIZE stands for the whole struct (RFC #257 declares 64 bytes of an SP_PlatformFns
    /// of 96). With 0, the layout decides, as it does for any plug-in in C. Under a `forced`
    /// layout, the layout decides as well.
    ///
    /// # Safety
    /// `start` points to a struct that begins with its `struct_size` and has that many bytes, or
    /// all of `layout` if the size is the layout's STRUCT_SIZE, or 0, or the layout is `forced`.
    pub(crate) unsafe fn new(start: *mut u8, layout: &'static StructLayout, forced: bool) -> Self {
        // SAFETY: every struct begins with its size.
        let announced = unsafe { start.cast::<usize>().read() };
        let capacity = if forced || announced == 0 || announced == layout.struct_size {
            layout.size_of
        } else {
            announced
        };
        Self { start, layout, capacity }
    }

    /// Returns true if the whole declared part of the layout fits.
    pub(crate) fn is_whole(&self) -> bool {
        self.capacity >= self.layout.struct_size
    }

    /// Returns the number of bytes that we may write.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns true if the field fits.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.layout.field(field).is_some_and(|field| field.end() <= self.capacity)
    }

    /// Writes the fields that `source` and this struct share, and the number of bytes written.
    ///
    /// # Safety
    /// `source` points to a struct that `source_layout` describes, with all fields initialised;
    /// fields with the same name have the same type in both. The struct still belongs to the host,
    /// and is borrowed exclusively.
    pub(crate) unsafe fn fill(&self, source: *const u8, source_layout: &StructLayout) {
        for field in source_layout.fields.iter().filter(|field| field.name != "struct_size") {
            let Some(target) = self.layout.field(field.name) else { continue };
            if target.end() > self.capacity || target.size != field.size {
                continue;
            }
            // SAFETY: both fields lie inside their structs (`source` by its layout, the target by
            // the capacity checked above), have this size, and belong to two different structs.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    source.add(field.offset),
                    self.start.add(target.offset),
                    field.size,
                );
            }
        }
        let size = self.layout.struct_size.min(self.capacity);
        // SAFETY: every struct begins with its size.
        unsafe { self.start.cast::<usize>().write(size) };
    }

    /// Writes one field that the newest layout does not have, if this layout has it.
    ///
    /// # Safety
    /// The field has type `T` in every layout that has it. The struct still belongs to the host,
    /// and is borrowed exclusively.
    pub(crate) unsafe fn set<T>(&self, field: &str, value: T) {
        if let Some(target) = self.layout.field(field)
            && target.end() <= self.capacity
            && target.size == size_of::<T>()
        {
            // SAFETY: the field is inside the capacity, and has the size of `T`; the caller
            // guarantees its type.
            unsafe { self.start.add(target.offset).cast::<T>().write_unaligned(value) };
        }
    }
}

/// Fills a table of functions that has the same form in all layouts. A `forced` layout also
/// determines the capacity.
///
/// # Safety
/// `target` is NULL or the host's struct of this kind; `layout` describes `source`.
pub(super) unsafe fn fill_table(
    forced: bool,
    target: *mut u8,
    name: &str,
    source: *const u8,
    layout: &'static StructLayout,
) -> Result<()> {
    if target.is_null() {
        return Err(Status::invalid_argument(format!(
            "there is no {name} to fill: its pointer is NULL"
        )));
    }
    // SAFETY: the pointer is not NULL, so it is the host's struct, which declares its size; by the
    // condition above, `layout` describes `source`.
    unsafe { HostStruct::new(target, layout, forced).fill(source, layout) };
    Ok(())
}

/// Writes a result to the host's `target`.
///
/// # Safety
/// `target` is NULL or points to writable memory for a `T`.
pub(super) unsafe fn write_out<T>(target: *mut T, value: T, name: &str) -> Result<()> {
    if target.is_null() {
        return Err(Status::invalid_argument(format!(
            "there is nowhere to put the result: {name} is NULL"
        )));
    }
    // SAFETY: the pointer is not NULL, so by the condition above it is writable memory for a `T`.
    unsafe { target.write(value) };
    Ok(())
}

/// Returns the layout of a host that presets these sizes for SP_Platform and SP_PlatformFns. Sizes
/// that no old layout has mean the newest one: newer hosts have longer structs that begin with
/// ours.
pub(crate) fn layout_of_host(platform: usize, platform_functions: usize) -> &'static Layout {
    match (platform, platform_functions) {
        (_, 64) | (40, 96) => &RFC_257,
        (41, 80) => &TENSORFLOW_2_4,
        // The host's executor later shows if the layout is this one or 2.5.
        (34, 88) => &TENSORFLOW_2_8,
        _ => &TENSORFLOW_2_14,
    }
}

/// Returns the layout of the executor of a host that presets this size for it.
pub(crate) fn executor_layout(
    layout: &'static Layout,
    announced: usize,
    forced: bool,
) -> &'static StructLayout {
    // In a struct of 264 bytes, byte 256 is `host_callback`; in a longer one it is `mem_zero`. So
    // this size identifies a layout of its own.
    let layout = if announced == 264 && !forced { &TENSORFLOW_2_5 } else { layout };
    struct_layout(layout, "SP_StreamExecutor", &SP_StreamExecutor::LAYOUT)
}

/// Returns a struct of a layout, or its newest form if the layout does not have it.
pub(crate) fn struct_layout(
    layout: &'static Layout,
    name: &str,
    newest: &'static StructLayout,
) -> &'static StructLayout {
    layout.structure(name).unwrap_or(newest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes_abi::{SP_Platform, rfc, tensorflow_2_4};

    fn platform() -> SP_Platform {
        SP_Platform {
            struct_size: 0,
            ext: std::ptr::null_mut(),
            name: c"NAME".as_ptr(),
            r#type: c"TYPE".as_ptr(),
            supports_unified_memory: 1,
            use_bfc_allocator: 1,
            force_memory_growth: 1,
        }
    }

    /// Fills in a struct in a block of 64 bytes of 0xEE whose first word is `announced`.
    fn filled(layout: &'static StructLayout, announced: usize) -> [u64; 8] {
        let mut block = [u64::from_ne_bytes([0xEE; 8]); 8];
        block[0] = announced as u64;
        let source = platform();
        // SAFETY: the block is larger than any layout of the struct, and the source is a whole
        // SP_Platform.
        unsafe {
            let target = HostStruct::new(block.as_mut_ptr().cast(), layout, false);
            target.set("visible_device_count", 7_usize);
            target.fill((&raw const source).cast(), &SP_Platform::LAYOUT);
        }
        block
    }

    #[test]
    fn a_host_of_our_age_gets_everything_and_no_byte_more() {
        let block = filled(&SP_Platform::LAYOUT, 35);
        assert_eq!(block[0], 35);
        assert_eq!(block[4].to_le_bytes(), [1, 1, 1, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE]);
        assert_eq!(block[5], u64::from_ne_bytes([0xEE; 8]));
    }

    #[test]
    fn host_with_a_shorter_struct_gets_only_fields_that_fit() {
        let block = filled(&SP_Platform::LAYOUT, 34);
        assert_eq!(block[0], 34);
        assert_eq!(block[4].to_le_bytes(), [1, 1, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE, 0xEE]);
    }

    #[test]
    fn a_newer_host_learns_how_much_we_know() {
        assert_eq!(filled(&SP_Platform::LAYOUT, 4096)[0], 35);
    }

    #[test]
    fn fields_move_to_where_an_old_layout_has_them() {
        let block = filled(&tensorflow_2_4::SP_Platform::LAYOUT, 41);
        assert_eq!((block[0], block[4], block[5] & 0xFF), (41, 7, 1));
        let block = filled(&rfc::SP_Platform::LAYOUT, 40);
        assert_eq!((block[0], block[4]), (40, 7));
    }

    #[test]
    fn sizes_that_a_host_presets_tell_its_layout() {
        for layout in serdes_abi::LAYOUTS {
            let size = |name| layout.structure(name).map_or(0, |found| found.struct_size);
            let chosen = layout_of_host(size("SP_Platform"), size("SP_PlatformFns"));
            let executor = executor_layout(chosen, size("SP_StreamExecutor"), false);
            assert_eq!(executor.struct_size, size("SP_StreamExecutor"), "{}", layout.name);
            if layout.name != "tensorflow-2.5" {
                assert_eq!(chosen.name, layout.name);
            }
        }
        assert_eq!(layout_of_host(4096, 4096).name, "tensorflow-2.14");
        assert_eq!(layout_of_host(0, 0).name, "tensorflow-2.14");
    }
}
