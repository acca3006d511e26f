//! Tests that messages from the clients of five releases of jaxlib are read, and written again to
//! the same bytes at every version at which they were sent.
//!
//! See `tests/data/ifrt/README.md`. Values are tested in `ifrt_vectors.rs`; this test covers many
//! messages.

use std::{collections::BTreeMap, fs, path::Path};

use bytes::Bytes;
use prost::Message;
use serdes::{
    codec::{FromProto, Serialized, ToProto, Validation},
    ifrt::*,
    proto::xla::ifrt::{RemapPlanProto, proto::ByteStrides},
    version::{SerDesAnyVersionAccessor, SerDesVersion},
};

fn options(validation: Validation) -> serdes::codec::DeserializeOptions {
    with_devices(AnyDevice)
        .with(DeserializeProgramOptions::new(AnyDevice))
        .with_validation(validation)
}

/// Reads `bytes` in both modes and writes the value at `version`.
fn trip<T, P>(bytes: &Bytes, version: SerDesVersion) -> Result<Bytes, String>
where
    P: Message + Default,
    T: ToProto<Proto = P> + FromProto<Proto = P> + PartialEq,
{
    let read = |validation| {
        T::from_bytes(bytes.clone(), &options(validation)).map_err(|error| error.to_string())
    };
    let value = read(Validation::Parity)?;
    match read(Validation::Strict) {
        Ok(strict) if strict == value => {}
        // A plan between kinds of memory, which a client may send and its server refuses.
        Err(error) if error.contains("RemapPlan: the memory kind of") => {}
        Ok(_) => return Err("the modes read different values".to_owned()),
        Err(error) => return Err(error),
    }
    let proto = P::decode(bytes.clone()).map_err(|error| error.to_string())?;
    let of_message = T::from_proto(&proto, &options(Validation::Parity));
    if of_message.as_ref() != Ok(&value) {
        return Err("the message is read as another value".to_owned());
    }
    let written = value.to_bytes(version).map_err(|error| error.to_string())?;
    let message = value.to_proto(version).map_err(|error| error.to_string())?;
    if message.encode_to_vec().len() != written.len() {
        return Err("the message is written to other bytes".to_owned());
    }
    Ok(written)
}

/// Reads `bytes` and writes the value again; `None` for messages with a map, which were compared as
/// maps.
fn again(message: &str, bytes: &Bytes, version: SerDesVersion) -> Result<Option<Bytes>, String> {
    let written = match message {
        "xla.ifrt.DTypeProto" => trip::<DType, _>(bytes, version),
        "xla.ifrt.ShapeProto" => trip::<Shape, _>(bytes, version),
        "xla.ifrt.DeviceListProto" => trip::<DeviceList, _>(bytes, version),
        "xla.ifrt.ConcreteEvenShardingProto" => trip::<ConcreteEvenSharding, _>(bytes, version),
        "xla.ifrt.HloShardingProto" => trip::<HloSharding, _>(bytes, version),
        "xla.ifrt.ShardingProto" => trip::<Sharding, _>(bytes, version),
        "xla.ifrt.ArraySpecProto" => trip::<ArraySpec, _>(bytes, version),
        "xla.ifrt.ExecuteOptionsProto" => trip::<ExecuteOptions, _>(bytes, version),
        "xla.ifrt.XlaCompileOptionsProto" => {
            let value = XlaCompileOptions::from_bytes(bytes.clone(), &options(Validation::Strict));
            let value = value.map_err(|error| error.to_string())?;
            value.to_bytes(version).map_err(|error| error.to_string())
        }
        "xla.ifrt.RemapPlanProto" => {
            let written = trip::<RemapPlan, _>(bytes, version)?;
            let read = |bytes| RemapPlan::from_bytes(bytes, &options(Validation::Parity));
            if read(written.clone()) != read(bytes.clone()) || written.len() != bytes.len() {
                return Err("the plan that was written is another".to_owned());
            }
            // The input devices of several outputs are in any order.
            let message = RemapPlanProto::decode(bytes.clone()).unwrap();
            if message.input_devices_for_output.len() > 1 {
                return Ok(None);
            }
            Ok(written)
        }
        "xla.ifrt.AttributeMapProto" => {
            let written = trip::<AttributeMap, _>(bytes, version)?;
            let read = |bytes| AttributeMap::from_bytes(bytes, &options(Validation::Strict));
            if read(written.clone()) != read(bytes.clone()) || written.len() != bytes.len() {
                return Err("the map that was written is another".to_owned());
            }
            return Ok(None);
        }
        "xla.ifrt.Serialized" => {
            let serialized = Serialized::from_bytes(bytes.clone(), &options(Validation::Strict));
            let serialized = serialized.map_err(|error| error.to_string())?;
            let options = options(Validation::Strict);
            let value = global_registry()
                .deserialize_any(&serialized, &options)
                .map_err(|error| error.to_string())?;
            let request = serdes::codec::SerializeOptions::new(version);
            let written = global_registry().serialize_any(&*value, &request);
            Ok(written.map_err(|error| error.to_string())?.to_bytes())
        }
        "xla.ifrt.proto.ByteStrides" => {
            let message = ByteStrides::decode(bytes.clone()).map_err(|error| error.to_string())?;
            Ok(message.encode_to_vec().into())
        }
        _ => Err("a message that is not in the list".to_owned()),
    };
    written.map(Some)
}

fn from_hex(text: &str) -> Bytes {
    let digits = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn captures_of_five_releases_are_written_again_byte_for_byte() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ifrt/captured");
    let mut releases = BTreeMap::new();
    let mut findings = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let release = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut tried = 0;
        for line in fs::read_to_string(&path).unwrap().lines() {
            let vector: serde_json::Value = serde_json::from_str(line).unwrap();
            let message = vector["message"].as_str().unwrap();
            let bytes = from_hex(vector["hex"].as_str().unwrap());
            for number in vector["serdes"].as_array().unwrap() {
                let number = i32::try_from(number.as_i64().unwrap()).unwrap();
                let version = SerDesAnyVersionAccessor::get(number).unwrap();
                tried += 1;
                match again(message, &bytes, version) {
                    Ok(None) => {}
                    Ok(Some(written)) if written == bytes => {}
                    // Real clients send them at any version, and older readers silently treat them
                    // as invalid; our writer refuses a version that such a reader may have.
                    Err(error) if number < 4 && error.contains("the element type F6") => {
                        assert!(error.contains("version 4 is the first that can"), "{error}");
                    }
                    // Programs have a minimum version that does not move with the calendar, and
                    // older clients send them below it.
                    Err(error) if number < 3 && error.contains("a program of StableHLO") => {
                        assert!(error.contains("version 3 is the first that can"), "{error}");
                    }
                    Ok(Some(written)) => findings.push(format!(
                        "{release} {message} at {number}: {bytes:02x?} is written {written:02x?}"
                    )),
                    Err(error) => findings.push(format!(
                        "{release} {message} at {number}: {error}: {}",
                        vector["hex"]
                    )),
                }
            }
        }
        releases.insert(release, tried);
    }
    let count = findings.len();
    findings.truncate(20);
    assert!(findings.is_empty(), "{count} of {releases:?}:\n{}", findings.join("\n"));
    assert!(releases.len() == 5 && releases.values().all(|tried| *tried >= 150), "{releases:?}");
}

/// The number and the slice sizes of compile options exist since version 4, at which real clients
/// begin to record the version.
#[test]
fn compile_options_record_4_from_version_4_on() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ifrt/captured");
    let mut recorded = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        for line in fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            let vector: serde_json::Value = serde_json::from_str(line).unwrap();
            if vector["message"] != "xla.ifrt.XlaCompileOptionsProto" {
                continue;
            }
            let bytes = from_hex(vector["hex"].as_str().unwrap());
            let message = serdes::proto::xla::ifrt::XlaCompileOptionsProto::decode(bytes).unwrap();
            for number in vector["serdes"].as_array().unwrap() {
                recorded.insert(number.as_i64().unwrap(), message.version_number);
            }
        }
    }
    let expected = [(0, 0), (1, 0), (3, 0), (4, 4), (5, 4), (6, 4)];
    assert_eq!(recorded, BTreeMap::from(expected));
}
