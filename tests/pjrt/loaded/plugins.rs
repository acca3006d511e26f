//! Creates plug-ins in C of any minor of the interface: headers are generated from the history of
//! the layouts, and the source in `tests/plugins` is compiled against them.

#![allow(unsafe_code, reason = "functions of the plug-in that only the tests know")]

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use serdes_abi::pjrt::{Field, Struct, functions, structures, table_size};
use serdes_pjrt::{Minor, PjrtError, PjrtPlugin};

/// A plug-in's library, which is removed on drop.
pub(super) struct Library {
    folder: tempfile::TempDir,
}

impl Library {
    /// Compiles a plug-in of that minor with these fault switches (`NULL_TABLE`, `TYPE_SAID=99`).
    pub(super) fn new(minor: u32, switches: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let minor = Minor::new(minor);
        std::fs::write(folder.path().join("pjrt_layouts.h"), layouts(minor)).unwrap();
        std::fs::write(folder.path().join("pjrt_slots.h"), slots(minor)).unwrap();
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        // This file is part of the tests of two packages: the library's, and one below `crates`.
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let source = ["tests/plugins", "../../tests/plugins"]
            .map(|folder| package.join(folder).join("pjrt_plugin.c"))
            .into_iter()
            .find(|source| source.exists());
        let source = source.expect("the source of the plug-in");
        let output = Command::new(&compiler)
            .args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-pedantic"])
            .args(["-Wno-unused-function", "-shared", "-fPIC", "-pthread"])
            .args(switches.iter().map(|switch| format!("-D{switch}")))
            .arg("-I")
            .arg(folder.path())
            .arg(source)
            .arg("-o")
            .arg(folder.path().join(NAME))
            .output()
            .unwrap_or_else(|error| panic!("cannot run the C compiler {compiler}: {error}"));
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { folder }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    pub(super) fn load(&self) -> Result<PjrtPlugin, PjrtError> {
        PjrtPlugin::load(self.path())
    }

    /// Returns the number of its live errors, events, buffers and clients.
    pub(super) fn live_objects(&self) -> i64 {
        self.ask::<i64>(b"live_objects\0")
    }

    /// Returns true if all its objects are destroyed, at once or by work in progress.
    pub(super) fn is_empty_soon(&self) -> bool {
        (0..1000).any(|_| {
            let is_empty = self.live_objects() == 0;
            if !is_empty {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            is_empty
        })
    }

    /// Returns the number of arrays in pieces that were cancelled.
    pub(super) fn given_up_arrays(&self) -> i32 {
        self.ask::<i32>(b"given_up_arrays\0")
    }

    /// Returns the number of pieces of memory that are mapped.
    pub(super) fn mapped_pieces(&self) -> i64 {
        self.ask::<i64>(b"mapped_pieces\0")
    }

    /// Returns the number of loads of programs that were compiled without a client.
    pub(super) fn loads(&self) -> i32 {
        self.ask::<i32>(b"loads\0")
    }

    /// Returns the number of chunks that it sent to the host and the host freed.
    pub(super) fn freed_chunks(&self) -> i64 {
        self.ask::<i64>(b"freed_chunks\0")
    }

    /// Returns the sum of the results of the functions that were registered for programs to call.
    pub(super) fn called_handlers(&self) -> i32 {
        self.ask::<i32>(b"called_handlers\0")
    }

    /// Returns the first byte of the memory that it may keep forever.
    pub(super) fn kept_byte(&self) -> i32 {
        self.ask::<i32>(b"kept_byte\0")
    }

    /// Makes the next execution of a program hang until [`let_go`](Self::let_go).
    pub(super) fn hang_next(&self) {
        self.ask::<i32>(b"hang_next\0");
    }

    /// Returns true while an execution hangs.
    pub(super) fn hangs(&self) -> bool {
        self.ask::<i32>(b"hangs\0") != 0
    }

    /// Lets the hanging execution continue.
    pub(super) fn let_go(&self) {
        self.ask::<i32>(b"let_go\0");
    }

    fn ask<T>(&self, name: &[u8]) -> T {
        // SAFETY: the library is loaded already, and this only counts.
        let library = unsafe { libloading::Library::new(self.path()) }.unwrap();
        // SAFETY: the source has this function with this type.
        unsafe { library.get::<unsafe extern "C" fn() -> T>(name).unwrap()() }
    }
}

const NAME: &str = "plugin.so";

/// The structs that are embedded in arguments.
const STRUCTS: [&str; 9] = [
    "PJRT_Buffer_MemoryLayout",
    "PJRT_Buffer_MemoryLayout_Tiled",
    "PJRT_Chunk",
    "PJRT_ExecuteOptions",
    "PJRT_NamedValue",
    "PJRT_Program",
    "PJRT_RecvCallbackInfo",
    "PJRT_SendCallbackInfo",
    "PJRT_ShapeSpec",
];

/// The source files of the plug-in.
const SOURCE: [&str; 3] = [
    include_str!("../../plugins/pjrt_plugin.c"),
    include_str!("../../plugins/pjrt_programs.h"),
    include_str!("../../plugins/pjrt_transfers.h"),
];

/// Returns the structs of a minor in C, with the sizes of its macros.
fn layouts(minor: Minor) -> String {
    let table = table_size(minor).unwrap();
    let mut text = format!(
        "#include <stddef.h>\n#include <stdint.h>\n#define PJRT_MINOR {}\n#define TABLE_SIZE {}\n#define TABLE_SIZEOF {}\n",
        minor.number(),
        table.declared,
        table.size_of
    );
    let renamed = minor >= Minor::new(48);
    let (kind, size) =
        if renamed { ("kind", "kind_size") } else { ("memory_kind", "memory_kind_size") };
    writeln!(text, "#define KIND {kind}\n#define KIND_SIZE {size}").unwrap();
    for function in functions() {
        if let Some(slot) = function.slot(minor) {
            writeln!(text, "#define SLOT_{} {slot}", function.name).unwrap();
        }
    }
    for found in structures() {
        let is_used = found.name.ends_with("_Args") || STRUCTS.contains(&found.name);
        if let Some(size) = found.size(minor).filter(|_| is_used) {
            structure(&mut text, found, minor);
            let (name, size_of) = (found.name, size.size_of);
            writeln!(text, "#define {name}_SIZE {}", size.declared).unwrap();
            writeln!(text, "_Static_assert(sizeof({name}) == {size_of}, \"{name}\");").unwrap();
        }
    }
    text
}

fn structure(text: &mut String, found: &Struct, minor: Minor) {
    let mut fields: Vec<&Field> = found.fields(minor).collect();
    fields.sort_by_key(|field| field.offset);
    text.push_str("typedef struct {\n");
    for field in fields {
        let is_pointer = field.kind.contains('*')
            || field.kind.contains("Callback")
            || matches!(field.kind, "fn" | "PJRT_Error_PayloadVisitor");
        let kind = match (field.size, field.kind) {
            (8, "size_t") => "size_t",
            (8, "int64_t" | "uint64_t" | "union" | "intptr_t" | "uintptr_t") => "int64_t",
            (8, _) if is_pointer => "void*",
            (4, _) => "int32_t",
            (1, _) => "_Bool",
            (size, _) => {
                writeln!(text, "  _Alignas(8) unsigned char {}[{size}];", field.name).unwrap();
                continue;
            }
        };
        let kind =
            if field.kind.starts_with("const ") && is_pointer { "const void*" } else { kind };
        writeln!(text, "  {kind} {};", field.name).unwrap();
    }
    writeln!(text, "}} {};", found.name).unwrap();
}

/// Returns the assignments that fill the table.
fn slots(minor: Minor) -> String {
    let mut text = String::new();
    for function in functions().iter().filter(|function| function.slot(minor).is_some()) {
        let name = function.name;
        let is_there = SOURCE.iter().any(|source| {
            source.contains(&format!("CALL({name})"))
                || source.contains(&format!("static void {name}("))
        });
        if is_there {
            writeln!(text, "  table.functions[SLOT_{name}] = (void*){name};").unwrap();
        }
    }
    text
}
