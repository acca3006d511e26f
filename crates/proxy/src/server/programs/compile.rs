//! Compiles the programs of clients.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use bytes::Bytes;
use serdes::{
    codec::{DeserializeOptions, FromProto as _, Registered as _, Status, StatusCode},
    ifrt::{
        ArraySpec, DType, DeviceId, DeviceList, HloProgram, HloSharding, IfrtError, MemoryKind,
        Shape, XlaCompileOptions,
        xla::{OpSharding, OpShardingType},
    },
    proto::xla::{self, ifrt::Serialized},
    stablehlo::ProgramBridge,
};
use serdes_device_state::Contents;
use serdes_pjrt::{Client, CompileOptions, Executable, LoadedExecutable, ProgramFormat};

use super::{
    called::CallRules,
    describe::{self, Described},
    endless,
    host_callbacks::HostCallbacks,
    module::Module,
    options::{self, OptionRules, Target},
    parameter::Parameter,
    program::{Loaded, Output, Program, Recipe},
    readable,
    trial::{Deadline, Trials},
};
use crate::{
    server::{
        arrays::{Devices, Kind, MemorySpace, contents_of},
        budget::Permit,
        metrics::Gauges,
    },
    status::{of_pjrt, status},
};

/// Memory space of XLA's layouts that denotes pinned host memory.
const HOST_MEMORY_SPACE: i64 = 5;

/// A program from a client, with its compile options.
#[derive(Debug)]
pub(crate) struct Source {
    artifact: Bytes,
    options: CompileOptions,
    /// The options, serialized.
    option_bytes: Vec<u8>,
    callbacks: Arc<HostCallbacks>,
}

impl Source {
    /// Reads the program of a request.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for missing or invalid parts, and for options that are refused;
    /// UNIMPLEMENTED for a program or options of another kind than XLA's; the errors for options of
    /// a newer version.
    pub(crate) fn read(
        program: Option<&Serialized>,
        options: Option<&Serialized>,
        callbacks: Arc<HostCallbacks>,
        rules: &OptionRules,
        target: Target<'_>,
    ) -> Result<Self, Status> {
        let program = of_type(program, "program", HloProgram::TYPE_NAME)?;
        let options = of_type(options, "compile options", XlaCompileOptions::TYPE_NAME)?;
        if program.is_empty() {
            return Err(status!(InvalidArgument, "the program has no bytes"));
        }
        let options = XlaCompileOptions::from_bytes(options, &DeserializeOptions::new())
            .map_err(|error| error.to_status())?;
        let option_bytes = options::for_plugin(options.compile_options(), rules, target)?;
        let options = CompileOptions::of_bytes(option_bytes.clone());
        let options = options.map_err(|error| of_pjrt(&error))?;
        Ok(Self { artifact: program, options, option_bytes, callbacks })
    }
}

/// Returns the bytes of a serialized value of the expected type.
fn of_type(value: Option<&Serialized>, what: &str, expected: &str) -> Result<Bytes, Status> {
    let value = value.ok_or_else(|| status!(InvalidArgument, "the request has no {what}"))?;
    if value.type_name == expected {
        return Ok(value.data.clone());
    }
    Err(status!(
        Unimplemented,
        "found {what} of the type `{}`; this server takes `{expected}`",
        value.type_name.escape_debug()
    ))
}

/// The compiling client, its helpers, and the time limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compiler<'a> {
    pub(crate) client: &'a Client,
    /// Generation of the client.
    pub(crate) generation: usize,
    pub(crate) bridge: Option<&'a dyn ProgramBridge>,
    pub(crate) trials: &'a Trials,
    pub(crate) deadline: Deadline,
    /// Rules for custom calls if programs must be portable artifacts of StableHLO; `None` if any
    /// program is compiled.
    pub(crate) portable_only: Option<&'a CallRules>,
}

/// Compiles a program. Waits for the plug-in, which may take minutes.
///
/// # Errors
/// The compiler's error; INVALID_ARGUMENT for a program that is not a portable artifact;
/// UNAVAILABLE and DEADLINE_EXCEEDED from a trial; UNIMPLEMENTED for features that this server
/// cannot support; INTERNAL for a plug-in that contradicts itself.
pub(crate) fn compile(
    devices: &Devices,
    source: &Source,
    held: Permit,
    gauges: &Arc<Gauges>,
    compiler: Compiler<'_>,
) -> Result<Program, Status> {
    let client = compiler.client;
    let callbacks = source.callbacks.list().len();
    let artifact = readable::readable(
        &source.artifact,
        client,
        compiler.bridge,
        compiler.portable_only,
        callbacks,
    )?;
    let refused = |status| match callbacks {
        0 => readable::refused(status, &artifact, client),
        callbacks => of_callbacks(status, callbacks, client),
    };
    let tried = compiler.trials.run(&artifact, &source.option_bytes, compiler.deadline)?;
    tried.map_err(refused)?;
    let program = serdes_pjrt::Program::new(&artifact, ProgramFormat::Mlir);
    let loaded = client.compile(&program, &source.options);
    let loaded = loaded.map_err(|error| refused(of_pjrt(&error)))?;
    let executable = loaded.executable();
    let module = executable.optimized_program().map_err(|error| of_pjrt(&error));
    let module = module.and_then(|program| {
        Module::read(&program.format, &program.code, executable.output_count())
    });
    let ids = device_ids(&loaded)?;
    let places = places(devices, &ids)?;
    // Only the module says which arguments the program donates, and which part of an output each of
    // several devices holds.
    let module = module?;
    let shardings = plain_shardings(&module.output_shardings)?;
    let parameter_shardings = plain_shardings(&module.parameter_shardings)?;
    let kinds = output_kinds(&loaded, &module)?;
    let outputs = outputs(&loaded, &ids, &places, &shardings, &kinds)?;
    let described = Described {
        loaded: &loaded,
        ids: &ids,
        module: &module,
        kinds: &kinds,
        parameter_shardings: &parameter_shardings,
        output_shardings: &shardings,
    };
    let (answer, metadata) = (describe::answer(&described)?, describe::metadata(&described));
    let may_be_endless = endless::is_possible(&artifact);
    let artifact = match artifact {
        Cow::Borrowed(_) => source.artifact.clone(),
        Cow::Owned(written) => written.into(),
    };
    let length = artifact.len() as u64;
    let recipe = Recipe::new(artifact, source.option_bytes.clone());
    Ok(Program {
        kept: recipe.bytes().saturating_add(code(executable).max(length)),
        room: None,
        recipe,
        may_be_endless,
        inside: inside(executable, places.len()),
        devices: places,
        parameters: module.parameters.iter().map(Parameter::of).collect(),
        donated: donated(&module),
        outputs,
        callbacks: Arc::clone(&source.callbacks),
        answer,
        metadata,
        deleted: AtomicBool::new(false),
        latency: Arc::default(),
        _held: held,
        _counted: gauges.hold(|gauges| &gauges.programs, 1),
        loaded: Mutex::new(Loaded {
            generation: compiler.generation,
            executable: Arc::new(loaded),
        }),
    })
}

/// Returns the bytes that the program needs while it runs, on all of its devices together:
/// temporary memory and code. Zero if the plug-in does not report them.
fn inside(executable: &Executable, devices: usize) -> u64 {
    let Ok(memory) = executable.memory() else { return 0 };
    let parts = [
        memory.temporary,
        memory.generated_code,
        memory.host_temporary.unwrap_or_default(),
        memory.host_generated_code.unwrap_or_default(),
    ];
    // Plug-ins report a negative number for parts that they do not count.
    let parts = parts.into_iter().map(|bytes| u64::try_from(bytes).unwrap_or(0));
    parts.fold(0, u64::saturating_add).saturating_mul(devices as u64)
}

/// Returns the size of the program's code in bytes; zero if the plug-in does not report it.
fn code(executable: &Executable) -> u64 {
    let Ok(memory) = executable.memory() else { return 0 };
    let parts = [memory.generated_code, memory.host_generated_code.unwrap_or_default()];
    // Plug-ins report a negative number for parts that they do not count.
    let parts = parts.into_iter().map(|bytes| u64::try_from(bytes).unwrap_or(0));
    parts.fold(0, u64::saturating_add)
}

/// Adds to the error of a program with host callbacks that these may be the reason: users know them
/// by other names.
fn of_callbacks(status: Status, callbacks: usize, client: &Client) -> Status {
    if status.code() == StatusCode::ResourceExhausted {
        return status;
    }
    let message = format!(
        "{}; the program calls functions of its client ({callbacks}: jax.pure_callback, io_callback, debug.print and the like), which many plug-ins do not take (this is {} of PJRT {}): compile it without, or run that part on the client's own CPU",
        status.message(),
        client.platform_name(),
        client.minor(),
    );
    Status::new(status.code(), message)
}

/// Returns the donated parameters of the module, without invalid numbers.
fn donated(module: &Module) -> BTreeSet<usize> {
    let parameters = module.parameters.len();
    module.donated.iter().copied().filter(|number| *number < parameters).collect()
}

/// Returns the ids of the devices that a program runs on, in the order of its arguments.
fn device_ids(loaded: &LoadedExecutable) -> Result<Vec<i32>, Status> {
    let ids = loaded.addressable_devices().iter().map(serdes_pjrt::Device::id);
    ids.collect::<Result<_, _>>().map_err(|error| of_pjrt(&error))
}

/// Returns the positions of the devices with these ids.
///
/// # Errors
/// UNIMPLEMENTED for a program without devices; INTERNAL for an unknown id.
fn places(devices: &Devices, ids: &[i32]) -> Result<Vec<usize>, Status> {
    if ids.is_empty() {
        return Err(status!(
            Unimplemented,
            "the program is compiled for any one device (compile_portable_executable); this server runs programs with a device assignment"
        ));
    }
    let spaces = ids.iter().map(|id| devices.space(DeviceId(*id), &MemoryKind::unset()));
    spaces.map(|space| Ok(space?.device)).collect()
}

/// Converts shardings to tiles: clients compute with them, and some crash on another form.
fn plain_shardings(shardings: &[xla::OpSharding]) -> Result<Vec<OpSharding>, Status> {
    let plain = |sharding: &xla::OpSharding| {
        let sharding = OpSharding::new(sharding.clone())?;
        sharding.named_to_tiles()
    };
    let shardings = shardings.iter().map(plain).collect::<Result<_, IfrtError>>();
    shardings.map_err(|error| {
        status!(Internal, "the plug-in gave a sharding that cannot be written as tiles: {error}")
    })
}

/// Returns the memory kind of each output: from the plug-in, or else from its module.
fn output_kinds(loaded: &LoadedExecutable, module: &Module) -> Result<Vec<Kind>, Status> {
    let executable = loaded.executable();
    let default = loaded
        .addressable_devices()
        .first()
        .map(|device| -> Option<String> { device.default_memory().ok()??.kind().ok() });
    let default = default.flatten();
    match executable.output_memory_kinds() {
        Ok(names) => names
            .iter()
            .map(|name| match Kind::of_name(name) {
                // Clients call this the device's own memory, whatever the plug-in's name for it.
                _ if default.as_ref() == Some(name) => Ok(Kind::Device),
                Some(kind) => Ok(kind),
                None => Err(status!(
                    Unimplemented,
                    "an output of the program lies in memory of the kind `{}`; this server has `device`, `pinned_host` and `unpinned_host`",
                    name.escape_debug()
                )),
            })
            .collect(),
        Err(error) if error.is_unsupported() => Ok(module.outputs.iter().map(kind_of).collect()),
        Err(error) => Err(of_pjrt(&error)),
    }
}

fn kind_of(shape: &xla::ShapeProto) -> Kind {
    match shape.layout.as_ref().map(|layout| layout.memory_space) {
        Some(HOST_MEMORY_SPACE) => Kind::PinnedHost,
        _ => Kind::Device,
    }
}

/// Returns the outputs of a program, from the plug-in's facts about each device and the global
/// sharding.
fn outputs(
    loaded: &LoadedExecutable,
    ids: &[i32],
    places: &[usize],
    shardings: &[OpSharding],
    kinds: &[Kind],
) -> Result<Vec<Output>, Status> {
    let executable = loaded.executable();
    let types = executable.output_types().map_err(|error| of_pjrt(&error))?;
    let dims = executable.output_dims().map_err(|error| of_pjrt(&error))?;
    let devices: DeviceList = ids.iter().copied().map(DeviceId).collect();
    let internal = |error: IfrtError| {
        status!(Internal, "the plug-in describes an output that cannot be: {error}")
    };
    let mut outputs = Vec::with_capacity(types.len());
    for (at, ((element_type, dims), kind)) in types.iter().zip(dims).zip(kinds).enumerate() {
        let name = element_type.name();
        let dtype: DType = name
            .parse()
            .map_err(|_| status!(Unimplemented, "IFRT has no elements of the type {name}"))?;
        let shard = Shape::new(&dims).map_err(internal)?;
        let sharding = match shardings.get(at) {
            Some(sharding) => sharding.clone(),
            None if ids.len() == 1 => OpSharding::replicated(),
            // Each device computes its own output, and no sharding says how they belong together.
            None => OpSharding::manual(),
        };
        let whole = whole_shape(&sharding, &shard).map_err(internal)?;
        let memory_kind = MemoryKind::new(kind.name());
        let sharding =
            HloSharding::new(devices.clone(), memory_kind, sharding).map_err(internal)?;
        let contents: Contents = contents_of(dtype, &shard)?;
        let spaces = places.iter().map(|&device| MemorySpace { device, kind: *kind }).collect();
        let spec = ArraySpec::new(dtype, whole, sharding);
        outputs.push(Output { spec, shard, contents, kind: *kind, spaces });
    }
    Ok(outputs)
}

/// Returns the shape of an array of which each device holds `shard`: each dimension is multiplied
/// by its number of tiles.
fn whole_shape(sharding: &OpSharding, shard: &Shape) -> Result<Shape, IfrtError> {
    let tiles = match sharding.kind() {
        OpShardingType::Tiled => sharding.shards(shard.rank())?,
        _ => None,
    };
    let Some(tiles) = tiles else { return Ok(shard.clone()) };
    let dims = shard.dims().iter().zip(tiles).map(|(dim, tiles)| dim.saturating_mul(tiles));
    Shape::new(dims.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes::ifrt::xla::TileAssignment;
    use serdes_pjrt::Minor;

    #[test]
    fn an_array_is_as_many_shards_as_there_are_tiles() {
        let shard = Shape::new([2, 3]).unwrap();
        let whole = |sharding: &OpSharding| whole_shape(sharding, &shard).unwrap().dims().to_vec();
        let tiles = |dims: &[i64]| TileAssignment::iota(dims, [8], [0]).unwrap();
        assert_eq!(whole(&OpSharding::tiled(tiles(&[4, 2]))), [8, 6]);
        // Replicas do not count as parts.
        assert_eq!(whole(&OpSharding::partially_replicated(tiles(&[1, 4, 2]))), [2, 12]);
        for sharding in [OpSharding::replicated(), OpSharding::manual(), OpSharding::maximal(0)] {
            assert_eq!(whole(&sharding), [2, 3]);
        }
        assert!(whole_shape(&OpSharding::tiled(tiles(&[8])), &shard).is_err());
        let huge = Shape::new([i64::MAX, 3]).unwrap_or_else(|_| Shape::new([1 << 62, 1]).unwrap());
        let found = whole_shape(&OpSharding::tiled(tiles(&[8, 1])), &huge);
        assert!(found.is_err() || found.is_ok_and(|found| found.dims()[0] == i64::MAX));
    }

    #[test]
    fn unknown_program_type_is_refused_with_the_known_ones() {
        let value = |type_name: &str| Serialized {
            type_name: type_name.to_owned(),
            data: Bytes::from_static(b"x"),
        };
        let program = value("xla::ifrt::XlaProgram");
        let rules = OptionRules::default();
        let target = Target { minor: Minor::NEWEST, devices: &[0] };
        for (program, options, code, part) in [
            (None, None, StatusCode::InvalidArgument, "has no program"),
            (
                Some(value("xla::ifrt::IfrtIRProgram")),
                None,
                StatusCode::Unimplemented,
                "takes `xla::ifrt::XlaProgram`",
            ),
            (Some(program.clone()), None, StatusCode::InvalidArgument, "has no compile options"),
            (
                Some(program.clone()),
                Some(value("xla::ifrt::PluginCompileOptions")),
                StatusCode::Unimplemented,
                "takes `xla::ifrt::XlaCompileOptions`",
            ),
            (Some(program), Some(value("xla::ifrt::XlaCompileOptions")), StatusCode::DataLoss, ""),
        ] {
            let error =
                Source::read(program.as_ref(), options.as_ref(), Arc::default(), &rules, target)
                    .unwrap_err();
            assert_eq!(error.code(), code, "{}", error.message());
            assert!(error.message().contains(part), "{}", error.message());
        }
    }
}
