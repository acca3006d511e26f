//! Facts about a compiled program's parameters and outputs from its module: the few fields that no
//! call of a plug-in gives.
//!
//! Source of the numbers: XLA's `hlo.proto`, of which these have been the same since PJRT 0.81. All
//! other fields are skipped, whatever is in them.

use std::collections::BTreeSet;

use prost::Message;
use serdes::{codec::Status, ifrt::xla::OpShardingType, proto::xla};

use crate::status::status;

/// `xla.HloModuleProtoWithConfig`, reduced to the required fields.
#[derive(Clone, PartialEq, Message)]
struct WithConfigMessage {
    #[prost(message, optional, tag = "1")]
    module: Option<ModuleMessage>,
}

/// `xla.HloModuleProto`, reduced to the required fields.
#[derive(Clone, PartialEq, Message)]
struct ModuleMessage {
    #[prost(message, optional, tag = "4")]
    host_program_shape: Option<ProgramShapeMessage>,
    #[prost(message, optional, tag = "8")]
    aliases: Option<AliasesMessage>,
    #[prost(message, optional, tag = "12")]
    output_sharding: Option<xla::OpSharding>,
    #[prost(message, repeated, tag = "14")]
    parameter_shardings: Vec<xla::OpSharding>,
}

/// `xla.ProgramShapeProto`.
#[derive(Clone, PartialEq, Message)]
struct ProgramShapeMessage {
    #[prost(message, repeated, tag = "1")]
    parameters: Vec<xla::ShapeProto>,
    #[prost(message, optional, tag = "2")]
    result: Option<xla::ShapeProto>,
}

/// `xla.HloInputOutputAliasProto`.
#[derive(Clone, PartialEq, Message)]
struct AliasesMessage {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<AliasMessage>,
}

/// `xla.HloInputOutputAliasProto.AliasEntryProto`.
#[derive(Clone, PartialEq, Message)]
struct AliasMessage {
    #[prost(int64, tag = "2")]
    parameter_number: i64,
}

/// Parameters and outputs of a module.
#[derive(Debug)]
pub(super) struct Module {
    /// On-device shape of each parameter, with its layout.
    pub(super) parameters: Vec<xla::ShapeProto>,
    /// On-device shape of each output, with its layout.
    pub(super) outputs: Vec<xla::ShapeProto>,
    /// Parameters whose memory the program takes for outputs. Other offered memory (the module's
    /// `buffer_donor`) fits no output and stays with its owner, as in a process without a proxy.
    pub(super) donated: BTreeSet<usize>,
    /// Sharding of each parameter; empty for a program for one device.
    pub(super) parameter_shardings: Vec<xla::OpSharding>,
    /// Sharding of each output; empty for a program for one device.
    pub(super) output_shardings: Vec<xla::OpSharding>,
}

impl Module {
    /// Reads the module of a program with this number of outputs.
    ///
    /// # Errors
    /// INTERNAL for an invalid module, or one that does not fit the program.
    pub(super) fn read(format: &str, code: &[u8], outputs: usize) -> Result<Self, Status> {
        let bad = |what: String| status!(Internal, "the plug-in's optimised program {what}");
        let module = match format {
            "hlo_with_config" => WithConfigMessage::decode(code).map(|found| found.module),
            "hlo" => ModuleMessage::decode(code).map(Some),
            other => {
                let other = other.escape_debug();
                return Err(bad(format!("is of the format `{other}`; expected `hlo_with_config`")));
            }
        };
        let module = module.map_err(|error| bad(format!("cannot be read: {error}")))?;
        let module = module.unwrap_or_default();
        let shape = module.host_program_shape.unwrap_or_default();
        let results = results(shape.result);
        if results.len() != outputs {
            let found = results.len();
            return Err(bad(format!("has {found} results; expected its {outputs} outputs")));
        }
        let aliased = module.aliases.unwrap_or_default().entries.into_iter();
        let donated = aliased.map(|entry| entry.parameter_number);
        let mut output_shardings = match module.output_sharding {
            None => Vec::new(),
            Some(tuple) if tuple.r#type == OpShardingType::Tuple.number() => tuple.tuple_shardings,
            Some(one) => vec![one; outputs],
        };
        if output_shardings.len() != outputs {
            output_shardings.clear();
        }
        let mut parameter_shardings = module.parameter_shardings;
        if parameter_shardings.len() != shape.parameters.len() {
            parameter_shardings.clear();
        }
        Ok(Self {
            donated: donated.filter_map(|number| usize::try_from(number).ok()).collect(),
            parameters: shape.parameters,
            outputs: results,
            parameter_shardings,
            output_shardings,
        })
    }
}

/// Returns the shapes of a program's outputs: the elements of a tuple, or the only one.
fn results(result: Option<xla::ShapeProto>) -> Vec<xla::ShapeProto> {
    match result {
        Some(tuple) if tuple.element_type == xla::PrimitiveType::Tuple as i32 => tuple.tuple_shapes,
        one => one.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[i64]) -> xla::ShapeProto {
        xla::ShapeProto {
            element_type: xla::PrimitiveType::F32 as i32,
            dimensions: dims.to_vec(),
            ..Default::default()
        }
    }

    fn tuple(of: &[xla::ShapeProto]) -> xla::ShapeProto {
        xla::ShapeProto {
            element_type: xla::PrimitiveType::Tuple as i32,
            tuple_shapes: of.to_vec(),
            ..Default::default()
        }
    }

    fn module(result: xla::ShapeProto) -> ModuleMessage {
        let parameters = vec![shape(&[2]), shape(&[3])];
        ModuleMessage {
            host_program_shape: Some(ProgramShapeMessage { parameters, result: Some(result) }),
            ..Default::default()
        }
    }

    fn read(module: &ModuleMessage, outputs: usize) -> Result<Module, Status> {
        let whole = WithConfigMessage { module: Some(module.clone()) };
        let found = Module::read("hlo_with_config", &whole.encode_to_vec(), outputs);
        let alone = Module::read("hlo", &module.encode_to_vec(), outputs);
        assert_eq!(format!("{found:?}"), format!("{alone:?}"));
        found
    }

    #[test]
    fn a_program_gives_its_one_result_or_those_of_its_tuple() {
        assert_eq!(read(&module(shape(&[4])), 1).unwrap().outputs, [shape(&[4])]);
        assert_eq!(read(&module(tuple(&[])), 0).unwrap().outputs, []);
        let two = [shape(&[4]), shape(&[])];
        assert_eq!(read(&module(tuple(&two)), 2).unwrap().outputs, two);
        let error = read(&module(tuple(&two)), 1).unwrap_err();
        assert!(error.message().contains("has 2 results; expected its 1"), "{}", error.message());
    }

    #[test]
    fn donated_parameters_are_those_of_aliases() {
        let mut module = module(shape(&[]));
        let numbers = [3, -1, 1, 3];
        let entries = numbers.map(|parameter_number| AliasMessage { parameter_number }).to_vec();
        module.aliases = Some(AliasesMessage { entries });
        let donated = read(&module, 1).unwrap().donated;
        assert_eq!(donated.into_iter().collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn shardings_of_a_module_are_complete_or_none() {
        let replicated = xla::OpSharding::default();
        let kind = OpShardingType::Tuple.number();
        let of = |count| xla::OpSharding {
            r#type: kind,
            tuple_shardings: vec![replicated.clone(); count],
            ..Default::default()
        };
        let mut module = module(tuple(&[shape(&[4]), shape(&[])]));
        module.parameter_shardings = vec![replicated.clone(); 2];
        for (sharding, expected) in [(of(2), 2), (of(1), 0), (replicated.clone(), 2)] {
            module.output_sharding = Some(sharding);
            let found = read(&module, 2).unwrap();
            assert_eq!(found.output_shardings.len(), expected);
            assert_eq!(found.parameter_shardings.len(), 2);
        }
        module.parameter_shardings.pop();
        assert!(read(&module, 2).unwrap().parameter_shardings.is_empty());
    }

    #[test]
    fn invalid_module_is_refused() {
        assert!(Module::read("mlir", b"", 0).is_err());
        assert!(Module::read("hlo", &[0xff; 9], 0).is_err());
        assert!(Module::read("hlo", b"", 0).is_ok());
        assert!(Module::read("hlo", b"", 1).is_err());
    }
}
