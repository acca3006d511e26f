//! Saves arrays on several devices: selects the shard that is written for each part.

use std::collections::{HashMap, HashSet};

use serdes::{
    codec::ToProto,
    ifrt::{ArraySpec, DeviceId, IndexDomain, Sharding},
};
use serdes_stream_executor::DeviceMemory;

use super::{
    Writer,
    deferred::{DeferredBytes, bytes_of},
    whole::check_contents,
};
use crate::{
    Error, HostedMemory,
    format::index::Placement,
    shards::{Block, blocks_of, check_tiling, element_bytes},
};

/// The part of an array on one device: memory of a StreamExecutor plug-in, an array of a PJRT
/// client, or bytes (`[u8]`) that were copied from a device of another library.
#[derive(Debug)]
pub struct Shard<'a, M: ?Sized = DeviceMemory> {
    device: DeviceId,
    memory: &'a M,
    domain: Option<IndexDomain>,
}

/// The memory is only referenced, so it need not be `Clone`.
impl<M: ?Sized> Clone for Shard<'_, M> {
    fn clone(&self) -> Self {
        Self { device: self.device, memory: self.memory, domain: self.domain.clone() }
    }
}

impl<'a, M: ?Sized> Shard<'a, M> {
    /// Creates the shard on the sharding's device `device`: the elements of its part, row-major.
    pub const fn new(device: DeviceId, memory: &'a M) -> Self {
        Self { device, memory, domain: None }
    }

    /// Sets the shard's part of the array, for shardings that do not define it.
    #[must_use]
    pub fn at(mut self, domain: IndexDomain) -> Self {
        self.domain = Some(domain);
        self
    }
}

/// Blocks of one array to write, each with its shard.
type Chosen<'a, 'b, M> = Vec<(Block, &'b Shard<'a, M>)>;

impl Writer {
    /// Adds an array that is distributed over several devices by the sharding of its spec.
    ///
    /// A part that several devices hold is written once. For a file, all devices are saved
    /// concurrently; for a stream, one after the other. The assignment of devices is up to the
    /// caller: ids are those of the sharding, memory may be on any device of any plug-in. A writer
    /// of a whole state needs at least one shard of every part. A writer of a [part](crate::Part)
    /// takes the shards of its own process and writes those assigned to it, so that every process
    /// may pass all its shards.
    ///
    /// Shardings that do not define the parts of devices (a `ConcreteSharding`, a
    /// `ConcreteEvenSharding`) need the [domain](Shard::at) of every shard. Index domains of a
    /// `ConcreteSharding` are used, and stored with the shards: specs cannot hold them.
    ///
    /// ```
    /// use serdes_device_state::{Reader, Shard, ShardTarget, Versions, ProgressMonitor, Writer};
    /// use serdes::ifrt::{ArraySpec, DType, DeviceId, DeviceList, HloSharding, MemoryKind, Shape};
    /// use serdes::ifrt::xla::{OpSharding, TileAssignment};
    /// use serdes_stream_executor::{LayoutChoice, Plugin};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("step-1000.sds");
    /// let plugin = Plugin::open("host:devices=2", LayoutChoice::default())?;
    /// let devices = [plugin.device(0)?, plugin.device(1)?];
    /// // A matrix of 4 rows and 2 columns, two rows a device.
    /// let rows = OpSharding::tiled(TileAssignment::iota([2, 1], [2], [0])?);
    /// let sharding = HloSharding::new(DeviceList::from([0, 1]), MemoryKind::unset(), rows)?;
    /// let spec = ArraySpec::new(DType::U8, Shape::new([4, 2])?, sharding);
    /// let top = devices[0].upload(&[1, 2, 3, 4])?;
    /// let bottom = devices[1].upload(&[5, 6, 7, 8])?;
    ///
    /// let mut state = Writer::create(&path, Versions::week_4_old())?;
    /// let shards = [Shard::new(DeviceId(0), &top), Shard::new(DeviceId(1), &bottom)];
    /// state.add_sharded("dense/kernel", &spec, &shards)?;
    /// state.finish()?;
    ///
    /// // Back onto one device, or onto any other sharding: here one column a device.
    /// let tensor = Reader::open(&path)?.tensor("dense/kernel")?;
    /// let whole = tensor.restore(&devices[0])?;
    /// assert_eq!(devices[0].download(&whole)?, [1, 2, 3, 4, 5, 6, 7, 8]);
    ///
    /// let columns = OpSharding::tiled(TileAssignment::iota([1, 2], [2], [0])?);
    /// let sharding = HloSharding::new(DeviceList::from([0, 1]), MemoryKind::unset(), columns)?;
    /// let targets =
    ///     [ShardTarget::new(DeviceId(0), &devices[0]), ShardTarget::new(DeviceId(1), &devices[1])];
    /// let restored = tensor.restore_sharded(&sharding.into(), &targets, &ProgressMonitor::new())?;
    /// assert_eq!(devices[1].download(&restored.memories[1])?, [2, 4, 6, 8]);
    /// assert_eq!(restored.bytes_read, 8); // each byte of the file once
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Encode`] if the spec cannot be written at the requested version;
    /// [`Error::Unsupported`] if the sharding does not define the parts of devices, has unreduced
    /// axes, or devices cannot store the elements; [`Error::Shards`] if parts are missing, overlap
    /// or have a wrong length; or if a device or the file fails.
    pub fn add_sharded<M: HostedMemory>(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        shards: &[Shard<'_, M>],
    ) -> Result<(), Error> {
        let spec = &self.specs_of(name, spec)?;
        let check = |dims: &mut dyn Iterator<Item = i64>, memory: &M| {
            check_contents(name, spec.given, dims, memory)
        };
        let chosen = self.choose(name, spec.given, shards, M::bytes, check)?;
        if chosen.is_empty() {
            return Ok(());
        }
        if let Some((_, first)) = chosen.first() {
            self.use_memory_of(first.memory);
        }
        let array = self.begin_array(name, &spec.stored)?;
        let pieces: Vec<(Placement, &M)> = chosen
            .into_iter()
            .map(|(block, shard)| {
                let domain = block.to_domain(spec.given.shape());
                (Placement { device: shard.device.0, domain }, shard.memory)
            })
            .collect();
        if self.put_parallel(&array, &pieces)? {
            return Ok(());
        }
        for (placement, memory) in pieces {
            let mut piece = self.begin_piece(&array, placement, memory.bytes())?;
            self.put_memory(&array, &mut piece, memory)?;
            self.end_piece(piece)?;
        }
        Ok(())
    }

    /// Like [`add_sharded`](Self::add_sharded), for shards in memory of this process: dense,
    /// row-major, little endian, elements narrower than a byte in a byte each.
    ///
    /// ```
    /// use serdes_device_state::{Reader, Shard, Versions, Writer};
    /// use serdes::ifrt::{ArraySpec, DType, DeviceId, DeviceList, HloSharding, MemoryKind, Shape};
    /// use serdes::ifrt::xla::{OpSharding, TileAssignment};
    /// use std::io::Read;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("a.sds");
    /// // A matrix of 2 rows and 2 columns, a row a device.
    /// let rows = OpSharding::tiled(TileAssignment::iota([2, 1], [2], [0])?);
    /// let sharding = HloSharding::new(DeviceList::from([0, 1]), MemoryKind::unset(), rows)?;
    /// let spec = ArraySpec::new(DType::U8, Shape::new([2, 2])?, sharding);
    /// let shards = [Shard::new(DeviceId(0), &[1, 2][..]), Shard::new(DeviceId(1), &[3, 4][..])];
    /// let mut state = Writer::create(&path, Versions::week_4_old())?;
    /// state.add_sharded_bytes("dense/kernel", &spec, &shards)?;
    /// state.finish()?;
    ///
    /// let mut bytes = Vec::new();
    /// Reader::open(&path)?.tensor("dense/kernel")?.read()?.read_to_end(&mut bytes)?;
    /// assert_eq!(bytes, [1, 2, 3, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`add_sharded`](Self::add_sharded).
    pub fn add_sharded_bytes(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        shards: &[Shard<'_, [u8]>],
    ) -> Result<(), Error> {
        self.add_shards_of_bytes(name, spec, shards)
    }

    /// Like [`add_sharded_bytes`](Self::add_sharded_bytes), for shards that are loaded into memory
    /// one after the other.
    ///
    /// # Errors
    /// As [`add_sharded`](Self::add_sharded); or if the bytes of a shard cannot be loaded, or are
    /// fewer than announced.
    pub fn add_sharded_deferred(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        shards: &[Shard<'_, dyn DeferredBytes + '_>],
    ) -> Result<(), Error> {
        self.add_shards_of_bytes(name, spec, shards)
    }

    fn add_shards_of_bytes<B: DeferredBytes + ?Sized>(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        shards: &[Shard<'_, B>],
    ) -> Result<(), Error> {
        let spec = &self.specs_of(name, spec)?;
        // Plain bytes have no type to check.
        let check = |_: &mut dyn Iterator<Item = i64>, _: &B| Ok(());
        let chosen = self.choose(name, spec.given, shards, |shard| shard.count(), check)?;
        if chosen.is_empty() {
            return Ok(());
        }
        let array = self.begin_array(name, &spec.stored)?;
        for (block, shard) in chosen {
            let domain = block.to_domain(spec.given.shape());
            let placement = Placement { device: shard.device.0, domain };
            // Start the piece first: nothing can follow if loading the bytes fails.
            let mut piece = self.begin_piece(&array, placement, shard.memory.count())?;
            let bytes = bytes_of(name, shard.memory)?;
            self.put_bytes(&mut piece, (*bytes).as_ref())?;
            self.end_piece(piece)?;
        }
        Ok(())
    }

    /// Returns a spec as given and as stored, if it can be stored.
    fn specs_of<'a>(&self, name: &str, spec: &'a ArraySpec) -> Result<Specs<'a>, Error> {
        let specs = without_index_domains(spec);
        let encodes = specs.stored.can_serialize_at(self.options().versions.specs());
        encodes
            .map_err(|source| Error::Encode { name: name.to_owned(), source: Box::new(source) })?;
        Ok(specs)
    }

    /// Returns the parts that this writer writes, in the order of the sharding; `check` compares a
    /// memory with the dimensions of its part.
    fn choose<'a, 'b, M: ?Sized>(
        &self,
        name: &str,
        spec: &ArraySpec,
        shards: &'b [Shard<'a, M>],
        bytes_of: impl Fn(&M) -> u64,
        check: impl Fn(&mut dyn Iterator<Item = i64>, &M) -> Result<(), Error>,
    ) -> Result<Chosen<'a, 'b, M>, Error> {
        let unsupported = |reason| Error::Unsupported { name: name.to_owned(), reason };
        let wrong = |reason| Error::shards(name, reason);
        let element = element_bytes(spec).map_err(unsupported)?;
        let by_device = by_device(shards).map_err(wrong)?;
        let (holders, idle) = holders(spec, shards).map_err(unsupported)?;
        let known: HashSet<DeviceId> =
            holders.iter().flat_map(|(_, devices)| devices).chain(&idle).copied().collect();
        if let Some(other) = shards.iter().find(|shard| !known.contains(&shard.device)) {
            return Err(wrong(format!("the device {} is not one of its sharding", other.device)));
        }
        let mut chosen = Vec::with_capacity(holders.len());
        for (number, (block, devices)) in holders.into_iter().enumerate() {
            let expected = block.elements().and_then(|elements| elements.checked_mul(element));
            for shard in devices.iter().filter_map(|device| by_device.get(device)) {
                if Some(bytes_of(shard.memory)) != expected {
                    return Err(wrong(format!(
                        "that of the device {} has {} bytes, its part {:?} needs {}",
                        shard.device,
                        bytes_of(shard.memory),
                        block.dims.to_vec(),
                        expected.unwrap_or(u64::MAX),
                    )));
                }
            }
            for shard in devices.iter().filter_map(|device| by_device.get(device)) {
                let mut dims = block.dims.iter().map(|&(_, extent)| extent.cast_signed());
                check(&mut dims, shard.memory)?;
            }
            // Replicas alternate, so that the work is distributed over devices and processes.
            let turn = number % devices.len().max(1);
            if self.options().part.is_some() {
                let ours = devices.get(turn).and_then(|device| by_device.get(device));
                chosen.extend(ours.map(|shard| (block, *shard)));
                continue;
            }
            let mut ours = devices.iter().cycle().skip(turn).take(devices.len());
            let shard = ours.find_map(|device| by_device.get(device)).ok_or_else(|| {
                wrong(format!("there is none for the part {:?}", block.dims.to_vec()))
            })?;
            chosen.push((block, *shard));
        }
        if self.options().part.is_none() {
            let domains: Vec<_> =
                chosen.iter().map(|(block, _)| block.to_domain(spec.shape())).collect();
            check_tiling(spec, &domains).map_err(wrong)?;
        }
        Ok(chosen)
    }
}

/// Maps devices to shards, one per device.
fn by_device<'a, 'b, M: ?Sized>(
    shards: &'b [Shard<'a, M>],
) -> Result<HashMap<DeviceId, &'b Shard<'a, M>>, String> {
    let mut by_device = HashMap::with_capacity(shards.len());
    for shard in shards {
        if by_device.insert(shard.device, shard).is_some() {
            return Err(format!("the device {} has two of them", shard.device));
        }
    }
    Ok(by_device)
}

/// Parts of an array, each with its devices, and devices without a part.
type Holders = (Vec<(Block, Vec<DeviceId>)>, Vec<DeviceId>);

/// Returns every part of an array once, with the devices that hold it.
fn holders<M: ?Sized>(spec: &ArraySpec, shards: &[Shard<'_, M>]) -> Result<Holders, String> {
    let shape = spec.shape();
    let blocks = match shards.iter().filter(|shard| shard.domain.is_some()).count() {
        0 => blocks_of(spec.sharding(), shape)?,
        count if count == shards.len() => shards
            .iter()
            .filter_map(|shard| Some((shard.device, shard.domain.as_ref()?)))
            .map(|(device, domain)| Ok((device, Block::of_domain(domain, shape)?)))
            .collect::<Result<_, String>>()?,
        count => {
            return Err(format!(
                "{count} of {} shards have a domain; give all or none",
                shards.len()
            ));
        }
    };
    let whole = Block::whole(shape);
    if whole.is_empty() {
        let devices = blocks.into_iter().map(|(device, _)| device).collect();
        return Ok((vec![(whole, devices)], Vec::new()));
    }
    let mut order: Vec<(Block, Vec<DeviceId>)> = Vec::new();
    let mut numbers: HashMap<Block, usize> = HashMap::new();
    // Devices beyond the end of the array.
    let mut idle = Vec::new();
    for (device, block) in blocks {
        if block.is_empty() {
            idle.push(device);
            continue;
        }
        let number = *numbers.entry(block.clone()).or_insert(order.len());
        match order.get_mut(number) {
            Some((_, devices)) => devices.push(device),
            None => order.push((block, vec![device])),
        }
    }
    Ok((order, idle))
}

/// A spec as given and as stored.
struct Specs<'a> {
    given: &'a ArraySpec,
    stored: ArraySpec,
}

/// Removes index domains from a spec: no version of specs stores them; the shards' placements do.
fn without_index_domains(spec: &ArraySpec) -> Specs<'_> {
    let stored = match spec.sharding() {
        Sharding::Concrete(concrete) => {
            let sharding = concrete.clone().without_index_domains();
            let stored = ArraySpec::new(spec.dtype(), spec.shape().clone(), sharding);
            match spec.layout() {
                Some(layout) => stored.with_layout(layout.clone()),
                None => stored,
            }
        }
        _ => spec.clone(),
    };
    Specs { given: spec, stored }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, io};

    use super::*;
    use crate::{ProgressMonitor, Versions, WriteOptions};
    use serdes::ifrt::{
        DType, DeviceList, HloSharding, MemoryKind, Shape,
        xla::{OpSharding, TileAssignment},
    };
    use serdes_testkit::noise::noise;

    const ROW: usize = 5000;

    /// A row that records that it is in memory, and may be shorter than declared or unreadable.
    struct Row<'a> {
        number: usize,
        in_memory: &'a Cell<Option<usize>>,
        bytes: usize,
    }

    struct Loaded<'a>(Vec<u8>, &'a Cell<Option<usize>>);

    impl AsRef<[u8]> for Loaded<'_> {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    impl Drop for Loaded<'_> {
        fn drop(&mut self) {
            self.1.set(None);
        }
    }

    impl DeferredBytes for Row<'_> {
        fn count(&self) -> u64 {
            ROW as u64
        }

        fn bytes(&self) -> io::Result<Box<dyn AsRef<[u8]> + '_>> {
            assert_eq!(self.in_memory.replace(Some(self.number)), None, "one at a time");
            if self.bytes == 0 {
                return Err(io::Error::other("the device is gone"));
            }
            Ok(Box::new(Loaded(noise(self.bytes, self.number as u64), self.in_memory)))
        }
    }

    /// Returns the state of four rows on four devices, of which the last has `bytes_of_last` bytes.
    fn save(bytes_of_last: usize) -> Result<Vec<u8>, String> {
        let rows = OpSharding::tiled(TileAssignment::iota([4, 1], [4], [0]).unwrap());
        let devices = DeviceList::from([0, 1, 2, 3]);
        let sharding = HloSharding::new(devices, MemoryKind::unset(), rows).unwrap();
        let spec = ArraySpec::new(DType::U8, Shape::new([4, ROW as i64]).unwrap(), sharding);
        let in_memory = Cell::new(None);
        let rows = [0, 1, 2, 3].map(|number| {
            let bytes = if number == 3 { bytes_of_last } else { ROW };
            Row { number, in_memory: &in_memory, bytes }
        });
        let shards = rows.each_ref().map(|row| {
            let device = DeviceId(row.number as i32);
            Shard::new(device, row as &dyn DeferredBytes)
        });
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sds");
        let mut writer = WriteOptions::new(Versions::current()).create(&path).unwrap();
        let added = writer.add_sharded_deferred("rows", &spec, &shards);
        added.and_then(|()| writer.finish()).map_err(|error| error.to_string())?;
        let state = crate::Reader::open(&path).unwrap();
        assert!(state.verify(&ProgressMonitor::new()).unwrap().is_empty());
        let mut bytes = Vec::new();
        io::copy(&mut state.tensor("rows").unwrap().read().unwrap(), &mut bytes).unwrap();
        Ok(bytes)
    }

    #[test]
    fn shards_that_come_later_are_in_memory_one_at_a_time() {
        let expected: Vec<u8> = (0..4).flat_map(|number| noise(ROW, number)).collect();
        assert!(save(ROW).unwrap() == expected);
    }

    #[test]
    fn a_shard_that_cannot_be_had_or_is_short_ends_the_save() {
        let gone = save(0).unwrap_err();
        assert!(gone.contains("rows") && gone.contains("the device is gone"), "{gone}");
        assert!(save(ROW - 1).is_err());
        assert!(save(ROW + 1).is_err());
    }
}
