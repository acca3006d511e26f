//! Reads a file in the order of `jax.export.deserialize`.

use std::sync::Arc;

use super::{
    avals::{Aval, Value, read_aval},
    contents::Exported,
    effects, field,
    flatbuffer::{Buffer, ReadError, Table, Vector},
    profile::ReaderProfile,
    refusal::{Refusal, Result},
    shardings::{self, Mesh, NamedSharding, Sharding},
    tree,
};
use crate::release::Deserializer;

/// The tables of avals, meshes and shardings that other fields refer to.
#[derive(Debug, Default)]
struct Uniques<'a> {
    avals: Vec<Aval>,
    meshes: Vec<Mesh<'a>>,
    shardings: Vec<Arc<NamedSharding>>,
}

/// Limit on the arguments, results and platforms that are kept; further ones are only counted.
const MOST_KEPT: usize = 10_000;

/// Returns the modules of a file and of its derivatives, which are tables in the same buffer; at
/// most `most`. `None` stands for one that cannot be found.
pub(crate) fn levels(bytes: &[u8], most: usize) -> Vec<Option<&[u8]>> {
    let buffer = Buffer::new(bytes);
    let mut table = buffer.root().ok();
    let mut modules = Vec::new();
    while let Some(level) = table.filter(|_| modules.len() < most) {
        modules.push(level.needed_numbers(field::MODULE, 1).ok());
        table = level.table(field::VJP).ok().flatten();
    }
    modules
}

/// Returns true if bytes look like a file of `jax.export`: a function's name, a tree, and a module.
pub(crate) fn is_exported(bytes: &[u8]) -> bool {
    let looks = || -> std::result::Result<bool, ReadError> {
        let buffer = Buffer::new(bytes);
        let root = buffer.root()?;
        let module = root.needed_numbers(field::MODULE, 1)?;
        Ok(root.string(field::FUNCTION_NAME)?.is_some()
            && root.table(field::IN_TREE)?.is_some()
            && (module.is_empty() || crate::bytecode::is_artifact(module)))
    };
    looks().unwrap_or(false)
}

impl Exported {
    /// Reads a file, or its derivative of the given order, as a release does.
    pub(crate) fn read_level(
        bytes: &[u8],
        level: usize,
        profile: &ReaderProfile<'_>,
    ) -> Result<Self> {
        let buffer = Buffer::new(bytes);
        let mut root = Refusal::at(buffer.root(), "the outermost table")?;
        for _ in 0..level {
            root = Refusal::at(root.needed_table(field::VJP), "a derivative")?;
        }
        Reader { root, profile, found: Self::default(), uniques: Uniques::default() }.read()
    }
}

struct Reader<'h, 'b, 'a> {
    root: Table<'b, 'a>,
    profile: &'h ReaderProfile<'h>,
    found: Exported,
    uniques: Uniques<'a>,
}

impl<'b, 'a> Reader<'_, 'b, 'a> {
    fn read(mut self) -> Result<Exported> {
        self.note_fields();
        if self.profile.at_least(Deserializer::Tables) {
            self.read_uniques()?;
        }
        self.read_version()?;
        self.found.function = self.at("the name", |root| root.needed_string(1))?.to_owned();
        let is_early = !self.profile.at_least(Deserializer::Leaves);
        if is_early {
            self.read_tree(field::IN_TREE, None)?;
            self.read_tree(field::OUT_TREE, None)?;
        }
        self.read_devices()?;
        let (inputs, outputs) = self.read_signature()?;
        if !is_early {
            self.read_tree(field::IN_TREE, Some(inputs))?;
            self.read_tree(field::OUT_TREE, Some(outputs))?;
        }
        self.read_lists()?;
        self.at("the module", |root| root.needed_numbers(field::MODULE, 1))?;
        self.found.calling_convention =
            self.at("the calling convention", |root| root.u16(field::CALLING_CONVENTION))?;
        let kept =
            self.at("the kept arguments", |root| root.needed_numbers(field::KEPT_ARGUMENTS, 2))?;
        self.found.kept_arguments =
            kept.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes)).collect();
        self.at("the use of constants", |root| root.i8(field::USES_GLOBAL_CONSTANTS))?;
        let derivative = self.at("the derivative", |root| root.table(field::VJP))?;
        self.found.has_derivative = derivative.is_some();
        Ok(self.found)
    }

    fn at<T>(
        &self,
        place: &'static str,
        read: impl FnOnce(&Table<'b, 'a>) -> std::result::Result<T, ReadError>,
    ) -> Result<T> {
        read(&self.root).map_err(|error| Refusal::unreadable(error, place))
    }

    fn vector(&self, number: u16, place: &'static str) -> Result<Vector<'b, 'a>> {
        self.at(place, |root| root.vector(number))
    }

    /// Records fields that identify the release that wrote the file; no verdict depends on them.
    fn note_fields(&mut self) {
        let root = self.root;
        self.found.serialization = root.u16(field::SERIALIZATION_VERSION).unwrap_or_default();
        self.found.has_short_devices =
            root.i16(field::DEVICES_SHORT).is_ok_and(|devices| devices != 0);
        self.found.has_wide_devices = root.u32(field::DEVICES).is_ok_and(|devices| devices != 0);
        self.found.has_tables = root.vector(field::UNIQUE_AVALS).is_ok_and(|table| table.len() > 0)
            || root.vector(field::IN_AVAL_INDEXES).is_ok_and(|list| list.len() > 0);
        self.found.jax_version = root.string(field::JAX_VERSION).ok().flatten().map(str::to_owned);
    }

    fn read_version(&mut self) -> Result<()> {
        if self.profile.deserializer > Deserializer::Numbered || self.profile.is_lenient {
            return Ok(());
        }
        let version = self.at("the version of the serialization", |root| {
            root.u16(field::SERIALIZATION_VERSION)
        })?;
        if matches!(version, 2 | 3) { Ok(()) } else { Err(Refusal::serialization(version)) }
    }

    fn read_tree(&mut self, number: u16, leaves: Option<usize>) -> Result<()> {
        let (place, values) = if number == field::IN_TREE {
            ("the tree of arguments", "arguments")
        } else {
            ("the tree of results", "results")
        };
        let root = self.at(place, |root| root.needed_table(number))?;
        let found = tree::read(root, self.profile, &mut self.found.custom_nodes, place)?;
        match leaves {
            Some(leaves) if leaves != found && !self.profile.is_lenient => {
                Err(Refusal::leaves(found, leaves, values))
            }
            _ => Ok(()),
        }
    }

    fn read_devices(&mut self) -> Result<()> {
        let place = "the number of devices";
        let wide = if self.profile.at_least(Deserializer::Unnumbered) {
            self.at(place, |root| root.u32(field::DEVICES))?
        } else {
            0
        };
        self.found.devices = wide;
        if wide == 0 {
            let short = self.at(place, |root| root.i16(field::DEVICES_SHORT))?;
            let expires = self.profile.at_least(Deserializer::Expiring);
            if expires && short > 0 && !self.profile.takes_expired && !self.profile.is_lenient {
                return Err(Refusal::expired("a number of devices of 16 bits alone"));
            }
            self.found.devices = u32::try_from(short).unwrap_or_default();
        }
        Ok(())
    }

    fn read_uniques(&mut self) -> Result<()> {
        let avals = self.vector(field::UNIQUE_AVALS, "the table of avals")?;
        self.uniques.avals.reserve_exact(avals.room(8));
        for index in 0..avals.len() {
            let aval = Refusal::at(avals.table(index), "the table of avals")?;
            self.uniques.avals.push(read_aval(aval, self.profile)?);
        }
        let meshes = self.vector(field::UNIQUE_MESHES, "the table of meshes")?;
        for index in 0..meshes.len() {
            let mesh = Refusal::at(meshes.table(index), "the table of meshes")?;
            let mesh = shardings::read_mesh(mesh, self.profile)?;
            self.found.has_device_platform |= mesh.has_device_platform;
            self.uniques.meshes.push(mesh);
        }
        let shardings = self.vector(field::UNIQUE_SHARDINGS, "the table of shardings")?;
        self.uniques.shardings.reserve_exact(shardings.room(8));
        for index in 0..shardings.len() {
            let sharding = Refusal::at(shardings.table(index), "the table of shardings")?;
            let sharding = shardings::read_named(sharding, &self.uniques.meshes, self.profile)?;
            self.uniques.shardings.push(Arc::new(sharding));
        }
        Ok(())
    }

    /// Reads arguments and results: their shardings, then their avals. Returns the number of each.
    fn read_signature(&mut self) -> Result<(usize, usize)> {
        let inputs = self.read_shardings(
            field::IN_SHARDINGS,
            field::IN_SHARDING_INDEXES,
            "the shardings of arguments",
        )?;
        let outputs = self.read_shardings(
            field::OUT_SHARDINGS,
            field::OUT_SHARDING_INDEXES,
            "the shardings of results",
        )?;
        let is_named = self.profile.at_least(Deserializer::Named)
            && !inputs.iter().chain(&outputs).any(|sharding| matches!(sharding, Sharding::Hlo));
        let mut values = (Vec::new(), Vec::new());
        let inputs = self.read_values(
            (field::IN_AVALS, field::IN_AVAL_INDEXES, "the arguments"),
            (&inputs, is_named),
            &mut values.0,
        )?;
        let outputs = self.read_values(
            (field::OUT_AVALS, field::OUT_AVAL_INDEXES, "the results"),
            (&outputs, is_named),
            &mut values.1,
        )?;
        (self.found.inputs, self.found.outputs) = values;
        Ok((inputs, outputs))
    }

    fn read_shardings(
        &self,
        number: u16,
        indexes: u16,
        place: &'static str,
    ) -> Result<Vec<Sharding>> {
        if self.profile.at_least(Deserializer::Tables) {
            let indexes = self.vector(indexes, place)?;
            let mut found = Vec::with_capacity(indexes.room(4));
            for at in 0..indexes.len() {
                let index = Refusal::at(indexes.u32(at), place)?;
                found.push(self.sharding_of(index, place)?);
            }
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let list = self.vector(number, place)?;
        let mut found = Vec::with_capacity(list.room(8));
        for index in 0..list.len() {
            let sharding = Refusal::at(list.table(index), place)?;
            let sharding = shardings::read(sharding, &self.uniques.meshes, self.profile, place)?;
            found.push(sharding);
        }
        Ok(found)
    }

    /// Returns the entry of the table of shardings for an index: 0 is none, 1 the first.
    fn sharding_of(&self, index: u32, place: &'static str) -> Result<Sharding> {
        let Some(index) = index.checked_sub(1) else { return Ok(Sharding::Unspecified) };
        let sharding = self.uniques.shardings.get(index as usize).map(Arc::clone);
        sharding.map(Sharding::Named).ok_or_else(|| Refusal::index(place, "shardings"))
    }

    /// Reads the avals of arguments or results, each with its sharding if that has named axes;
    /// returns their number.
    fn read_values(
        &self,
        (number, indexes, place): (u16, u16, &'static str),
        (shardings, is_named): (&[Sharding], bool),
        kept: &mut Vec<Value>,
    ) -> Result<usize> {
        let by_index = self.profile.at_least(Deserializer::Tables) && is_named;
        if by_index {
            let indexes = self.vector(indexes, place)?;
            for at in 0..indexes.len() {
                let index = Refusal::at(indexes.u32(at), place)?;
                let aval = self.uniques.avals.get(index as usize);
                let aval = aval.ok_or_else(|| Refusal::index(place, "avals"))?;
                self.take_value(aval, shardings, is_named, at, place, kept)?;
            }
            if indexes.len() > 0 {
                return Ok(indexes.len() as usize);
            }
        }
        let list = self.vector(number, place)?;
        for at in 0..list.len() {
            let aval = read_aval(Refusal::at(list.table(at), place)?, self.profile)?;
            self.take_value(&aval, shardings, is_named, at, place, kept)?;
        }
        Ok(list.len() as usize)
    }

    /// Checks that a value has a sharding whose rank fits; keeps the value for descriptions.
    fn take_value(
        &self,
        aval: &Aval,
        shardings: &[Sharding],
        is_named: bool,
        at: u32,
        place: &'static str,
        kept: &mut Vec<Value>,
    ) -> Result<()> {
        let sharding = shardings.get(at as usize);
        if self.profile.is_lenient {
            if kept.len() < MOST_KEPT {
                let sharding = sharding.and_then(Sharding::text);
                kept.push(Value { sharding, ..Value::from(aval) });
            }
            return Ok(());
        }
        match sharding {
            None if is_named => Err(Refusal::shardings(shardings.len(), at, place)),
            Some(Sharding::Named(sharding))
                if sharding.partitioned > aval.rank as usize
                    && !self.profile.at_least(Deserializer::Expiring) =>
            {
                Err(Refusal::rank(aval.rank as usize, sharding.partitioned, place))
            }
            _ => Ok(()),
        }
    }

    fn read_lists(&mut self) -> Result<()> {
        let platforms = self.vector(field::PLATFORMS, "the platforms")?;
        for index in 0..platforms.len() {
            let platform = Refusal::at(platforms.string(index), "the platforms")?;
            if self.found.platforms.len() < MOST_KEPT {
                self.found.platforms.push(platform.to_owned());
            }
        }
        let ordered = self.vector(field::ORDERED_EFFECTS, "the effects")?;
        self.found.ordered_effects = effects::read_effects(ordered, self.profile)?;
        let unordered = self.vector(field::UNORDERED_EFFECTS, "the effects")?;
        self.found.unordered_effects = effects::read_effects(unordered, self.profile)?;
        let checks = self.vector(field::DISABLED_CHECKS, "the disabled checks")?;
        self.found.disabled_checks = effects::read_checks(checks)?;
        Ok(())
    }
}
