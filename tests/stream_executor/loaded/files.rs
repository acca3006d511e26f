//! Files that are opened or inspected: which are plug-ins, and whose status functions they find.

use serdes::stream_executor::{Error, Plugin, elf};

use super::plugins::{NEWEST, Stub, compile, compile_text};

#[test]
fn what_is_no_plugin_is_refused_by_what_it_is() {
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

/// Whether the status of the stub's error comes to us, whichever way the stub is linked.
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
    // A library that defines the status functions, as TensorFlow's does, and does nothing in them.
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
fn symbol_versions_that_a_library_defines_are_not_among_its_exports() {
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
