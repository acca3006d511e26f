//! Tests of programs: compilation, runs, queries, and faults of plug-ins in them.

use serdes_pjrt::{
    Argument, Buffer, Client, CompileOptions, ElementType, ExecuteOptions, HostArray,
    LoadedExecutable, Minor, PjrtError, Program, ProgramFormat, Target, Value,
};

use super::plugins::Library;

fn client(library: &Library) -> Client {
    library.load().unwrap().create_client(&[]).unwrap()
}

fn compile(client: &Client, code: &str) -> Result<LoadedExecutable, PjrtError> {
    let options = CompileOptions::new(2, 1).unwrap();
    client.compile(&Program::new(code.as_bytes(), ProgramFormat::Mlir), &options)
}

/// Puts an array on each of the two devices.
fn arrays(client: &Client) -> Vec<Buffer> {
    let array = HostArray::new(ElementType::U8, &[4]);
    let devices = client.addressable_devices().unwrap();
    let put = |(at, device)| {
        let data: Vec<u8> = (0..4).map(|byte| byte + 10 * at as u8).collect();
        client.put(&array, &data, Target::Device(device)).unwrap()
    };
    devices.iter().enumerate().map(put).collect()
}

/// Makes every query of a program, and runs it.
fn trip(library: &Library) -> Result<Vec<u8>, PjrtError> {
    let client = library.load()?.create_client(&[])?;
    let loaded = compile(&client, "outputs 2")?;
    let executable = loaded.executable();
    let _ = (executable.name()?, executable.replicas()?, executable.partitions()?);
    let _ = (executable.code_bytes()?, executable.cost_analysis()?, executable.fingerprint()?);
    let _ = (executable.output_types()?, executable.output_dims()?, executable.memory()?);
    let _ = (executable.output_memory_kinds()?, executable.output_layouts()?);
    let _ = (executable.optimized_program()?, loaded.device_assignment()?, loaded.fingerprint()?);
    let loaded = client.load_serialized(&executable.serialize()?, None)?;
    let buffers = arrays(&client);
    let arguments = buffers.iter().map(|buffer| vec![Argument::Kept(buffer)]).collect();
    let execution = loaded.execute(arguments, &ExecuteOptions::new())?;
    execution.wait()?;
    loaded.delete()?;
    assert!(loaded.is_deleted()?);
    let outputs = execution.into_outputs();
    outputs.last().and_then(|outputs| outputs.last()).map_or(Ok(Vec::new()), Buffer::read)
}

#[test]
fn program_is_compiled_run_and_reloaded_on_every_minor() {
    for minor in [29, 38, 45, 54, 62, 71, 76, 81, 97, 108, 114] {
        // The sizes of programs and options must be those of the minor as well.
        let library = Library::new(minor, &["EQUAL_SIZES"]);
        let client = client(&library);
        let loaded = compile(&client, "outputs 2 donates 0").unwrap();
        let executable = loaded.executable();
        assert_eq!(executable.output_count(), 2, "0.{minor}");
        assert_eq!(executable.output_types().unwrap(), [ElementType::U8; 2]);
        assert_eq!(executable.output_dims().unwrap(), [[4], [4]]);
        assert_eq!(executable.cost_analysis().unwrap(), [("flops".to_owned(), Value::Float(2.0))]);
        let memory = executable.memory();
        assert_eq!(memory.is_ok_and(|memory| memory.arguments == 2), minor >= 40, "0.{minor}");
        let program = executable.optimized_program().unwrap();
        assert_eq!((program.format.as_str(), program.code.as_slice()), ("hlo", &b"optimised"[..]));
        let bytes = executable.serialize().unwrap();
        let assigned = loaded.device_assignment();
        assert_eq!(assigned.is_ok_and(|ids| ids == [[7, 8]]), minor >= 79, "0.{minor}");
        for loaded in [&loaded, &client.load_serialized(&bytes, None).unwrap()] {
            // A buffer that is kept exists after the run, although the program donates it.
            let buffers = arrays(&client);
            let kept = buffers.iter().map(|buffer| vec![Argument::Kept(buffer)]).collect();
            let execution = loaded.execute(kept, &ExecuteOptions::new()).unwrap();
            execution.wait().unwrap();
            assert_eq!(execution.complete().len(), 2);
            assert_eq!(execution.outputs()[1][1].read().unwrap(), [11, 12, 13, 14]);
            assert!(!buffers[0].is_deleted().unwrap(), "0.{minor}");
            let given = buffers.into_iter().map(|buffer| vec![Argument::Given(buffer)]).collect();
            let outputs = loaded.execute(given, &ExecuteOptions::new()).unwrap().into_outputs();
            assert_eq!(outputs[0][0].read().unwrap(), [1, 2, 3, 4], "0.{minor}");
        }
        drop((loaded, client));
        assert_eq!(library.live_objects(), 0, "0.{minor}");
    }
}

#[test]
fn a_program_runs_only_with_arguments_that_can_be() {
    let library = Library::new(81, &[]);
    let (client, other) = (client(&library), client(&library));
    let loaded = compile(&client, "outputs 1").unwrap();
    let buffers = arrays(&client);
    let run = |counts: &[usize], options: &ExecuteOptions| {
        let lists = counts.iter().map(|&count| {
            buffers.iter().cycle().take(count).map(Argument::Kept).collect::<Vec<_>>()
        });
        loaded.execute(lists.collect(), options)
    };
    let options = ExecuteOptions::new().with_launch_id(3);
    assert_eq!(run(&[2, 2], &options).unwrap().outputs().len(), 2);
    for counts in [&[1][..], &[], &[1, 1, 1], &[1, 2]] {
        let error = run(counts, &options).unwrap_err();
        assert!(matches!(error, PjrtError::InvalidArgument { .. }), "{counts:?}: {error}");
    }
    assert!(run(&[0, 0], &options).unwrap_err().to_string().contains("too few arguments"));
    // A device that is given is the only one.
    let one = options.clone().with_device(loaded.addressable_devices()[1].clone());
    assert_eq!(run(&[1], &one).unwrap().outputs().len(), 1);
    assert!(matches!(run(&[1, 1], &one), Err(PjrtError::InvalidArgument { .. })));
    let device = other.addressable_devices().unwrap().swap_remove(0);
    let foreign = options.clone().with_device(device);
    assert!(matches!(run(&[1], &foreign), Err(PjrtError::OtherClient { what: "device" })));
    let foreign = arrays(&other);
    let lists = foreign.iter().map(|buffer| vec![Argument::Kept(buffer)]).collect();
    let error = loaded.execute(lists, &options).unwrap_err();
    assert!(matches!(error, PjrtError::OtherClient { what: "argument" }), "{error}");
    loaded.delete().unwrap();
    assert!(run(&[1, 1], &options).unwrap_err().to_string().contains("the program was deleted"));
    assert_eq!(loaded.client(), client);
}

#[test]
fn invalid_program_is_not_handed_to_the_plugin() {
    let library = Library::new(62, &[]);
    let client = client(&library);
    let error = compile(&client, "").unwrap_err();
    assert!(matches!(error, PjrtError::InvalidArgument { what: "the program", .. }), "{error}");
    assert!(compile(&client, "garbage").unwrap_err().to_string().contains("no program of mine"));
    assert!(client.load_serialized(b"", None).is_err());
    assert!(client.load_serialized(b"garbage", None).is_err());
    assert!(CompileOptions::of_bytes(Vec::new()).is_err());
    // More devices than exist: the client cannot choose them.
    let options = CompileOptions::new(9, 1).unwrap();
    let program = Program::new(b"outputs 1", ProgramFormat::Mlir);
    let error = client.compile(&program, &options).unwrap_err().to_string();
    assert!(error.contains("PJRT_Client_DefaultDeviceAssignment"), "{error}");
    let error = client.compile(&Program::new(b"x", ProgramFormat::Hlo), &options).unwrap_err();
    assert!(matches!(error, PjrtError::Status { .. }), "{error}");
    let portable = client.compile(&program, &CompileOptions::portable()).unwrap();
    let bytes = portable.executable().serialize().unwrap();
    // Overriding options is possible since 0.71.
    let error = client.load_serialized(&bytes, Some(&CompileOptions::portable())).unwrap_err();
    assert!(error.to_string().contains("0.71"), "{error}");
    let newer = Library::new(81, &[]);
    let client = self::client(&newer);
    client.load_serialized(&bytes, Some(&CompileOptions::portable())).unwrap();
    assert_eq!(client.minor(), Minor::new(81));
}

#[test]
fn plugin_faults_in_programs_are_named() {
    for (switches, part) in [
        (&["NULL_LOADED"][..], "PJRT_Client_Compile gave NULL"),
        (&["NULL_EXECUTABLE"], "PJRT_LoadedExecutable_GetExecutable gave NULL"),
        (&["PROGRAM_DEVICES=(size_t)-1"], "PJRT_LoadedExecutable_AddressableDevices gave 184467"),
        (&["OUTPUTS_SAID=(size_t)-1"], "18446744073709551615 as the number of outputs"),
        (&["OUTPUTS_SAID=3"], "2, and 3 were said before"),
        (&["OUTPUTS_SAID=0"], "2, and 0 were said before"),
        (&["TYPES_SAID=(size_t)-1"], "18446744073709551615, and 2 were said"),
        (&["TYPES_SAID=1"], "1, and 2 were said before"),
        (&["OUTPUT_TYPE=99"], "gave 99 as an element type"),
        (&["OUTPUT_RANK=(size_t)-1"], "the rank of an output"),
        (&["KINDS_SAID=7"], "7, and 2 were said before"),
        (&["NULL_KIND"], "PJRT_Executable_OutputMemoryKinds gave NULL"),
        (&["KIND_SAID=(size_t)-1"], "PJRT_Executable_OutputMemoryKinds gave 184467"),
        (&["LAYOUTS_SAID=(size_t)-1"], "18446744073709551615, and 2 were said"),
        (&["LAYOUT_BYTES=(size_t)-1"], "4 GiB at most"),
        (&["SHORT_LAYOUTS"], "does not have PJRT_Layouts_PJRT_Executable_GetOutputLayouts in its"),
        (&["NO_LAYOUTS"], "does not have PJRT_Layouts_PJRT_Executable_GetOutputLayouts in its"),
        (&["NAME_SAID=(size_t)-1"], "PJRT_Executable_Name gave 184467"),
        (&["COSTS_SAID=(size_t)-1"], "PJRT_Executable_GetCostAnalysis gave 184467"),
        (&["PROGRAM_SAID=(size_t)-1"], "the length of the program"),
        (&["PROGRAM_GROWS"], "no more than it said before"),
        (&["ASSIGNMENT_SAID=9"], "a message xla.DeviceAssignmentProto"),
        (&["ASSIGNMENT_SAID=(size_t)-1"], "4 GiB at most"),
        (&["SERIALIZED_SAID=(size_t)-1"], "4 GiB at most"),
        (&["NULL_SERIALIZED"], "PJRT_Executable_Serialize gave NULL"),
        (&["FEWER_OUTPUTS"], "PJRT_LoadedExecutable_Execute gave NULL as a buffer"),
        (&["MORE_OUTPUTS"], "gave 2 more than 2 on each device as outputs"),
        (&["COMPLETE_FAILS"], "the run failed (UNAVAILABLE)"),
        (&["NULL_SLOT=SLOT_PJRT_Client_Compile"], "does not have PJRT_Client_Compile"),
        (&["NULL_SLOT=SLOT_PJRT_LoadedExecutable_Execute"], "PJRT_LoadedExecutable_Execute"),
        (&["FAILING=\"PJRT_Client_Compile\"", "CODE=12"], "UNIMPLEMENTED"),
        (&["FAILING=\"PJRT_LoadedExecutable_GetExecutable\""], "GetExecutable: as told"),
        (&["FAILING=\"PJRT_LoadedExecutable_Execute\""], "PJRT_LoadedExecutable_Execute: as told"),
        (&["FAILING=\"PJRT_Executable_DeserializeAndLoad\""], "DeserializeAndLoad: as told"),
    ] {
        let library = Library::new(81, switches);
        let error = trip(&library).unwrap_err();
        assert!(error.to_string().contains(part), "{switches:?}: {error}");
        // Objects returned before the failure are destroyed.
        assert_eq!(library.live_objects(), 0, "{switches:?}");
    }
}

#[test]
fn program_works_without_optional_functions() {
    for switches in [&[][..], &["NULL_COMPLETE"], &["NULL_EVENTS"], &["NO_DELETER"]] {
        let library = Library::new(81, switches);
        let read = trip(&library).unwrap_or_else(|error| panic!("{switches:?}: {error}"));
        assert_eq!(read, [11, 12, 13, 14], "{switches:?}");
        assert_eq!(library.live_objects(), 0, "{switches:?}");
    }
}

/// Objects that a failed call returns are not used, and an object that cannot be destroyed is not
/// used again.
#[test]
fn object_that_a_plugin_cannot_destroy_is_dropped() {
    let error = trip(&Library::new(81, &["FAILED_OUTPUTS"])).unwrap_err().to_string();
    assert!(error.contains("it failed after all"), "{error}");
    for slot in ["LoadedExecutable_Destroy", "Buffer_Destroy", "Event_Destroy", "Client_Destroy"] {
        let switch = format!("NULL_SLOT=SLOT_PJRT_{slot}");
        assert_eq!(trip(&Library::new(81, &[&switch])).unwrap(), [11, 12, 13, 14], "{slot}");
    }
    // An error that cannot be destroyed is still reported.
    let switches = ["FAILING=\"PJRT_Client_Compile\"", "NULL_SLOT=SLOT_PJRT_Error_Destroy"];
    let error = trip(&Library::new(81, &switches)).unwrap_err().to_string();
    assert!(error.contains("as told"), "{error}");
}
