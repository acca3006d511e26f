use std::thread;

use bytes::Bytes;

use super::*;
use crate::{
    codec::{ErrorKind, Status, StatusCode},
    version::{SerDesAnyVersionAccessor, SerDesVersion},
};

#[derive(Debug, PartialEq)]
struct Number(i32);

#[derive(Debug, PartialEq)]
struct Other;

struct NumberSerDes {
    name: &'static str,
    failure: Option<Status>,
}

impl SerDes for NumberSerDes {
    type Value = Number;

    fn type_name(&self) -> &str {
        self.name
    }

    fn serialize(&self, value: &Number, _: &SerializeOptions) -> Result<Bytes, EncodeError> {
        match &self.failure {
            Some(status) => Err(status.clone().into()),
            None => Ok(Bytes::copy_from_slice(&value.0.to_le_bytes())),
        }
    }

    fn deserialize(&self, data: &Bytes, _: &DeserializeOptions) -> Result<Number, DecodeError> {
        match &self.failure {
            Some(status) => Err(status.clone().into()),
            None => Ok(Number(i32::from_le_bytes(data[..].try_into().unwrap()))),
        }
    }
}

struct OtherSerDes(&'static str);

impl SerDes for OtherSerDes {
    type Value = Other;

    fn type_name(&self) -> &str {
        self.0
    }

    fn serialize(&self, _: &Other, _: &SerializeOptions) -> Result<Bytes, EncodeError> {
        Ok(Bytes::new())
    }

    fn deserialize(&self, _: &Bytes, _: &DeserializeOptions) -> Result<Other, DecodeError> {
        Ok(Other)
    }
}

fn options() -> SerializeOptions {
    SerializeOptions::new(SerDesVersion::current())
}

#[test]
fn a_value_makes_the_round_trip_under_its_name() {
    let registry = SerDesRegistry::new();
    registry.register(NumberSerDes { name: "test::Number", failure: None }).unwrap();
    let serialized = registry.serialize(&Number(1234), &options()).unwrap();
    assert_eq!(serialized.type_name(), "test::Number");
    let read = DeserializeOptions::new();
    assert_eq!(registry.deserialize::<Number>(&serialized, &read), Ok(Number(1234)));
    let any = registry.deserialize_any(&serialized, &read).unwrap();
    assert_eq!(any.downcast_ref(), Some(&Number(1234)));
    let again = registry.serialize_any(&Number(1234), &options()).unwrap();
    assert_eq!(again, serialized);
}

#[test]
fn a_failure_of_a_serdes_is_passed_on_unchanged() {
    let failure = Status::new(StatusCode::Internal, "injected");
    let registry = SerDesRegistry::new();
    registry
        .register(NumberSerDes { name: "test::Number", failure: Some(failure.clone()) })
        .unwrap();
    let error = registry.serialize(&Number(1), &options()).unwrap_err();
    assert_eq!((error.code(), error.to_status()), (StatusCode::Internal, failure.clone()));
    let serialized = Serialized::new("test::Number", Bytes::new());
    let error =
        registry.deserialize::<Number>(&serialized, &DeserializeOptions::new()).unwrap_err();
    assert_eq!((error.code(), error.to_status()), (StatusCode::Internal, failure));
}

#[test]
fn registering_a_type_or_a_name_twice_is_an_error_that_names_it() {
    let registry = SerDesRegistry::new();
    registry.register(NumberSerDes { name: "test::Number", failure: None }).unwrap();
    let error = registry.register(NumberSerDes { name: "test::Again", failure: None }).unwrap_err();
    assert!(matches!(error, RegistryError::DuplicateType { .. }));
    assert!(error.to_string().contains("registry::tests::Number"), "{error}");
    let error = registry.register(OtherSerDes("test::Number")).unwrap_err();
    assert!(matches!(error, RegistryError::DuplicateName { .. }));
    assert!(error.to_string().contains("`test::Number`"), "{error}");
    assert_eq!(registry.type_names(), ["test::Number"]);
    registry.register(OtherSerDes("test::Other")).unwrap();
    assert!(registry.contains("test::Other"));
}

#[test]
fn unregistered_type_is_unimplemented() {
    let registry = SerDesRegistry::<crate::version::Ifrt>::new();
    let error = registry.serialize(&Other, &options()).unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
    assert!(error.to_string().contains("tests::Other"), "{error}");
    let error = registry
        .deserialize::<Other>(&Serialized::new("test::Mars", ""), &DeserializeOptions::new())
        .unwrap_err();
    assert_eq!(error.code(), StatusCode::Unimplemented);
    assert_eq!(error.kind(), ErrorKind::MissingType);
    assert!(error.to_string().contains("`test::Mars`"), "{error}");
}

#[test]
fn asking_for_another_type_names_both() {
    let registry = SerDesRegistry::new();
    registry.register(NumberSerDes { name: "test::Number", failure: None }).unwrap();
    let serialized = registry.serialize(&Number(1), &options()).unwrap();
    let error = registry.deserialize::<Other>(&serialized, &DeserializeOptions::new()).unwrap_err();
    assert_eq!(error.code(), StatusCode::Internal);
    let text = error.to_string();
    assert!(text.contains("tests::Number") && text.contains("tests::Other"), "{text}");
}

#[test]
fn sixteen_threads_register_and_read_at_once_and_one_wins() {
    let registry = SerDesRegistry::new();
    let wins: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    let serdes = NumberSerDes { name: "test::Number", failure: None };
                    let won = registry.register(serdes).is_ok();
                    let version = SerDesAnyVersionAccessor::get(3).unwrap();
                    let written = registry.serialize(&Number(5), &SerializeOptions::new(version));
                    assert_eq!(written.unwrap().data()[..], 5_i32.to_le_bytes());
                    usize::from(won)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(wins, 1);
}
