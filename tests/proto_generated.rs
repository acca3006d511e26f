//! Generates `src/proto/generated/` and `proto/descriptors.binpb` from `proto/` and compares them with what is checked in.
//!
//! Users need neither protoc nor a build script: the generated code is part of the repository. To change a message:
//!
//! 1. Edit a file under `proto/`, or add one: every `.proto` file there is taken, in any directory. A message that real
//!    builds write keeps their package, names and numbers.
//! 2. Run `SERDES_REGENERATE_PROTO=1 cargo test -p serdes --test proto_generated`.
//! 3. Only for a new package: add its module to `src/proto/mod.rs`, nested as the package is.
//!
//! Stubs of gRPC services are made here too: give `generator` a service generator.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use prost::Message as _;
use prost_types::{
    DescriptorProto, FileDescriptorProto, FileDescriptorSet, field_descriptor_proto::Type,
    source_code_info::Location,
};

const REGENERATE: &str = "SERDES_REGENERATE_PROTO";

/// Messages of the compiler that are kept as bytes, and those that only they refer to.
const OPAQUE: [&str; 5] = [
    ".xla.CompileOptionsProto",
    ".xla.ExecutableBuildOptionsProto",
    ".xla.OpMetadata",
    ".xla.OptionOverrideProto",
    ".stream_executor.GpuTargetConfigProto",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Collects all `.proto` files below `directory`, as paths relative to `proto/`.
fn proto_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            proto_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            found.push(path.strip_prefix(root().join("proto")).unwrap().to_owned());
        }
    }
    found.sort();
}

fn descriptors() -> FileDescriptorSet {
    let mut files = Vec::new();
    proto_files(&root().join("proto"), &mut files);
    let mut compiler = protox::Compiler::new([root().join("proto")]).unwrap();
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(&files).unwrap();
    compiler.file_descriptor_set()
}

/// How the code is generated.
fn generator(out: &Path) -> prost_build::Config {
    let mut config = prost_build::Config::new();
    config.out_dir(out).bytes(["."]).enable_type_names();
    for message in OPAQUE {
        config.extern_path(message, "crate::proto::OpaqueMessage");
    }
    config
}

/// Turns a oneof whose members have numbers on both sides of another field's into optional fields.
///
/// prost writes a oneof at the place of its lowest number; the C++ writer goes by the number of the member.
fn separate_interleaved_oneofs(message: &mut DescriptorProto) {
    message.nested_type.iter_mut().for_each(separate_interleaved_oneofs);
    for index in (0..message.oneof_decl.len()).rev() {
        let index = index as i32;
        let (members, others): (Vec<_>, Vec<_>) =
            message.field.iter().partition(|field| field.oneof_index == Some(index));
        let numbers = || members.iter().map(|field| field.number());
        let (Some(first), Some(last)) = (numbers().min(), numbers().max()) else { continue };
        if !others.iter().any(|field| (first..last).contains(&field.number())) {
            continue;
        }
        let messages_only = members.iter().all(|field| field.r#type() == Type::Message);
        assert!(messages_only, "{}: only messages have presence outside a oneof", message.name());
        message.oneof_decl.remove(index as usize);
        for field in &mut message.field {
            field.oneof_index = match field.oneof_index {
                Some(found) if found == index => None,
                Some(found) if found > index => Some(found - 1),
                unchanged => unchanged,
            };
        }
    }
}

/// Turns maps into lists of their entries, which are the same bytes. Gives the paths of the entries and of their fields in the file.
///
/// prost does not look at the wire type of a map field: a varint in its place is taken for the length of an entry. Of a list it does.
fn list_map_entries(message: &mut DescriptorProto, path: &[i32]) -> Vec<Vec<i32>> {
    let mut found = Vec::new();
    for (index, nested) in (0..).zip(&mut message.nested_type) {
        // 3 is the field of nested messages, 2 that of fields, in the message about a message.
        let path = [path, &[3, index]].concat();
        found.extend(list_map_entries(nested, &path));
        let entry = nested.options.as_mut().and_then(|options| options.map_entry.take());
        if entry == Some(true) {
            found.extend((0..nested.field.len()).map(|at| [&path[..], &[2, at as i32]].concat()));
            found.push(path);
        }
    }
    found
}

/// The same for a file. The generator looks the comments of each message up, which the entries of a map do not have.
fn list_maps(file: &mut FileDescriptorProto) {
    let messages = (0..).zip(&mut file.message_type);
    let paths = messages.flat_map(|(index, message)| list_map_entries(message, &[4, index]));
    let paths: Vec<_> = paths.collect();
    let locations = &mut file.source_code_info.get_or_insert_default().location;
    locations.extend(paths.into_iter().map(|path| Location { path, ..Default::default() }));
    locations.sort_by(|left, right| left.path.cmp(&right.path));
}

fn read_directory(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(directory) else { return BTreeMap::new() };
    entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect()
}

#[test]
fn the_generated_code_is_what_the_proto_files_say() {
    let mut set = descriptors();
    let mut plain = set.clone();
    plain.file.iter_mut().for_each(|file| file.source_code_info = None);
    let plain = plain.encode_to_vec();

    for file in &mut set.file {
        file.message_type.iter_mut().for_each(separate_interleaved_oneofs);
        list_maps(file);
    }
    let out = tempfile::tempdir().unwrap();
    generator(out.path()).compile_fds(set).unwrap();
    let mut fresh = read_directory(out.path());
    // A package of which everything is opaque has no code.
    fresh.remove("stream_executor.rs");

    let checked_in = root().join("src/proto/generated");
    let descriptors = root().join("proto/descriptors.binpb");
    if std::env::var_os(REGENERATE).is_some() {
        fs::create_dir_all(&checked_in).unwrap();
        for stale in read_directory(&checked_in).keys().filter(|name| !fresh.contains_key(*name)) {
            fs::remove_file(checked_in.join(stale)).unwrap();
        }
        for (name, text) in &fresh {
            fs::write(checked_in.join(name), text).unwrap();
        }
        fs::write(&descriptors, &plain).unwrap();
        return;
    }
    let present = read_directory(&checked_in);
    let differing: Vec<_> = fresh
        .keys()
        .chain(present.keys())
        .filter(|name| fresh.get(*name) != present.get(*name))
        .collect();
    assert!(
        differing.is_empty() && fs::read(&descriptors).is_ok_and(|bytes| bytes == plain),
        "proto/ and the generated code differ in {differing:?} or proto/descriptors.binpb: run the \
         test again with {REGENERATE}=1 and commit what it writes"
    );
}
