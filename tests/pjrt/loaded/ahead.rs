//! Tests of programs compiled without a client, of the shardings of their arrays, and of functions
//! that they call.

use std::{path::Path, process::Command};

use serdes_pjrt::{
    Argument, Client, CompileOptions, ElementType, Executable, ExecuteOptions, HostArray,
    PjrtError, Program, ProgramFormat, Target,
};

use super::plugins::Library;

fn client(library: &Library) -> Client {
    library.load().unwrap().create_client(&[]).unwrap()
}

fn compiled(client: &Client, code: &str) -> Result<Executable, PjrtError> {
    let options = CompileOptions::new(2, 1)?;
    client.topology()?.compile(&Program::new(code.as_bytes(), ProgramFormat::Mlir), &options)
}

#[test]
fn program_compiled_ahead_of_time_runs_once_loaded() {
    for minor in [38, 81, 95, 114] {
        let library = Library::new(minor, &["EQUAL_SIZES"]);
        let client = client(&library);
        let executable = compiled(&client, "outputs 1").unwrap();
        assert_eq!(executable.output_count(), 1);
        let loaded = client.load(&executable).unwrap();
        // Before 0.95 it is transferred as bytes.
        assert_eq!(library.loads(), i32::from(minor >= 95), "0.{minor}");
        drop(executable);
        let array = HostArray::new(ElementType::U8, &[4]);
        let buffers: Vec<_> = loaded
            .addressable_devices()
            .iter()
            .map(|device| client.put(&array, &[1, 2, 3, 4], Target::Device(device)).unwrap())
            .collect();
        let arguments = buffers.iter().map(|buffer| vec![Argument::Kept(buffer)]).collect();
        let run = loaded.execute(arguments, &ExecuteOptions::new()).unwrap();
        run.wait().unwrap();
        assert_eq!(run.outputs()[1][0].read().unwrap(), [2, 3, 4, 5], "0.{minor}");
        drop((run, buffers, loaded, client));
        assert_eq!(library.live_objects(), 0, "0.{minor}");
    }
}

#[test]
fn a_topology_without_a_client_is_compiled_for_too() {
    let library = Library::new(114, &[]);
    let bytes = client(&library).topology().unwrap().serialize().unwrap();
    let topology = library.load().unwrap().deserialize_topology(&bytes).unwrap();
    let program = Program::new(b"outputs 3", ProgramFormat::Mlir);
    // The plug-in treats this topology like a client's.
    let options = CompileOptions::new(3, 1).unwrap();
    let error = topology.compile(&program, &options).unwrap_err().to_string();
    assert!(error.contains("2 at most, which the topology has"), "{error}");
    assert!(topology.compile(&Program::new(b"", ProgramFormat::Mlir), &options).is_err());
}

#[test]
fn plugin_faults_in_ahead_of_time_compilation_are_named() {
    for (switches, part) in [
        (&["NULL_AHEAD"][..], "PJRT_Compile gave NULL"),
        (&["FAILING=\"PJRT_Compile\"", "CODE=12"], "UNIMPLEMENTED"),
        (&["NULL_SLOT=SLOT_PJRT_Compile"], "does not have PJRT_Compile"),
        (&["FAILING=\"PJRT_Client_Load\""], "PJRT_Client_Load: as told"),
    ] {
        let library = Library::new(114, switches);
        let client = client(&library);
        let loaded = compiled(&client, "outputs 1").and_then(|program| client.load(&program));
        let error = loaded.unwrap_err().to_string();
        assert!(error.contains(part), "{switches:?}: {error}");
        drop(client);
        assert_eq!(library.live_objects(), 0, "{switches:?}");
    }
    let (library, other) = (Library::new(114, &[]), Library::new(114, &[]));
    let program = compiled(&client(&library), "outputs 1").unwrap();
    let error = client(&other).load(&program).unwrap_err().to_string();
    assert!(error.contains("one of another plug-in"), "{error}");
}

#[test]
fn program_reports_shardings_if_the_plugin_can() {
    let library = Library::new(114, &[]);
    let client = client(&library);
    let executable = compiled(&client, "outputs 2").unwrap();
    assert_eq!(executable.parameter_shardings().unwrap().unwrap(), [[8, 1]]);
    // A message with only default values has no bytes.
    assert_eq!(executable.output_shardings().unwrap().unwrap(), [&[8, 1][..], &[]]);
    for (minor, switches, part) in [
        (114, &["SHARDINGS_SAID=(size_t)-1"][..], "ParameterShardings gave 184467"),
        (114, &["SHARDINGS_SAID=3"], "3, and 2 were said before"),
        (114, &["SHARDING_BYTES=(size_t)-1"], "4 GiB at most"),
        (114, &["NULL_SHARDING"], "ParameterShardings gave NULL for 2 bytes"),
        (90, &[], "does not have PJRT_Shardings_PJRT_Executable_ParameterShardings in its"),
    ] {
        let library = Library::new(minor, switches);
        let client = self::client(&library);
        let executable = compiled(&client, "outputs 2").unwrap();
        let both = executable.parameter_shardings().and_then(|_| executable.output_shardings());
        let error = both.unwrap_err();
        assert!(error.to_string().contains(part), "{switches:?}: {error}");
        assert_eq!(error.is_unsupported(), minor == 90);
    }
    let unsaid = Library::new(114, &["UNSAID_SHARDINGS"]);
    let client = self::client(&unsaid);
    let executable = compiled(&client, "outputs 2").unwrap();
    assert_eq!(executable.output_shardings().unwrap(), None);
}

/// Compiles a library with two functions for programs to call.
fn handlers(folder: &Path) -> std::path::PathBuf {
    let source = folder.join("handlers.c");
    let library = folder.join("handlers.so");
    std::fs::write(&source, "int forty(void) { return 40; }\nint two(void) { return 2; }\n")
        .unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let made = Command::new(compiler)
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(made.success());
    library
}

#[test]
fn a_plug_in_is_given_the_functions_that_programs_call() {
    let folder = tempfile::tempdir().unwrap();
    let handlers = handlers(folder.path());
    let library = Library::new(114, &[]);
    let plugin = library.load().unwrap();
    plugin.register_custom_call("custom", "Host", &handlers, "forty").unwrap();
    plugin.register_custom_call("custom", "Host", &handlers, "two").unwrap();
    assert_eq!(library.called_handlers(), 42);
    let error = plugin.register_custom_call("other", "Host", &handlers, "two").unwrap_err();
    assert!(error.to_string().contains("there is a function of this name"), "{error}");
    // Functions of libraries that it depends on do not count.
    for symbol in ["three", "malloc", "", "fo\0rty"] {
        let error = plugin.register_custom_call("custom", "Host", &handlers, symbol).unwrap_err();
        assert!(error.to_string().contains("does not export"), "{symbol:?}: {error}");
    }
    let missing = folder.path().join("missing.so");
    let error = plugin.register_custom_call("custom", "Host", missing, "two").unwrap_err();
    assert!(matches!(error, PjrtError::NotLoadable { .. }), "{error}");
    for (minor, switches) in [(52, &[][..]), (81, &["SHORT_FFI"])] {
        let plugin = Library::new(minor, switches).load().unwrap();
        let error = plugin.register_custom_call("custom", "Host", &handlers, "two").unwrap_err();
        assert!(matches!(error, PjrtError::NotInExtensions { .. }), "{switches:?}: {error}");
    }
}
