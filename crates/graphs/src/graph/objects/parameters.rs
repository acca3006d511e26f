//! The parameters of a Python function, as a SavedModel records them (`FunctionSpec`): what a
//! loader builds from them, and whether a call fits them.
//!
//! The rules are those of `function_deserialization.py` and of the modules that it calls, and of
//! `inspect.Signature` in Python: the same in TensorFlow 2.12, 2.16 and 2.21. The effect of values
//! that no exporter writes is left undecided ([`Spec::Unclear`]).
//!
//! Depends on parameters, but not on the object that has them.

use super::{
    names::{is_no_identifier, parameter_name},
    structures::{At, Kind, Structures},
};

/// The ways in which a parameter can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// By position or by name.
    Position,
    /// By name only.
    Name,
    /// Accepts all other positional arguments.
    AllPositions,
    /// Accepts all other keyword arguments.
    AllNames,
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// The hash of its name.
    pub(super) name: u64,
    pub(super) by: By,
    pub(super) is_optional: bool,
}

/// The result of reading a description of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spec {
    /// The parameters are those in [`SpecReader::parameters`].
    Known,
    /// The parameters are unknown.
    Unclear,
    /// A loader refuses them.
    Refused(&'static str),
}

/// The fields that a description must have.
const FIELDS: [&[u8]; 7] =
    [b"args", b"varargs", b"varkw", b"defaults", b"kwonlyargs", b"kwonlydefaults", b"annotations"];

/// Limits on the keyword defaults that are compared with each parameter, and on the pairs of a
/// parameter and a name that are compared; real functions have a few.
const MOST_DEFAULTS: usize = 256;
const MOST_PAIRS: usize = 1 << 16;

/// Returns the hash of a name, by which names are compared.
pub(super) fn name_hash(
    name: &[u8],
    hash: &impl Fn(&mut dyn Iterator<Item = u8>) -> u64,
) -> Option<u64> {
    parameter_name(name).map(|mut made| hash(&mut made))
}

/// Reads parameters from the values at `spec` and `signature`.
pub(super) struct SpecReader<'s, H> {
    pub(super) structures: &'s Structures,
    /// Computes the hash of a name.
    pub(super) hash: H,
    /// The parameters that were read.
    pub(super) parameters: &'s mut Vec<Parameter>,
}

/// The reason for which reading ends early: the parameters are unknown, or refused.
enum End {
    Unclear,
    Refused(&'static str),
}

/// Returns true for the kinds of values that Python cannot convert into a list.
const fn is_scalar(kind: Kind) -> bool {
    matches!(kind, Kind::None | Kind::Number | Kind::DataType | Kind::TensorSpec)
}

impl<H: Fn(&mut dyn Iterator<Item = u8>) -> u64> SpecReader<'_, H> {
    /// Reads a function's parameters, and the types that are recorded for them.
    pub(super) fn read(&mut self, is_method: bool) -> Spec {
        self.parameters.clear();
        let (Some(spec), Some(signature)) = (self.structures.root(0), self.structures.root(1))
        else {
            return Spec::Refused("a function without a description of its parameters");
        };
        let read = self.spec(spec, is_method).and_then(|()| self.signature(signature));
        match read {
            Ok(()) => Spec::Known,
            Err(End::Unclear) => Spec::Unclear,
            Err(End::Refused(found)) => Spec::Refused(found),
        }
    }

    fn kind(&self, at: At) -> Kind {
        self.structures.kind(Some(at))
    }

    fn spec(&mut self, spec: At, is_method: bool) -> Result<(), End> {
        let structures = self.structures;
        match structures.kind(Some(spec)) {
            Kind::NamedTuple => {}
            Kind::TypeSpec | Kind::Tensor | Kind::Shape => return Err(End::Unclear),
            _ => return Err(End::Refused("parameters that are no FullArgSpec")),
        }
        let mut fields = [spec; FIELDS.len()];
        for (name, field) in FIELDS.iter().zip(&mut fields) {
            let found = structures.child(spec, name);
            *field = found.ok_or(End::Refused("a FullArgSpec that lacks one of its fields"))?;
        }
        let [args, varargs, varkw, defaults, kwonlyargs, kwonlydefaults, _] = fields;
        let args = self.list(args, "a FullArgSpec whose args are no list")?;
        let names = structures.children(args);
        let is_self =
            |first: At| self.kind(first) == Kind::Text && structures.text(first) == b"self";
        let first = names.clone().next();
        let skipped = usize::from(is_method || first.is_some_and(is_self));
        if is_method && first.is_none() {
            return Err(End::Refused("a method without parameters"));
        }
        let count = names.clone().count().saturating_sub(skipped);
        let defaulted = self.defaults(defaults)?.min(count);
        let named_defaults = self.named_defaults(kwonlydefaults)?;
        for (position, name) in names.skip(skipped).enumerate() {
            let has_default = position >= count.saturating_sub(defaulted);
            self.parameter(name, By::Position, has_default, named_defaults)?;
        }
        self.taker(varargs, By::AllPositions)?;
        let kwonlyargs = self.list(kwonlyargs, "a FullArgSpec whose kwonlyargs are no list")?;
        for name in structures.children(kwonlyargs) {
            self.parameter(name, By::Name, false, named_defaults)?;
        }
        self.taker(varkw, By::AllNames)?;
        self.as_signature()
    }

    fn list(&self, at: At, refused: &'static str) -> Result<At, End> {
        match self.kind(at) {
            Kind::List | Kind::Tuple => Ok(at),
            kind if is_scalar(kind) => Err(End::Refused(refused)),
            _ => Err(End::Unclear),
        }
    }

    /// Returns the number of parameters that have a default.
    fn defaults(&self, at: At) -> Result<usize, End> {
        match self.kind(at) {
            Kind::None => Ok(0),
            Kind::List | Kind::Tuple | Kind::NamedTuple => Ok(self.structures.children(at).count()),
            kind if is_scalar(kind) => {
                Err(End::Refused("a FullArgSpec whose defaults are no list"))
            }
            _ => Err(End::Unclear),
        }
    }

    /// Returns the defaults of parameters that are given by their names.
    fn named_defaults(&self, at: At) -> Result<Option<At>, End> {
        match self.kind(at) {
            Kind::None => Ok(None),
            Kind::Dict => Ok(Some(at)),
            kind if is_scalar(kind) => {
                Err(End::Refused("a FullArgSpec whose kwonlydefaults are no dictionary"))
            }
            _ => Err(End::Unclear),
        }
    }

    fn hash_of(&self, name: &[u8]) -> Result<u64, End> {
        if name.is_empty() {
            return Err(End::Refused("a parameter without a name"));
        }
        name_hash(name, &self.hash).ok_or(End::Unclear)
    }

    fn parameter(
        &mut self,
        at: At,
        by: By,
        has_default: bool,
        named_defaults: Option<At>,
    ) -> Result<(), End> {
        match self.kind(at) {
            Kind::Text => {}
            kind if is_scalar(kind) => {
                return Err(End::Refused("a parameter whose name is no text"));
            }
            _ => return Err(End::Unclear),
        }
        if self.structures.text(at) == b"self" {
            // A loader skips this parameter when it matches types with parameters.
            return Err(End::Unclear);
        }
        let name = self.hash_of(self.structures.text(at))?;
        let mut is_optional = has_default;
        if let Some(defaults) = named_defaults {
            for (count, default) in self.structures.children(defaults).enumerate() {
                if count == MOST_DEFAULTS {
                    return Err(End::Unclear);
                }
                is_optional |= self.hash_of(self.structures.key(default))? == name;
            }
        }
        self.parameters.push(Parameter { name, by, is_optional });
        Ok(())
    }

    /// Adds the parameter that takes all remaining positional or keyword arguments, if there is
    /// one.
    fn taker(&mut self, at: At, by: By) -> Result<(), End> {
        match self.kind(at) {
            Kind::None => return Ok(()),
            Kind::Text => {}
            Kind::TypeSpec | Kind::Tensor => return Err(End::Unclear),
            _ => return Err(End::Refused("a parameter whose name is no text")),
        }
        let name = self.structures.text(at);
        if is_no_identifier(name) {
            return Err(End::Refused("a parameter whose name is none in Python"));
        }
        let name = (self.hash)(&mut name.iter().copied());
        self.parameters.push(Parameter { name, by, is_optional: false });
        Ok(())
    }

    /// Checks Python's rules for a list of parameters.
    fn as_signature(&self) -> Result<(), End> {
        let mut has_default = false;
        for parameter in self.parameters.iter().filter(|one| one.by == By::Position) {
            if has_default && !parameter.is_optional {
                return Err(End::Refused(
                    "a parameter without a default behind one with a default",
                ));
            }
            has_default |= parameter.is_optional;
        }
        let mut names: Vec<u64> = self.parameters.iter().map(|one| one.name).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| matches!(pair, [first, second] if first == second)) {
            return Err(End::Refused("two parameters of one name"));
        }
        Ok(())
    }

    /// Checks the recorded types against the parameters, in order.
    fn signature(&self, signature: At) -> Result<(), End> {
        if self.structures.is_empty(signature) == Some(true) {
            return Ok(());
        }
        match self.kind(signature) {
            Kind::List | Kind::Tuple | Kind::NamedTuple => {}
            Kind::Number | Kind::DataType | Kind::TensorSpec | Kind::Text | Kind::Dict => {
                return Err(End::Refused("types of parameters that are no list"));
            }
            _ => return Err(End::Unclear),
        }
        let types = self.structures.children(signature);
        for one in types.clone() {
            match self.kind(one) {
                Kind::TensorSpec => {}
                Kind::None | Kind::Number | Kind::Text | Kind::DataType => {
                    return Err(End::Refused("a type of a parameter that is none"));
                }
                // Nested values are not decided here.
                _ => return Err(End::Unclear),
            }
        }
        let mut left = types.count();
        for parameter in &*self.parameters {
            match parameter.by {
                By::AllNames => continue,
                By::AllPositions => left = 0,
                By::Name if !parameter.is_optional => {
                    return Err(End::Refused(
                        "types of parameters, and one without a default that is given by its name",
                    ));
                }
                By::Position | By::Name if left > 0 => left -= 1,
                By::Position | By::Name if parameter.is_optional => {}
                By::Position | By::Name => {
                    return Err(End::Refused("fewer types than parameters"));
                }
            }
        }
        if left > 0 { Err(End::Refused("more types than parameters")) } else { Ok(()) }
    }
}

/// The arguments that a function was traced with: the number of positional values, and the names of
/// keyword values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Traced<'t> {
    pub(super) positions: u32,
    pub(super) names: &'t [u64],
}

/// Returns the reason why the parameters do not accept the traced arguments, if any.
pub(super) fn mismatch(parameters: &[Parameter], traced: Traced<'_>) -> Option<&'static str> {
    if parameters.len().saturating_mul(traced.names.len()) > MOST_PAIRS {
        return None;
    }
    let mut positions = traced.positions;
    let is_named = |name| traced.names.contains(&name);
    for parameter in parameters {
        match parameter.by {
            By::AllPositions => positions = 0,
            By::AllNames => {}
            By::Position if positions > 0 => {
                positions -= 1;
                if is_named(parameter.name) {
                    return Some("a value for a parameter that has one already");
                }
            }
            By::Position | By::Name => {
                if !parameter.is_optional && !is_named(parameter.name) {
                    return Some("no value for a parameter that needs one");
                }
            }
        }
    }
    if positions > 0 {
        return Some("more values than parameters");
    }
    let takes = |name: &u64| {
        parameters.iter().any(|one| match one.by {
            By::AllNames => true,
            By::AllPositions => false,
            By::Position | By::Name => one.name == *name,
        })
    };
    (!traced.names.iter().all(takes)).then_some("a value for a parameter that is not there")
}
