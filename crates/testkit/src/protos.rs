//! Generates code from `proto/`: the messages, their descriptors, and the table of fields with
//! versions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use prost::Message as _;
use prost_types::{
    DescriptorProto, FileDescriptorProto, FileDescriptorSet, field_descriptor_proto::Type,
    source_code_info::Location,
};

/// Compiler messages that are kept as bytes, and messages used only by them.
const OPAQUE: [&str; 5] = [
    ".xla.CompileOptionsProto",
    ".xla.ExecutableBuildOptionsProto",
    ".xla.OpMetadata",
    ".xla.OptionOverrideProto",
    ".stream_executor.GpuTargetConfigProto",
];

/// Collects all `.proto` files below `directory`, as paths relative to `proto`.
fn proto_files(proto: &Path, directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            proto_files(proto, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            found.push(path.strip_prefix(proto).unwrap().to_owned());
        }
    }
    found.sort();
}

fn descriptors(proto: &Path) -> FileDescriptorSet {
    let mut files = Vec::new();
    proto_files(proto, proto, &mut files);
    let mut compiler = protox::Compiler::new([proto]).unwrap();
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(&files).unwrap();
    compiler.file_descriptor_set()
}

/// Returns the configuration of the code generator.
fn generator(out: &Path) -> prost_build::Config {
    let mut config = prost_build::Config::new();
    config.out_dir(out).bytes(["."]).enable_type_names();
    // We generate `Any`: the crate with it has all other well-known types too, and is built before
    // this one.
    config.compile_well_known_types().disable_comments([".google"]);
    for message in OPAQUE {
        config.extern_path(message, "crate::proto::OpaqueMessage");
    }
    config
}

/// Converts a oneof whose members' numbers surround another field's number into optional fields.
///
/// prost writes a oneof at the position of its lowest number; C++ orders by the number of the set
/// member.
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

/// Converts maps into lists of their entries, which have the same encoding. Returns the paths of
/// the entries and of their fields in the file.
///
/// prost does not check the wire type of a map field: a varint in its place would be read as an
/// entry's length. For a list it does.
fn list_map_entries(message: &mut DescriptorProto, path: &[i32]) -> Vec<Vec<i32>> {
    let mut found = Vec::new();
    for (index, nested) in (0..).zip(&mut message.nested_type) {
        // In the descriptor of a message, 3 is the number of nested messages, and 2 of fields.
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

/// Converts the maps of a file into lists. The generator looks up the comments of each message,
/// which map entries do not have.
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

/// Folder of the generated code in a package.
const CODE: &str = "src/proto/generated";

/// Path of the descriptors.
const DESCRIPTORS: &str = "proto/descriptors.binpb";

/// Generates the code; returns it by path in the package.
pub fn generate(package: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut set = descriptors(&package.join("proto"));
    let mut plain = set.clone();
    plain.file.iter_mut().for_each(|file| file.source_code_info = None);
    let table = versions(&plain);
    for file in &mut set.file {
        file.message_type.iter_mut().for_each(separate_interleaved_oneofs);
        list_maps(file);
    }
    let out = tempfile::tempdir().unwrap();
    generator(out.path()).compile_fds(set).unwrap();
    let mut code = read_directory(out.path());
    // If everything in a package is opaque, it has no code.
    code.remove("stream_executor.rs");
    code.insert("ifrt_versions.rs".to_owned(), table.into_bytes());
    let code = code.into_iter().map(|(name, text)| (Path::new(CODE).join(name), text));
    code.chain([(PathBuf::from(DESCRIPTORS), plain.encode_to_vec())]).collect()
}

/// Reads the existing code, by path in the package.
pub fn present(package: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let code = read_directory(&package.join(CODE));
    let code = code.into_iter().map(|(name, text)| (Path::new(CODE).join(name), text));
    let descriptors = fs::read(package.join(DESCRIPTORS)).ok();
    code.chain(descriptors.map(|bytes| (PathBuf::from(DESCRIPTORS), bytes))).collect()
}

/// Writes the generated code to the package, and removes obsolete files.
pub fn write(package: &Path, generated: &BTreeMap<PathBuf, Vec<u8>>) {
    for stale in present(package).keys().filter(|path| !generated.contains_key(*path)) {
        fs::remove_file(package.join(stale)).unwrap();
    }
    for (path, content) in generated {
        let path = package.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// The message that wraps a value with its type's name.
const SERIALIZED: &str = "xla.ifrt.Serialized";

/// Bytes fields with values that a runtime wrote, usually in a [`SERIALIZED`].
const BYTES: [(&str, i32); 2] =
    [("xla.ifrt.AtomExecutableVersionProto", 1), ("xla.ifrt.SerializedXlaExecutableVersion", 3)];

fn messages<'a>(
    prefix: &str,
    message: &'a DescriptorProto,
    found: &mut Vec<(String, &'a DescriptorProto)>,
) {
    let name = format!("{prefix}.{}", message.name());
    found.push((name.clone(), message));
    message.nested_type.iter().for_each(|nested| messages(&name, nested, found));
}

fn version_field(message: &DescriptorProto) -> Option<i32> {
    let names = ["version_number", "ifrt_version_number"];
    let field = message.field.iter().find(|field| names.contains(&field.name()));
    field.map(|field| field.number())
}

/// Returns the table of IFRT messages that record a version or contain such messages, for the
/// inspection of values.
fn versions(set: &FileDescriptorSet) -> String {
    let mut all = Vec::new();
    let of_ifrt =
        |file: &&FileDescriptorProto| ["xla.ifrt", "serdes.ifrt"].contains(&file.package());
    for file in set.file.iter().filter(of_ifrt) {
        file.message_type.iter().for_each(|message| messages(file.package(), message, &mut all));
    }
    let with_version = all.iter().filter(|(_, message)| version_field(message).is_some());
    let mut listed: BTreeSet<&str> = with_version.map(|(name, _)| name.as_str()).collect();
    listed.extend(BYTES.iter().map(|(message, _)| *message).chain([SERIALIZED]));
    // A message that contains one of them, at any depth, is added too.
    let mut before = 0;
    while before < listed.len() {
        before = listed.len();
        for (name, message) in &all {
            let mut fields = message.field.iter();
            if fields.any(|field| listed.contains(field.type_name().trim_start_matches('.'))) {
                listed.insert(name);
            }
        }
    }
    let mut text =
        "// Made from the descriptors by `cargo xtask proto`; not to be edited.\n&[\n".to_owned();
    for (name, message) in all.iter().filter(|(name, _)| name != SERIALIZED) {
        if !listed.contains(name.as_str()) {
            continue;
        }
        let version = version_field(message);
        writeln!(text, "    Schema {{\n        message: {name:?},\n        version: {version:?},")
            .unwrap();
        writeln!(text, "        fields: &[").unwrap();
        let mut fields: Vec<_> = message.field.iter().collect();
        fields.sort_by_key(|field| field.number());
        for field in fields {
            let held = field.type_name().trim_start_matches('.');
            let content = if held == SERIALIZED {
                "Serialized".to_owned()
            } else if BYTES.contains(&(name, field.number())) {
                "Bytes".to_owned()
            } else if listed.contains(held) {
                format!("Message({held:?})")
            } else {
                continue;
            };
            writeln!(text, "            ({}, {:?}, {content}),", field.number(), field.name())
                .unwrap();
        }
        writeln!(text, "        ],\n    }},").unwrap();
    }
    text + "]\n"
}
