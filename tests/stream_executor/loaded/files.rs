//! Tests of files that are opened or inspected: which of them are plug-ins, and whose status
//! functions they use.

use std::process::Command;

use serdes_stream_executor::{Error, Plugin, elf};

use super::plugins::{NEWEST, Stub, assert_moves_bytes, compile, compile_text};

#[test]
fn file_that_is_no_plugin_is_refused_by_its_kind() {
    let directory = tempfile::tempdir().unwrap();
    let library = std::fs::read(compile("stub_plugin.c", NEWEST, &[])).unwrap();
    let mut foreign = library.clone();
    foreign[18..20].copy_from_slice(&243u16.to_le_bytes()); // e_machine
    let mut program = library.clone();
    program[16] = 2; // e_type
    for (name, bytes, part) in [
        ("text.so", &b"not a library"[..], "not an ELF file"),
        ("empty.so", b"", "not an ELF file"),
        ("foreign.so", &foreign, "riscv64"),
        ("program.so", &program, "no shared library"),
        ("cut.so", &library[..library.len() / 3], "damaged"),
        ("header.so", &library[..64], "damaged"),
        ("start.so", &library[..20], "damaged"),
    ] {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = Plugin::load(path).unwrap_err();
        assert!(matches!(error, Error::NotLoadable { .. }), "{name}: {error}");
        assert!(error.to_string().contains(part), "{name}: {error}");
    }
    for (path, part) in [
        (directory.path().join("absent.so"), "No such file"),
        (directory.path().to_owned(), "not a file"),
    ] {
        let error = Plugin::load(path).unwrap_err();
        assert!(matches!(error, Error::NotLoadable { .. }), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    }
    let renamed = compile("malloc_plugin.c", NEWEST, &["-DSE_InitPlugin=AnotherName"]);
    assert!(matches!(Plugin::load(renamed), Err(Error::NotAPlugin { .. })));
    let other = compile_text("int TF_InitKernel(void) { return 0; }", &[]);
    let error = Plugin::load(other).unwrap_err();
    assert!(matches!(&error, Error::NotAPlugin { .. }), "{error}");
    assert!(error.to_string().contains("TF_InitKernel"));
}

/// Asserts that the host receives the status of the stub's error, whichever way the stub is linked.
#[track_caller]
fn assert_status_is_ours(flags: &[&str]) {
    let stub = Stub::linked(NEWEST, "error=SE_InitPlugin", flags);
    let report = stub.refused();
    assert!(report.reasons[0].found.contains("as told: SE_InitPlugin"), "{flags:?}");
}

#[test]
fn plugins_of_every_way_of_linking_find_our_status_functions() {
    for flags in [&[][..], &["-Wl,-z,now"], &["-Wl,-z,lazy"], &["-fno-plt"], &["-Wl,-Bsymbolic"]] {
        assert_status_is_ours(flags);
    }
}

#[test]
fn status_functions_of_a_needed_library_do_not_win() {
    // A library that defines the status functions, as TensorFlow's does, with empty bodies.
    let foreign = compile_text(
        "void TF_SetStatus(void* s, int c, const char* m) { (void)s; (void)c; (void)m; }\n\
         int TF_GetCode(const void* s) { (void)s; return 0; }\n\
         const char* TF_Message(const void* s) { (void)s; return \"\"; }\n\
         void* TF_NewStatus(void) { return 0; }\n\
         void TF_DeleteStatus(void* s) { (void)s; }\n",
        &["-Wl,-soname,libforeign_status.so"],
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(foreign, folder.path().join("libforeign_status.so")).unwrap();
    let folder = folder.path().to_str().unwrap();
    let (search, run_path) = (format!("-L{folder}"), format!("-Wl,-rpath,{folder}"));
    for more in ["-Wl,-z,now", "-Wl,-z,lazy"] {
        let flags = ["-Wl,--no-as-needed", &search, "-lforeign_status", &run_path, more];
        let stub = Stub::linked(NEWEST, "", &flags);
        let inspection = elf::inspect(stub.path()).unwrap();
        assert!(inspection.needed.iter().any(|name| name == "libforeign_status.so"));
        assert_status_is_ours(&flags);
    }
}

#[test]
fn inspection_reads_symbols_without_loading() {
    let stub = Stub::newest("");
    let inspection = elf::inspect(stub.path()).unwrap();
    assert_eq!(inspection.architecture, std::env::consts::ARCH);
    assert!(inspection.is_plugin() && inspection.shared);
    assert_eq!(
        inspection.served,
        ["TF_DeleteStatus", "TF_GetCode", "TF_Message", "TF_NewStatus", "TF_SetStatus"]
    );
    assert!(inspection.unserved.is_empty());
    assert!(inspection.needed.iter().any(|name| name.starts_with("libc.so")));
    stub.assert_never_loaded();
    let library = compile_text(
        "void TF_RegisterKernelBuilder(void); void SE_InitPlugin(void);\n\
         void SE_InitPlugin(void) { TF_RegisterKernelBuilder(); }",
        &[],
    );
    assert_eq!(elf::inspect(library).unwrap().unserved, ["TF_RegisterKernelBuilder"]);
}

#[test]
fn symbol_versions_of_a_library_are_no_exports() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("versions.map");
    std::fs::write(&script, "PLUGIN_1.0 { global: SE_InitPlugin; local: *; };\nPLUGIN_1.1 { global: more; } PLUGIN_1.0;\n")
        .unwrap();
    let library = compile_text(
        "int SE_InitPlugin(void) { return 0; }\nint more(void) { return 0; }",
        &[&format!("-Wl,--version-script={}", script.display())],
    );
    assert_eq!(elf::inspect(library).unwrap().exports, ["SE_InitPlugin", "more"]);
}

/// The dynamic loader ignores sections, so a library may have none.
#[test]
fn a_library_without_section_headers_is_a_plugin() {
    for style in ["-Wl,--hash-style=gnu", "-Wl,--hash-style=sysv"] {
        let stub = Stub::linked(NEWEST, "", &[style]);
        let with = elf::inspect(stub.path()).unwrap();
        let mut bytes = std::fs::read(stub.path()).unwrap();
        bytes[0x28..0x30].fill(0); // e_shoff
        bytes[0x3a..0x40].fill(0); // e_shentsize, e_shnum, e_shstrndx
        std::fs::write(stub.path(), bytes).unwrap();
        assert_eq!(elf::inspect(stub.path()).unwrap(), with, "{style}");
        assert!(with.is_plugin() && !with.needed.is_empty(), "{with:?}");
        assert_moves_bytes(&stub.open().unwrap());
    }
}

#[test]
fn a_library_that_only_needs_symbols_is_read_as_well() {
    let library = compile_text(
        "extern int TF_GetCode(const void*); __attribute__((visibility(\"hidden\"))) void* here = (void*)TF_GetCode;",
        &["-Wl,--hash-style=gnu", "-nostdlib"],
    );
    let inspection = elf::inspect(library).unwrap();
    assert_eq!((inspection.served, inspection.exports), (vec!["TF_GetCode".to_owned()], vec![]));
}

/// Calling it would execute data.
#[test]
fn a_variable_called_se_init_plugin_is_no_plugin() {
    for text in [
        "int SE_InitPlugin = 7;",
        "const char SE_InitPlugin[4096] = {1};",
        "__thread int SE_InitPlugin = 7;",
    ] {
        let library = compile_text(text, &[]);
        let inspection = elf::inspect(&library).unwrap();
        assert!(inspection.entry_is_data && !inspection.is_plugin(), "{text}");
        let error = Plugin::load(library).unwrap_err();
        assert!(matches!(error, Error::NotAPlugin { .. }), "{text}: {error}");
        assert!(error.to_string().contains("it is a variable"), "{error}");
    }
}

#[test]
fn names_of_any_length_are_read() {
    let name = "long_".repeat(2000);
    let library =
        compile_text(&format!("int SE_InitPlugin(void) {{ return 0; }} int {name} = 1;"), &[]);
    assert_eq!(elf::inspect(library).unwrap().exports, ["SE_InitPlugin", &name]);
}

/// Opening a pipe waits for a writer.
#[test]
fn a_pipe_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.so");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(elf::inspect(pipe).unwrap_err().to_string().contains("not a file"));
}

/// Returns a shared library of one segment with these symbol names, given as offsets into the
/// strings.
fn library_of(names: &[u32], strings: &[u8], announced_strings: u64, announced: u32) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([3u16, 62].map(u16::to_le_bytes).concat());
    file.extend(1u32.to_le_bytes());
    file.extend([0u64, 64, 0].map(u64::to_le_bytes).concat());
    file.extend(0u32.to_le_bytes());
    file.extend([64u16, 56, 2, 64, 0, 0].map(u16::to_le_bytes).concat());
    let (dynamic, hash) = (64 + 2 * 56, 64 + 2 * 56 + 6 * 16);
    let symbols = hash + 8;
    let string_table = symbols + 24 * names.len() as u64;
    let end = string_table + announced_strings;
    for (kind, offset, size) in [(1u32, 0, end), (2, dynamic, 6 * 16)] {
        file.extend([kind, 6].map(u32::to_le_bytes).concat());
        file.extend([offset, offset, offset, size, size, 8].map(u64::to_le_bytes).concat());
    }
    let entries =
        [(4, hash), (6, symbols), (11, 24), (5, string_table), (10, announced_strings), (0, 0)];
    for (tag, value) in entries {
        file.extend([tag, value].map(u64::to_le_bytes).concat());
    }
    file.extend([1, announced].map(u32::to_le_bytes).concat());
    for name in names {
        file.extend(name.to_le_bytes());
        file.extend([0x12, 0, 1, 0]);
        file.extend([4096u64, 8].map(u64::to_le_bytes).concat());
    }
    file.extend(strings);
    file
}

#[test]
fn no_count_and_no_name_takes_more_memory_than_a_library_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("made.so");
    let inspect = |bytes: &[u8], length: u64| {
        std::fs::write(&path, bytes).unwrap();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
        elf::inspect(&path)
    };
    let strings = [&b"\0"[..], &[b'A'; 60_000], b"\0"].concat();
    let length = strings.len() as u64;
    let good = library_of(&[0, 59_990, 59_995], &strings, length, 3);
    let found = inspect(&good, good.len() as u64).unwrap();
    assert_eq!(found.exports, ["AAAAAA", "AAAAAAAAAAA"]);
    // 50,000 names of 60,000 bytes, in a file of 1.3 MB.
    let names: Vec<u32> = (0..50_000).map(|n| 1 + n % 100).collect();
    let bytes = library_of(&names, &strings, length, names.len() as u32);
    let error = inspect(&bytes, bytes.len() as u64).unwrap_err().to_string();
    assert!(error.contains("times the bytes of their table"), "{error}");
    let bytes = library_of(&[0], &strings, length, u32::MAX);
    let error = inspect(&bytes, bytes.len() as u64).unwrap_err().to_string();
    assert!(error.contains("the symbol table has 103079215080 bytes"), "{error}");
    // A sparse file, almost without data.
    let bytes = library_of(&[0], &strings, 1 << 40, 1);
    let error = inspect(&bytes, (1 << 40) + 4096).unwrap_err().to_string();
    assert!(error.contains("268435456 at most"), "{error}");
    let error = inspect(&bytes, bytes.len() as u64).unwrap_err().to_string();
    assert!(error.contains("cut off"), "{error}");
}

#[test]
fn no_damaged_byte_crashes_the_reader() {
    let library = std::fs::read(compile("stub_plugin.c", NEWEST, &[])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("damaged.so");
    // The headers and the tables behind them; the dynamic table is near the end of the mapped part.
    let word = |at: usize| u64::from_le_bytes(library[at..at + 8].try_into().unwrap()) as usize;
    let dynamic = (0..usize::from(library[56]))
        .map(|segment| word(32) + 56 * segment)
        .find(|&at| library[at..at + 4] == 2u32.to_le_bytes())
        .map(|at| word(at + 8)..word(at + 8) + word(at + 32))
        .unwrap();
    for at in (0..512).chain(dynamic) {
        for byte in [0, 0xff] {
            let mut damaged = library.clone();
            damaged[at] = byte;
            std::fs::write(&path, damaged).unwrap();
            // Any answer is acceptable.
            let _ = elf::inspect(&path);
        }
    }
}

#[test]
fn missing_room_for_thread_locals_is_reported_with_a_remedy() {
    let library = compile_text(
        "__thread char room[1 << 22] __attribute__((tls_model(\"initial-exec\")));\n\
         char* SE_InitPlugin(void) { return room; }",
        &[],
    );
    let error = Plugin::load(library).unwrap_err();
    assert!(matches!(error, Error::NotLoadable { .. }), "{error}");
    assert!(error.to_string().contains("GLIBC_TUNABLES"), "{error}");
}
