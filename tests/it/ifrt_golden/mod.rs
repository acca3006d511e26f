//! Tests the golden bytes of the IFRT types: every type at every version, read and written. See
//! `tests/golden/README.md`.

mod futures;
mod programs;
mod samples;
mod text;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use prost::Message as _;
use prost_types::FileDescriptorSet;
use serdes::{
    codec::{ErrorKind, StatusCode},
    version::{Ifrt, Line as _, SerDesAnyVersionAccessor, SerDesVersion, Version, VersionRange},
};

use samples::{Sample, samples};

const REGENERATE: &str = "SERDES_REGENERATE_GOLDEN";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/ifrt_serdes")
}

fn versions() -> impl Iterator<Item = SerDesVersion> {
    let range = VersionRange::<Ifrt>::supported();
    (range.minimum()..=range.maximum())
        .filter_map(|number| SerDesAnyVersionAccessor::get(number).ok())
}

fn path(sample: &Sample, version: SerDesVersion) -> PathBuf {
    let dash = if sample.case.is_empty() { "" } else { "-" };
    let file = format!("v{}{dash}{}.bin", version.number(), sample.case);
    directory().join(sample.type_name).join(file)
}

/// Returns all samples with the versions at which they are refused.
fn manifest() -> String {
    let mut text = "# Values behind the golden bytes\n\nWritten by the test; not to be edited.\n\n\
                    | type | case | value | refused at |\n|---|---|---|---|\n"
        .to_owned();
    for sample in samples() {
        let refused: Vec<_> = versions()
            .filter(|version| (sample.write)(*version).is_err())
            .map(|version| version.number().to_string())
            .collect();
        let value = sample.value.replace('|', "\\|");
        writeln!(
            text,
            "| {} | {} | `{value}` | {} |",
            sample.type_name,
            sample.case,
            refused.join(" ")
        )
        .unwrap();
    }
    text
}

#[test]
fn every_type_is_written_as_ever_at_every_version() {
    if std::env::var_os(REGENERATE).is_some() {
        for sample in samples() {
            for version in versions() {
                if let Ok(bytes) = (sample.write)(version) {
                    let path = path(&sample, version);
                    // Existing files are kept forever, and compared below.
                    if !path.exists() {
                        fs::create_dir_all(path.parent().unwrap()).unwrap();
                        fs::write(path, bytes).unwrap();
                    }
                }
            }
        }
        fs::write(directory().join("MANIFEST.md"), manifest()).unwrap();
    }
    for sample in samples() {
        for version in versions() {
            let path = path(&sample, version);
            let name = format!("{} {} at {version}", sample.type_name, sample.case);
            match (sample.write)(version) {
                Ok(bytes) => {
                    let golden = fs::read(&path).unwrap_or_else(|error| {
                        panic!("{}: {error}; write it with {REGENERATE}=1", path.display())
                    });
                    assert_eq!(bytes, golden, "{name}");
                    assert_eq!((sample.can_write)(version), Ok(()), "{name}");
                }
                Err(error) => {
                    assert_eq!(error.code(), StatusCode::FailedPrecondition, "{name}: {error}");
                    assert!(error.to_string().contains("is the first that can"), "{name}: {error}");
                    assert_eq!((sample.can_write)(version), Err(error), "{name}");
                    assert!(!path.exists(), "{name} is refused, but {} exists", path.display());
                }
            }
        }
    }
    assert_eq!(fs::read_to_string(directory().join("MANIFEST.md")).unwrap(), manifest());
}

/// Returns the golden bytes as text, by type; bytes that are the same at several versions occur
/// once.
fn texts() -> BTreeMap<&'static str, String> {
    let bytes = include_bytes!("../../../proto/descriptors.binpb");
    let set = FileDescriptorSet::decode(&bytes[..]).unwrap();
    let printer = text::Printer(&set);
    let mut texts = BTreeMap::new();
    for sample in samples() {
        let mut files: Vec<(bytes::Bytes, Vec<String>)> = Vec::new();
        for version in versions() {
            let Ok(bytes) = (sample.write)(version) else { continue };
            let path = path(&sample, version);
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            match files.last_mut() {
                Some((last, files)) if *last == bytes => files.push(file),
                _ => files.push((bytes, vec![file])),
            }
        }
        let text = texts.entry(sample.type_name).or_insert_with(|| {
            format!(
                "# {}\n\nThe golden bytes as text. Written by `cargo xtask golden`; not to be edited.\n",
                sample.type_name
            )
        });
        for (bytes, files) in files {
            let fields = printer.print(&sample.message, &bytes);
            let (files, length) = (files.join(" "), bytes.len());
            writeln!(text, "\n    {files} ({length} bytes)\n\n```text\n{fields}```").unwrap();
        }
    }
    texts
}

#[test]
fn golden_bytes_have_a_matching_text_beside_them() {
    let texts = texts();
    for (type_name, text) in &texts {
        let path = directory().join(format!("{type_name}.md"));
        if std::env::var_os(REGENERATE).is_some() {
            fs::create_dir_all(directory()).unwrap();
            fs::write(&path, text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(&found, text, "{}: write it with {REGENERATE}=1", path.display());
    }
    for file in fs::read_dir(directory()).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let known = texts.contains_key(name) || name == "MANIFEST";
        assert!(known, "{}: no sample is of this type", path.display());
    }
}

#[test]
fn every_golden_file_is_read_as_the_value_that_was_written() {
    let mut read = BTreeSet::new();
    for sample in samples() {
        for version in versions() {
            let path = path(&sample, version);
            let Ok(bytes) = fs::read(&path) else { continue };
            (sample.read)(bytes.into())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            read.insert(path);
        }
    }
    for directory in fs::read_dir(directory()).unwrap() {
        let directory = directory.unwrap().path();
        if directory.is_dir() {
            for file in fs::read_dir(directory).unwrap() {
                let path = file.unwrap().path();
                assert!(read.contains(&path), "{}: no sample reads it", path.display());
            }
        }
    }
}

/// The types without a registered name.
const WITHOUT_NAME: &[&str] = &[
    "AbstractArraySpec",
    "ArraySpec",
    "AttributeMap",
    "BoundedDynamicShapeTag",
    "DType",
    "DeviceList",
    "DynamicShape",
    "ExecuteOptions",
    "Index",
    "IndexDomain",
    "RemapPlan",
    "Shape",
    "ShardingParam",
    "XlaExecutableMetadata",
    "XlaHostCallback",
];

#[test]
fn registered_types_and_versioned_messages_have_golden_bytes() {
    let samples = samples();
    let registered = serdes::ifrt::BUILT_IN_NAMES.iter().map(|name| {
        let (_, name) = name.split_once("::ifrt::").unwrap();
        // The type has kept its old name on the wire.
        if name == "XlaProgram" { "HloProgram" } else { name }
    });
    let wanted: BTreeSet<_> = registered.chain(WITHOUT_NAME.iter().copied()).collect();
    let found: BTreeSet<_> = samples.iter().map(|sample| sample.type_name).collect();
    assert_eq!(found, wanted);
    for type_name in wanted {
        let newest = directory()
            .join(type_name)
            .join(format!("v{}.bin", Version::<Ifrt>::current().number()));
        assert!(newest.exists(), "{} is missing", newest.display());
    }

    // Every message that records a version belongs to a sample, or is nested in a sample's data.
    let bytes = include_bytes!("../../../proto/descriptors.binpb");
    let set = FileDescriptorSet::decode(&bytes[..]).unwrap();
    let sampled: BTreeSet<_> = samples.iter().map(|sample| sample.message.as_str()).collect();
    let nested = ["xla.ifrt.SerializedIfrtIrExecutableMetadata"];
    for file in set.file.iter().filter(|file| ["xla.ifrt", "serdes.ifrt"].contains(&file.package()))
    {
        for message in &file.message_type {
            let name = format!("{}.{}", file.package(), message.name());
            if version_field(&name).is_some() && !nested.contains(&name.as_str()) {
                assert!(sampled.contains(name.as_str()), "{name} has no golden bytes");
            }
        }
    }
}

/// Returns the last value of an int32 field of a message; 0 if it is missing.
fn recorded(bytes: &[u8], field: u32) -> i32 {
    let mut rest = bytes;
    let mut found = 0;
    while !rest.is_empty() {
        let (number, wire_type) = prost::encoding::decode_key(&mut rest).unwrap();
        if number == field {
            prost::encoding::int32::merge(wire_type, &mut found, &mut rest, Default::default())
                .unwrap();
        } else {
            prost::encoding::skip_field(wire_type, number, &mut rest, Default::default()).unwrap();
        }
    }
    found
}

#[test]
fn registry_and_code_have_the_same_types_and_formats() {
    let mut written = BTreeSet::new();
    for sample in samples() {
        let field = version_field(&sample.message);
        let any = programs::NUMBER_NOT_CHECKED.contains(&sample.type_name);
        for version in versions() {
            let Ok(bytes) = (sample.write)(version) else { continue };
            // Types that record no number, or any number, have one format.
            let number = field.filter(|_| !any).map_or(0, |field| recorded(&bytes, field));
            written.insert((sample.type_name, number));
        }
    }
    let types = Ifrt::TYPES.iter();
    let listed: BTreeSet<_> =
        types.flat_map(|found| found.recorded.iter().map(|number| (found.name, *number))).collect();
    // Only on the left: written, but in no entry of versions.toml. Only on the right: listed there,
    // but never written.
    assert_eq!(written, listed);
}

/// A type records only its own formats, and is not written for requests below the first one that
/// allows it.
#[test]
fn types_are_written_from_the_number_on_with_which_they_appear() {
    for sample in samples() {
        let found = Ifrt::TYPES.iter().find(|found| found.name == sample.type_name).unwrap();
        for version in versions() {
            let is_there = version.number() >= found.granted[0];
            let written = (sample.write)(version);
            assert!(is_there || written.is_err(), "{} at {version}", sample.type_name);
            if let (false, Err(error)) = (is_there, written) {
                let text = error.to_string();
                let first = format!("version {} is the first that can", found.granted[0]);
                assert!(text.contains(sample.type_name) && text.contains(&first), "{text}");
            }
        }
    }
}

/// Returns the number of the field in which a message records its version; `None` for messages
/// without one.
fn version_field(message: &str) -> Option<u32> {
    if message.starts_with("google.protobuf") {
        return None;
    }
    let bytes = include_bytes!("../../../proto/descriptors.binpb");
    let set = FileDescriptorSet::decode(&bytes[..]).unwrap();
    let (package, name) = message.rsplit_once('.').unwrap();
    let files = set.file.iter().filter(|file| file.package() == package);
    let message = files
        .flat_map(|file| &file.message_type)
        .find(|message| message.name() == name)
        .unwrap_or_else(|| panic!("{message}"));
    let fields = message.field.iter();
    let mut fields = fields.filter(|field| field.name().ends_with("version_number"));
    fields.next().map(|field| u32::try_from(field.number()).unwrap())
}

#[test]
fn a_future_version_of_every_type_is_too_new_and_never_corrupt() {
    let newest = VersionRange::<Ifrt>::supported().maximum();
    for sample in samples() {
        let Some(field) = version_field(&sample.message) else { continue };
        if programs::NUMBER_NOT_CHECKED.contains(&sample.type_name) {
            continue;
        }
        for future in [newest + 1, i32::MAX] {
            let mut bytes = (sample.write)(SerDesVersion::current()).unwrap().to_vec();
            // The last value of a field that is given twice counts.
            prost::encoding::int32::encode(field, &future, &mut bytes);
            let error = (sample.read)(bytes.into()).unwrap_err();
            let name = format!("{} {}", sample.type_name, sample.case);
            assert_eq!(error.kind(), ErrorKind::TooNew, "{name}: {error}");
            assert_eq!(error.code(), StatusCode::FailedPrecondition, "{name}");
            let text = error.to_string();
            assert!(
                text.contains(&future.to_string()) && text.contains("upgrade"),
                "{name}: {text}"
            );
        }
    }
}

/// Types in which nothing records a version of IFRT: portable artifacts and the bytes of plug-ins
/// have their own versions, and a host callback has none.
const WITHOUT_VERSION: [&str; 4] =
    ["HloProgram", "PluginCompileOptions", "PluginProgram", "XlaHostCallback"];

#[test]
fn future_version_of_any_part_makes_the_value_too_new() {
    let descriptors = futures::Descriptors::new();
    let newest = VersionRange::<Ifrt>::supported().maximum();
    let (mut without, mut places) = (BTreeSet::new(), BTreeSet::new());
    for sample in samples() {
        let bytes = (sample.write)(SerDesVersion::current()).unwrap();
        let futures = descriptors.futures(&sample.message, &bytes, newest + 1);
        if futures.is_empty() {
            without.insert(sample.type_name);
        }
        for (place, bytes) in futures {
            let name = format!("{} {}: {place}", sample.type_name, sample.case);
            if place.is_empty() && programs::NUMBER_NOT_CHECKED.contains(&sample.type_name) {
                continue;
            }
            let error = (sample.read)(bytes.into()).expect_err(&name);
            assert_eq!(error.kind(), ErrorKind::TooNew, "{name}: {error}");
            assert!(error.to_string().contains(&(newest + 1).to_string()), "{name}: {error}");
            places.insert(place);
        }
    }
    assert_eq!(without.into_iter().collect::<Vec<_>>(), WITHOUT_VERSION);
    // Envelopes have no version either; the versions in their content are found.
    for place in [
        "sharding.serialized_sharding.data.devices",
        "sharding_spec.serialized_sharding_spec.data",
        "parameter_specs.layout.serialized_layout.data",
        "input_specs.sharding.serialized_sharding.data.devices",
        "output_specs.dtype",
        "custom_options",
    ] {
        assert!(places.contains(place), "{place} in {places:?}");
    }
}

#[test]
fn data_written_for_a_version_is_readable_at_that_version() {
    let has_version = |sample: &Sample| version_field(&sample.message).is_some();
    for sample in samples().into_iter().filter(has_version) {
        for version in versions() {
            let Ok(bytes) = (sample.write)(version) else { continue };
            let inspection = serdes::ifrt::Inspection::of_message(&sample.message, &bytes).unwrap();
            let name = format!("{} {} at {version}", sample.type_name, sample.case);
            assert!(
                inspection.minimum_reader_version() <= version.number(),
                "{name}: {inspection}"
            );
        }
    }
}
