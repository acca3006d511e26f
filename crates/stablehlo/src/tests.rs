//! Comparison of converted programs with those that jaxlib 0.12.0.1 wrote.

use std::{borrow::Cow, sync::Mutex};

use super::{
    bytecode::{Bytecode, write_varint},
    catalogue::{VHLO, attribute_code},
    *,
};

macro_rules! artifact {
    ($name:literal) => {
        include_bytes!(concat!("../../../tests/data/stablehlo/", $name, ".mlirbc"))
    };
}

const OLD: StableHloVersion = StableHloVersion::new(1, 13, 3);

fn version(text: &str) -> StableHloVersion {
    text.parse().unwrap()
}

/// Returns the names of all operations, in the order of the program.
fn operations(bytes: &[u8]) -> Vec<String> {
    let file = Bytecode::read(bytes).unwrap();
    let mut names = Vec::new();
    file.walk(|operation| {
        let (dialect, name) = file.operation_name(operation.name);
        names.push(format!("{dialect}.{name}"));
    })
    .unwrap();
    names
}

/// Returns the values of all constant tensors, sorted.
fn tensors(bytes: &[u8]) -> Vec<Vec<u8>> {
    let file = Bytecode::read(bytes).unwrap();
    let mut tensors = Vec::new();
    for entry in &file.attributes {
        if let Some((attribute_code::TENSOR, mut contents)) = file.code(entry, VHLO) {
            contents.varint().unwrap();
            tensors.push(contents.stretch().unwrap().to_vec());
        }
    }
    tensors.sort();
    tensors
}

/// Asserts that `properties` properties differ, an attribute was appended, and everything else is
/// the same.
pub(super) fn same_but_for(one: &[u8], other: &[u8], properties: usize) {
    let (one, other) = (Bytecode::read(one).unwrap(), Bytecode::read(other).unwrap());
    assert_eq!(one.strings, other.strings);
    let bytes = |entries: &[super::bytecode::Entry<'_>]| -> Vec<Vec<u8>> {
        entries.iter().map(|entry| entry.contents.rest().to_vec()).collect()
    };
    assert_eq!(bytes(&one.types), bytes(&other.types));
    let (before, after) = (bytes(&one.attributes), bytes(&other.attributes));
    assert!(after.starts_with(&before) && after.len() <= before.len() + 1);
    let pairs = one.properties.iter().zip(&other.properties);
    assert_eq!(pairs.filter(|(one, other)| one != other).count(), properties);
    assert_eq!(one.properties.len(), other.properties.len());
    let operations = |file: &Bytecode<'_>| -> Vec<Vec<u8>> {
        let mut sections = file.sections.iter();
        let is_of_operations = |kind| kind == super::bytecode::SectionKind::Operations;
        sections
            .by_ref()
            .filter(|section| is_of_operations(section.kind))
            .map(|section| section.contents.rest().to_vec())
            .collect()
    };
    assert_eq!(operations(&one), operations(&other));
}

#[test]
fn a_program_of_old_operations_is_as_the_real_writer_writes_it() {
    let program = Program::read(artifact!("add-1.22.0")).unwrap();
    assert_eq!(program.version(), version("1.22.0"));
    assert_eq!(program.needs(), []);
    assert_eq!(program.lowest_as_it_is(), Some(StableHloVersion::OLDEST_TARGET));
    assert_eq!(program.dialects().collect::<Vec<_>>(), ["builtin", "vhlo"]);
    assert_eq!(program.written_for(OLD).unwrap(), artifact!("add-1.13.3"));
}

#[test]
fn a_composite_without_regions_is_as_the_real_writer_writes_it() {
    let program = Program::read(artifact!("top_k-1.16.3")).unwrap();
    let needs: Vec<_> = program.needs().iter().map(Need::to_string).collect();
    assert_eq!(needs, ["operation vhlo.composite_v2 (since 1.14.0)"]);
    assert_eq!(program.lowest_as_it_is(), Some(version("1.14.0")));
    assert_eq!(program.lowest_rewritten(), Some(StableHloVersion::OLDEST_TARGET));
    assert_eq!(program.written_for(OLD).unwrap(), artifact!("top_k-1.13.3"));
}

#[test]
fn groups_by_mesh_axes_are_listed_as_by_the_real_writer() {
    for (newer, older) in [
        (&artifact!("psum-1.16.3")[..], &artifact!("psum-1.13.3")[..]),
        (artifact!("psum_reversed-1.16.3"), artifact!("psum_reversed-1.13.3")),
        (artifact!("gather_two_axes-1.16.3"), artifact!("gather_two_axes-1.13.3")),
    ] {
        let program = Program::read(newer).unwrap();
        assert_eq!(program.lowest_as_it_is(), Some(version("1.16.0")));
        let written = program.written_for(OLD).unwrap();
        assert_ne!(tensors(newer), tensors(older));
        assert_eq!(tensors(&written), tensors(older));
        assert_eq!(operations(&written), operations(older));
        let again = Program::read(&written).unwrap();
        assert_eq!(again.version(), OLD);
        assert!(again.lowest_as_it_is() <= Some(OLD), "{:?}", again.needs());
    }
}

#[test]
fn a_custom_call_without_tilings_is_the_older_one() {
    let newer = artifact!("cholesky-1.22.0");
    let program = Program::read(newer).unwrap();
    assert_eq!(program.lowest_as_it_is(), Some(version("1.18.0")));
    let written = program.written_for(version("1.17.0")).unwrap();
    assert_eq!(operations(&written), operations(artifact!("cholesky-1.17.0")));
    assert_ne!(operations(&written), operations(newer));
    // Eight attributes instead of nine, in the only custom call.
    let lengths = |bytes| {
        let file = Bytecode::read(bytes).unwrap();
        let mut lengths: Vec<_> =
            file.properties.iter().map(|properties| properties.len()).collect();
        lengths.sort_unstable();
        lengths
    };
    assert_eq!(lengths(&written), lengths(artifact!("cholesky-1.17.0")));
    assert_eq!(program.written_for(version("1.18.0")).unwrap().len(), newer.len());
}

#[test]
fn custom_calls_are_read_with_their_targets() {
    let targets = |bytes| Program::read(bytes).unwrap().custom_calls().collect::<Vec<_>>();
    assert_eq!(targets(artifact!("cholesky-1.22.0")), [Some("lapack_spotrf_ffi")]);
    assert_eq!(targets(artifact!("cholesky-1.17.0")), [Some("lapack_spotrf_ffi")]);
    assert_eq!(targets(artifact!("psum-1.16.3")), []);
    let psum = Program::read(artifact!("psum-1.16.3")).unwrap();
    assert_eq!(psum.operation_dialects().collect::<Vec<_>>(), ["builtin", "sdy", "vhlo"]);
}

#[test]
fn operations_with_several_regions_are_walked() {
    let names = operations(artifact!("pooling_gradient-1.22.0"));
    assert!(names.contains(&"vhlo.select_and_scatter_v1".to_owned()), "{names:?}");
}

#[test]
fn feature_that_an_older_version_lacks_is_refused_by_name() {
    // Replaces the name of an operation by a later one of the same length.
    let renamed = |from: &[u8], to: &[u8]| {
        let mut bytes = artifact!("psum-1.16.3").to_vec();
        let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to);
        bytes
    };
    let unknown = renamed(b"all_reduce_v2\0", b"all_deduce_v9\0");
    let program = Program::read(&unknown).unwrap();
    assert_eq!(program.lowest_rewritten(), None);
    let error = program.written_for(OLD).unwrap_err().to_string();
    assert!(error.contains("vhlo.all_deduce_v9 (unknown here)"), "{error}");
    assert!(error.contains("is of StableHLO 1.16.3"), "{error}");
    // A mesh without a name is not guessed.
    let nameless = renamed(b"stablehlo.mesh\0", b"stablehlo.nest\0");
    let program = Program::read(&nameless).unwrap();
    assert_eq!(program.lowest_rewritten(), Some(version("1.16.0")));
    let error = program.written_for(OLD).unwrap_err().to_string();
    assert!(error.contains("replica groups by the axes of a mesh (since 1.16.0)"), "{error}");
    let error = program.written_for(version("0.19.0")).unwrap_err();
    assert!(matches!(error, StableHloError::TargetTooOld { .. }), "{error}");
}

#[test]
fn feature_of_a_newer_stablehlo_is_not_known_to_be_expressible() {
    let mut bytes = artifact!("add-1.22.0").to_vec();
    let at = bytes.windows(6).position(|window| window == b"1.22.0").unwrap();
    bytes[at..at + 6].copy_from_slice(b"1.23.0");
    let program = Program::read(&bytes).unwrap();
    assert_eq!(program.lowest_as_it_is(), None);
    let error = program.written_for(version("1.22.0")).unwrap_err().to_string();
    assert!(error.contains("rules after 1.22.0 (unknown here)"), "{error}");
}

/// A converter that returns its input, and records the requested version.
#[derive(Debug)]
struct Answering(Result<Vec<u8>, String>, Mutex<Vec<StableHloVersion>>);

impl ProgramBridge for Answering {
    fn write_for(
        &self,
        _program: &[u8],
        _version: StableHloVersion,
        target: StableHloVersion,
    ) -> Result<Vec<u8>, String> {
        self.1.lock().unwrap().push(target);
        self.0.clone()
    }
}

#[test]
fn bridge_is_asked_only_for_unsupported_versions_and_checked() {
    let too_new = |answer: Result<&[u8], &str>| {
        let mut bytes = artifact!("psum-1.16.3").to_vec();
        let at = bytes.windows(14).position(|window| window == b"stablehlo.mesh").unwrap();
        bytes[at] = b'x';
        let answer = answer.map(<[u8]>::to_vec).map_err(str::to_owned);
        let bridge = Answering(answer, Mutex::default());
        let found = Program::for_reader(&bytes, OLD, Some(&bridge)).map(Cow::into_owned);
        assert_eq!(*bridge.1.lock().unwrap(), [OLD]);
        found
    };
    let older = artifact!("psum-1.13.3");
    assert_eq!(too_new(Ok(older)), Ok(older.to_vec()));
    let words = |answer| too_new(answer).unwrap_err().to_string();
    assert!(words(Err("it hangs")).contains("was not brought to 1.13.3: it hangs"));
    assert!(words(Ok(artifact!("top_k-1.16.3"))).contains("still has operation vhlo.composite_v2"));
    assert!(words(Ok(b"no program")).contains("in the answer the program is no MLIR bytecode"));
    assert!(words(Ok(&[0; 1 << 20])).contains("the answer has 1048576 bytes"));
    let silent = Answering(Err("asked".to_owned()), Mutex::default());
    for (bytes, reader) in [
        (&artifact!("top_k-1.16.3")[..], "1.13.3"),
        (artifact!("add-1.22.0"), "1.13.3"),
        (artifact!("psum-1.16.3"), "1.16.0"),
        (b"module {}", "1.13.3"),
    ] {
        assert!(Program::for_reader(bytes, version(reader), Some(&silent)).is_ok());
    }
    assert!(silent.1.lock().unwrap().is_empty());
    // The converter is asked for readers older than the oldest known one; without a converter the
    // reader itself decides.
    let older = artifact!("psum-1.13.3");
    assert!(Program::for_reader(older, version("0.9.0"), Some(&silent)).is_err());
    assert!(matches!(Program::for_reader(older, version("0.9.0"), None), Ok(Cow::Borrowed(_))));
}

#[test]
fn default_accuracies_are_left_out_for_old_readers() {
    let program = |name: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/programs");
        std::fs::read(format!("{folder}/{name}.mlirbc")).unwrap()
    };
    for (name, target, newer, older) in [
        ("tanh", "1.9.0", "tanh_v2", "tanh_v1"),
        ("exp", "1.8.0", "exponential_v2", "exponential_v1"),
        ("tan", "1.4.0", "tan_v2", "tan_v1"),
        ("matmul", "1.5.0", "dot_general_v2", "dot_general_v1"),
        ("gather", "1.0.0", "gather_v2", "gather_v1"),
        ("scatter", "1.0.0", "scatter_v2", "scatter_v1"),
        ("while", "1.0.0", "while_v1", "while_v1"),
        ("gelu", "1.0.0", "tanh_v2", "tanh_v1"),
    ] {
        let bytes = program(name);
        let unversioned = |names: &[String]| -> Vec<String> {
            names.iter().map(|name| name.split("_v").next().unwrap().to_owned()).collect()
        };
        let written = Program::read(&bytes).unwrap().written_for(version(target)).unwrap();
        let (before, after) = (operations(&bytes), operations(&written));
        assert!(before.contains(&format!("vhlo.{newer}")), "{name}: {before:?}");
        assert!(after.contains(&format!("vhlo.{older}")), "{name}: {after:?}");
        assert_eq!(unversioned(&before), unversioned(&after), "{name}");
        let again = Program::read(&written).unwrap();
        assert!(again.lowest_as_it_is() <= Some(version(target)), "{name}: {:?}", again.needs());
    }
    // An operation and a custom call's interface that are newer than the version.
    let tangent = program("tan");
    let error = Program::read(&tangent).unwrap().written_for(version("1.3.0")).unwrap_err();
    assert!(error.to_string().contains("operation vhlo.tan_v2"), "{error}");
    let mut typed = program("cholesky");
    let file = Bytecode::read(&typed).unwrap();
    let mut codes = file.attributes.iter().filter_map(|entry| file.code(entry, VHLO));
    let is_interface = |(code, _): &(u64, _)| *code == attribute_code::CUSTOM_CALL_VERSION;
    let at = codes.find(is_interface).unwrap().1.at();
    typed[at] = 4 << 1 | 1;
    let typed = Program::read(&typed).unwrap();
    assert!(typed.written_for(version("1.3.0")).is_ok());
    let error = typed.written_for(version("1.2.0")).unwrap_err();
    assert!(error.to_string().contains("typed interface (since 1.3.0)"), "{error}");
}

#[test]
fn a_program_that_the_reader_knows_is_passed_on_as_it_is() {
    let bytes = artifact!("add-1.22.0");
    assert!(matches!(Program::for_reader(bytes, OLD, None), Ok(Cow::Borrowed(_))));
    let bytes = artifact!("psum-1.16.3");
    assert!(matches!(Program::for_reader(bytes, version("1.16.0"), None), Ok(Cow::Borrowed(_))));
    assert!(matches!(Program::for_reader(bytes, version("1.15.9"), None), Ok(Cow::Owned(_))));
}

#[test]
fn foreign_file_is_told_from_a_damaged_artifact() {
    let of = |bytes: &[u8]| Program::read(bytes).unwrap_err();
    assert!(matches!(of(b""), StableHloError::NoArtifact { .. }));
    assert!(matches!(of(b"module @jit {}"), StableHloError::NoArtifact { .. }));
    assert!(matches!(of(b"ML\xEFR\x0DMLIR18\0"), StableHloError::NoArtifact { .. }));
    assert_eq!(of(b"ML\xEFR\x07StableHLO_v0.13.0\0"), StableHloError::UnknownEncoding { found: 3 });
    assert!(matches!(of(b"ML\xEFR\x0DStableHLO_v1.x\0"), StableHloError::NoVersion { .. }));
    let whole = artifact!("top_k-1.16.3");
    for length in 24..whole.len() {
        let error = of(&whole[..length]);
        assert!(matches!(error, StableHloError::Malformed { at, .. } if at <= length), "{error}");
    }
}

#[test]
fn changed_bytes_are_refused_or_written_and_read_again() {
    for whole in [
        &artifact!("psum_reversed-1.16.3")[..],
        artifact!("top_k-1.16.3"),
        artifact!("cholesky-1.22.0"),
    ] {
        for at in (0..whole.len()).step_by(2) {
            for change in [1, 0xFF] {
                let mut bytes = whole.to_vec();
                bytes[at] ^= change;
                let Ok(program) = Program::read(&bytes) else { continue };
                let Ok(written) = program.written_for(OLD) else { continue };
                let again = Program::read(&written).unwrap();
                assert!(again.lowest_as_it_is() <= Some(OLD) || program.version() <= OLD);
            }
        }
    }
}

#[test]
fn nesting_and_counts_of_any_size_take_no_stack_and_no_memory() {
    let mut operations = Vec::new();
    write_varint(&mut operations, 2);
    // Deeply nested modules: name 0, regions, location 0, one region of one block.
    for _ in 0..200_000 {
        operations.extend([1, 0x10, 1, 5, 3, 1, 5]);
    }
    let file = |operations: &[u8]| {
        let mut bytes = b"ML\xEFR\x0DStableHLO_v1.16.3\0".to_vec();
        let sections: [(u8, &[u8]); 5] = [
            (0, &[3, 9, b'v', b'h', b'l', b'o', 0]),
            (1, &[3, 1, 3, 1, 3, 3]),
            (2, &[]),
            (3, &[1, 1]),
            (4, operations),
        ];
        for (kind, contents) in sections {
            bytes.push(kind);
            write_varint(&mut bytes, contents.len() as u64);
            bytes.extend_from_slice(contents);
        }
        bytes
    };
    assert!(matches!(Program::read(&file(&operations)), Err(StableHloError::Malformed { .. })));
    // An operation with a huge number of operands.
    let greedy = [2, 1, 4, 1, 0, 255, 255, 255, 255, 255, 255, 255, 255];
    assert!(Program::read(&file(&greedy)).is_err());
}
