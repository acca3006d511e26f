//! Options of XLA's compiler, as clients send them: what they may not say, and what is said to a
//! plug-in in their place.
//!
//! The options of XLA can have the compiler write what it does into files and read profiles, caches
//! and code from others. Those files would be the server's, with names that its clients choose.
//! Clients send such options without a thought: `XLA_FLAGS` of the client's own environment is in
//! every program that it compiles.
//!
//! Source of the numbers and names: XLA's `xla.proto` and `compile_options.proto`, of which these
//! have been the same from jaxlib 0.8.0 to 0.12.0.1.

use prost::encoding::{WireType, decode_key, decode_varint};

use crate::{codec::Status, pjrt::Minor, proxy::status::status};

/// The minor from which on plug-ins compile shardings in the named form. Clients from jaxlib 0.12
/// on ask for that form; a plug-in of minor 106 knows it, and ends the process on some programs for
/// several devices (`SubgroupReplicationDim should not be called`), and one of 115 does not.
/// Measured with the CPU plug-ins of PyPI.
const NAMED_SHARDINGS: Minor = Minor::new(115);

/// `executable_build_options { debug_options { xla_enable_hlo_sharding_v3: false } }`.
const IN_TILES: [u8; 7] = [0x1a, 5, 0x1a, 3, 0xa0, 0x1c, 0];

/// `executable_build_options` of `xla.CompileOptionsProto`, and `debug_options` in them.
const BUILD_OPTIONS: u32 = 3;
const DEBUG_OPTIONS: u32 = 3;
/// `env_option_overrides` of `xla.CompileOptionsProto`: options by their names.
const OVERRIDES: u32 = 7;

/// The fields of `xla.DebugOptions` that name a file or a folder, or ask for the output of the
/// compiler, which goes to its standard output where no file is named. Those that only say how it
/// is written, as clients do unasked (`xla_dump_hlo_as_long_text`), are not among them.
const OF_FILES: &[(u32, &str)] = &[
    (109, "xla_dump_to"),
    (112, "xla_dump_hlo_as_text"),
    (113, "xla_dump_hlo_as_proto"),
    (114, "xla_dump_hlo_as_dot"),
    (115, "xla_dump_hlo_as_url"),
    (116, "xla_dump_hlo_as_html"),
    (118, "xla_dump_hlo_snapshots"),
    (127, "xla_gpu_ptx_file"),
    (128, "xla_gpu_algorithm_denylist_path"),
    (150, "xla_gpu_llvm_ir_file"),
    (210, "xla_gpu_pgle_profile_file_or_directory_path"),
    (222, "xla_gpu_dump_autotune_results_to"),
    (223, "xla_gpu_load_autotune_results_from"),
    (261, "xla_gpu_target_config_filename"),
    (292, "xla_gpu_dump_autotune_logs_to"),
    (377, "xla_gpu_experimental_collective_perf_table_path"),
    (383, "xla_gpu_experimental_matmul_perf_table_path"),
    (405, "xla_dump_hlo_unoptimized_snapshots"),
    (434, "xla_gpu_gemm_autotuner_override_file"),
    (491, "xla_gpu_ptx_compiler_extra_flags"),
    (498, "xla_dump_hlo_as_riegeli"),
    (540, "xla_gpu_dump_cost_model_top_k_candidates_to"),
    (544, "xla_candidate_configs_file"),
    (554, "xla_gpu_topology_filename"),
];

/// The fields that name caches of the compiler: `xla_gpu_kernel_cache_file`,
/// `xla_gpu_per_fusion_autotune_cache_dir` and `xla_gpu_experimental_autotuner_cache_dir`. JAX sets
/// them for everyone who has it keep compiled programs; without them programs are the same.
const CACHES: [u32; 3] = [306, 310, 407];

/// `executable_build_options { debug_options { … } }` with each of these empty.
const WITHOUT_CACHES: [u8; 13] = [0x1a, 11, 0x1a, 9, 0x92, 0x13, 0, 0xb2, 0x13, 0, 0xba, 0x19, 0];

/// Where CUDA's libraries lie, which every client says, and what those say to whom nobody has told
/// anything.
const CUDA_DATA: (u32, &[u8]) = (61, b"./cuda_sdk_lib");

/// Parts of the names of options that name files, or flags of a program that is run.
const WORDS: [&str; 8] = ["dump", "file", "filename", "path", "dir", "directory", "cache", "flags"];

/// Looks at the options that a client has serialized (`xla.CompileOptionsProto`).
///
/// # Errors
/// PERMISSION_DENIED for those that have the compiler read or write files; INVALID_ARGUMENT for
/// bytes that are no such message.
pub(super) fn check(options: &[u8]) -> Result<(), Status> {
    for (number, value) in Fields(options) {
        match (number, value?) {
            (BUILD_OPTIONS, Value::Bytes(build)) => {
                for (number, value) in Fields(build) {
                    if let (DEBUG_OPTIONS, Value::Bytes(debug)) = (number, value?) {
                        check_debug(debug)?;
                    }
                }
            }
            (OVERRIDES, Value::Bytes(entry)) => check_override(entry)?,
            _ => {}
        }
    }
    Ok(())
}

/// The options that a client has serialized, as a plug-in of that minor takes them.
///
/// Parts of a message that stand in several places are put together, and of two values the last
/// counts: what is added decides. A plug-in that does not know a field passes over it.
///
/// Where the client has no debug options at all, none are added: with any of them, the plug-in takes
/// zero for all others in place of its own defaults, and some of them do not compile so.
pub(super) fn for_plugin(mut options: Vec<u8>, plugin: Minor) -> Vec<u8> {
    if !has_debug_options(&options) {
        return options;
    }
    options.extend_from_slice(&WITHOUT_CACHES);
    if plugin < NAMED_SHARDINGS {
        options.extend_from_slice(&IN_TILES);
    }
    options
}

fn has_debug_options(options: &[u8]) -> bool {
    let holds = |message, wanted| Fields(message).any(|(number, _)| number == wanted);
    Fields(options).any(|(number, value)| match value {
        Ok(Value::Bytes(build)) => number == BUILD_OPTIONS && holds(build, DEBUG_OPTIONS),
        _ => false,
    })
}

fn check_debug(options: &[u8]) -> Result<(), Status> {
    for (number, value) in Fields(options) {
        let value = value?;
        if value.is_nothing()
            || CACHES.contains(&number)
            || (number == CUDA_DATA.0 && value == Value::Bytes(CUDA_DATA.1))
        {
            continue;
        }
        if let Some((_, name)) = OF_FILES.iter().find(|(known, _)| *known == number) {
            return Err(refused(name));
        }
        // One that this build does not know may name a file, too.
        if value.has_slash() {
            return Err(refused(&format!("the field {number} of xla.DebugOptions")));
        }
    }
    Ok(())
}

/// An entry of a map: the name of an option, and its value.
fn check_override(entry: &[u8]) -> Result<(), Status> {
    let (mut name, mut given) = (&b""[..], &b""[..]);
    for (number, value) in Fields(entry) {
        match (number, value?) {
            (1, Value::Bytes(bytes)) => name = bytes,
            (2, Value::Bytes(bytes)) => given = bytes,
            _ => {}
        }
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let mut words = name.split('_');
    let names_files = words.clone().any(|word| WORDS.contains(&word))
        || matches!(words.next_back(), Some("to" | "from"));
    if names_files || given.contains(&b'/') {
        return Err(refused(&name));
    }
    Ok(())
}

fn refused(option: &str) -> Status {
    status!(
        PermissionDenied,
        "the compile options have the compiler use files ({}), which would be those of the server; take the option out of XLA_FLAGS, or of `compiler_options`, and have the program compiled in a process of its own for what it writes",
        option.escape_debug()
    )
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Four bytes or eight, which name nothing.
    Fixed,
}

impl Value<'_> {
    fn is_nothing(self) -> bool {
        matches!(self, Self::Number(0) | Self::Bytes([]))
    }

    fn has_slash(self) -> bool {
        matches!(self, Self::Bytes(bytes) if bytes.contains(&b'/'))
    }
}

/// The fields of a message, in their order; the first error is the last of them.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn read(&mut self) -> Option<(u32, Value<'a>)> {
        let (number, wire_type) = decode_key(&mut self.0).ok()?;
        let value = match wire_type {
            WireType::Varint => Value::Number(decode_varint(&mut self.0).ok()?),
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut self.0).ok()?).ok()?;
                Value::Bytes(self.split(length)?)
            }
            WireType::SixtyFourBit => self.split(8).map(|_| Value::Fixed)?,
            WireType::ThirtyTwoBit => self.split(4).map(|_| Value::Fixed)?,
            // Nothing of XLA has such a field.
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        Some((number, value))
    }

    fn split(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u32, Result<Value<'a>, Status>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        Some(self.read().map_or_else(
            || {
                self.0 = &[];
                (0, Err(status!(InvalidArgument, "the compile options are no xla.CompileOptionsProto: a field of them does not end, or is of no type that they have")))
            },
            |(number, value)| (number, Ok(value)),
        ))
    }
}

#[cfg(test)]
mod tests {
    use prost::encoding::{encode_key, encode_varint};

    use super::*;
    use crate::codec::StatusCode;

    fn bytes(number: u32, content: &[u8]) -> Vec<u8> {
        let mut field = Vec::new();
        encode_key(number, WireType::LengthDelimited, &mut field);
        encode_varint(content.len() as u64, &mut field);
        field.extend_from_slice(content);
        field
    }

    fn number(number: u32, value: u64) -> Vec<u8> {
        let mut field = Vec::new();
        encode_key(number, WireType::Varint, &mut field);
        encode_varint(value, &mut field);
        field
    }

    fn debug(options: &[Vec<u8>]) -> Vec<u8> {
        let build = [number(4, 1), bytes(DEBUG_OPTIONS, &options.concat()), number(5, 1)];
        [number(5, u64::MAX), bytes(BUILD_OPTIONS, &build.concat())].concat()
    }

    fn named(name: &str, value: &[u8]) -> Vec<u8> {
        bytes(OVERRIDES, &[bytes(1, name.as_bytes()), bytes(2, value)].concat())
    }

    #[test]
    fn what_clients_say_whom_nobody_has_told_anything_passes() {
        // As those of jaxlib 0.12.0.1 say it.
        let usual = debug(&[
            bytes(61, b"./cuda_sdk_lib"),
            bytes(109, b""),
            number(112, 0),
            number(164, 1),
            bytes(210, b""),
            bytes(258, &[13, 5, 2, 8, 3, 7, 9, 1]),
            bytes(357, b"\n\rchunk_prep_us\x12\x02-1"),
            bytes(451, b"inf"),
            number(185, 1),
            [&[0xad, 0x02][..], &[0; 4]].concat(),
        ]);
        let overrides = [
            named("xla_cpu_enable_fast_math", &number(2, 1)),
            named("xla_gpu_autotune_level", &number(3, 4)),
            named("xla_embed_ir_in_executable", &bytes(1, b"True")),
        ];
        for options in
            [vec![], usual.clone(), overrides.concat(), [usual, overrides.concat()].concat()]
        {
            assert_eq!(check(&options), Ok(()), "{options:?}");
        }
    }

    #[test]
    fn what_uses_files_of_the_server_is_refused_by_its_name() {
        let mut cases: Vec<(Vec<u8>, &str)> = Vec::new();
        for (field, name) in OF_FILES {
            cases.push((debug(&[bytes(*field, b"x")]), name));
            cases.push((debug(&[number(*field, 1)]), name));
        }
        cases.push((debug(&[bytes(61, b"/lib/cuda")]), "the field 61"));
        // One of a newer build, and one that comes after another of the same number.
        cases.push((debug(&[bytes(999, b"a/b")]), "the field 999"));
        let twice = [debug(&[bytes(109, b"")]), debug(&[bytes(109, b"out")])].concat();
        cases.push((twice, "xla_dump_to"));
        for name in
            ["xla_dump_to", "xla_gpu_load_autotune_results_from", "XLA_new_cache", "xla_a_file_of"]
        {
            cases.push((named(name, &bytes(1, b"x")), name));
        }
        cases.push((
            named("xla_backend_extra_options", &bytes(1, b"a=/etc/x")),
            "xla_backend_extra",
        ));
        for (options, name) in cases {
            let error = check(&options).unwrap_err();
            assert_eq!(error.code(), StatusCode::PermissionDenied, "{name}");
            let words = error.message().to_ascii_lowercase();
            assert!(
                words.contains(&name.to_ascii_lowercase()) && words.contains("xla_flags"),
                "{words}"
            );
        }
    }

    /// The fields of all debug options, in their order.
    fn debug_fields(options: &[u8]) -> Vec<(u32, Value<'_>)> {
        let mut found = Vec::new();
        for (_, value) in Fields(options) {
            let Value::Bytes(build) = value.unwrap() else { continue };
            for (_, value) in Fields(build) {
                let Value::Bytes(debug) = value.unwrap() else { continue };
                found.extend(Fields(debug).map(|(number, value)| (number, value.unwrap())));
            }
        }
        found
    }

    #[test]
    fn a_plugin_that_stumbles_over_named_shardings_gets_them_in_tiles_and_all_else_as_it_was_said()
    {
        let asked = debug(&[number(452, 1), number(185, 1)]);
        let before = debug_fields(&asked);
        let caches = CACHES.map(|number| (number, Value::Bytes(&[])));
        assert_eq!(before, [(452, Value::Number(1)), (185, Value::Number(1))]);
        for minor in [81, 106, 114] {
            let given = for_plugin(asked.clone(), Minor::new(minor));
            let found = debug_fields(&given);
            let expected = [&before[..], &caches, &[(452, Value::Number(0))]].concat();
            assert_eq!(found, expected, "{minor}");
            assert_eq!(check(&given), Ok(()));
        }
        let given = for_plugin(asked.clone(), Minor::new(115));
        assert_eq!(debug_fields(&given), [&before[..], &caches].concat());
        // What a client says of its caches is not refused, and is not the last word.
        let cached = debug(&[bytes(310, b"/tmp/cache")]);
        assert_eq!(check(&cached), Ok(()));
        let given = for_plugin(cached, Minor::new(115));
        let found = debug_fields(&given);
        assert_eq!(found.last(), Some(&caches[2]));
        assert!(found.iter().rposition(|field| *field == caches[1]) > Some(0));
    }

    #[test]
    fn options_of_a_client_without_debug_options_stay_as_they_are() {
        let build = [number(4, 1), number(5, 1)].concat();
        for asked in [vec![], bytes(BUILD_OPTIONS, &build), named("xla_cpu_x", &number(2, 1))] {
            assert_eq!(for_plugin(asked.clone(), Minor::new(81)), asked);
        }
        // Empty ones are some: all of them are zero.
        let asked = debug(&[]);
        assert_ne!(for_plugin(asked.clone(), Minor::new(115)), asked);
    }

    #[test]
    fn bytes_that_are_no_options_are_refused_and_no_field_hides_behind_them() {
        let hidden = debug(&[bytes(109, b"out")]);
        for before in [&[0xff; 11][..], &[0x0b], &[0x0a, 0xff, 0xff, 0x03], &[0x09, 1], &[0x0d]] {
            let error = check(&[before, &hidden].concat()).unwrap_err();
            assert!(
                matches!(error.code(), StatusCode::InvalidArgument | StatusCode::PermissionDenied),
                "{before:?}"
            );
        }
        // Between the two fields it is whole.
        for cut in 1..hidden.len() {
            assert_eq!(check(&hidden[..cut]).is_ok(), cut == number(5, u64::MAX).len(), "{cut}");
        }
    }
}
