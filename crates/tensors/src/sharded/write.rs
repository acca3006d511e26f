//! Writes tensors to several files, and their index.

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serdes_files::{Durability, Replacement};

use super::{
    super::{
        Announced, Error, Metadata, Output, Target, TensorInfo, TensorSink,
        safetensors::{SafetensorsPlan, accept, put_tensor},
    },
    index,
    names::SetNames,
    switch::Switch,
};

/// Maximum number of files: all are open until they appear.
const MOST_SHARDS: usize = 500;

/// The target of a set of shards.
pub(in super::super) struct ShardedTarget {
    path: PathBuf,
    shard_bytes: u64,
    durability: Durability,
    /// True if the plain names are in use at the final place.
    is_taken: bool,
}

impl ShardedTarget {
    pub(in super::super) fn new(path: &Path, shard_bytes: u64, durability: Durability) -> Self {
        Self { path: path.to_owned(), shard_bytes, durability, is_taken: false }
    }

    /// Sets whether the plain names are in use at the final place.
    pub(in super::super) fn taken(self, is_taken: bool) -> Self {
        Self { is_taken, ..self }
    }
}

/// Returns the directory that a path is in.
fn folder_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Groups the positions of tensors, in order, into groups of at most `most` bytes.
fn groups(tensors: &[TensorInfo], most: u64) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = vec![Vec::new()];
    let mut bytes = 0_u64;
    for (position, info) in tensors.iter().enumerate() {
        let together = bytes.saturating_add(info.bytes);
        match groups.last_mut() {
            Some(group) if group.is_empty() || together <= most => {
                group.push(position);
                bytes = together;
            }
            _ => {
                groups.push(vec![position]);
                bytes = info.bytes;
            }
        }
    }
    groups
}

/// A file of the set that is being written.
struct Shard {
    header: Vec<u8>,
    /// Number of tensors that remain to be written.
    left: usize,
}

struct ShardedSink {
    path: PathBuf,
    tensors: Announced,
    durability: Durability,
    is_taken: bool,
    /// Files that were not started, in reverse order.
    waiting: Vec<Shard>,
    open: Option<(Shard, Output)>,
    written: Vec<Replacement>,
    /// The index that is being written.
    index: Replacement,
    /// Number of each tensor's file.
    weights: BTreeMap<String, usize>,
    bytes: u64,
    count: usize,
}

impl Target for ShardedTarget {
    fn check(&self, info: &TensorInfo) -> Result<(), Error> {
        accept(info).map(drop)
    }

    fn begin(
        self: Box<Self>,
        tensors: Vec<TensorInfo>,
        metadata: &Metadata,
    ) -> Result<Box<dyn TensorSink>, Error> {
        let groups = groups(&tensors, self.shard_bytes);
        let count = groups.len();
        if count > MOST_SHARDS {
            let reason = format!(
                "{count} files of {} bytes; expected at most {MOST_SHARDS}: let them be larger",
                self.shard_bytes
            );
            return Err(Error::UnknownForm { path: self.path, reason });
        }
        let (mut waiting, mut order, mut weights) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (number, group) in groups.iter().enumerate() {
            let infos: Vec<TensorInfo> =
                group.iter().filter_map(|position| tensors.get(*position).cloned()).collect();
            let plan = SafetensorsPlan::new(&infos, metadata, &self.path)?;
            order.extend(plan.order.iter().filter_map(|place| group.get(*place).copied()));
            weights.extend(infos.into_iter().map(|info| (info.name, number)));
            waiting.push(Shard { header: plan.header, left: group.len() });
        }
        waiting.reverse();
        let names = SetNames::of(&self.path);
        let index = self.path.with_file_name(names.index());
        // Leftovers of dead savers are removed before more space is needed.
        Switch::begin(folder_of(&self.path), names, self.durability)?.remove_leftovers();
        let index = Replacement::create_beside_leftovers(&index)?;
        let mut sink = ShardedSink {
            path: self.path,
            bytes: tensors.iter().map(|info| info.bytes).sum(),
            tensors: Announced::ordered(tensors, order),
            durability: self.durability,
            is_taken: self.is_taken,
            waiting,
            open: None,
            written: Vec::new(),
            index,
            weights,
            count,
        };
        sink.go_on()?;
        Ok(Box::new(sink))
    }
}

impl ShardedSink {
    /// Finishes complete shards, and starts the next one.
    fn go_on(&mut self) -> Result<(), Error> {
        while self.open.as_ref().is_none_or(|(shard, _)| shard.left == 0) {
            if let Some((_, output)) = self.open.take() {
                self.written.extend(output.seal()?.map(|(replacement, _)| replacement));
            }
            let Some(mut shard) = self.waiting.pop() else { return Ok(()) };
            let mut output = Output::file(self.new_file()?, &self.path, self.durability)?;
            output.put(&std::mem::take(&mut shard.header))?;
            self.open = Some((shard, output));
        }
        Ok(())
    }

    /// Creates a file of the set; all are partial files of its target.
    fn new_file(&self) -> Result<Replacement, Error> {
        Ok(match self.written.first() {
            Some(first) => first.another()?,
            // A link is followed only by the single file of a set.
            None if self.count > 1 => Replacement::create_beside(&self.path)?,
            None => Replacement::create(&self.path)?,
        })
    }

    /// Replaces the existing set.
    fn switch(mut self) -> Result<(), Error> {
        if self.durability == Durability::Data {
            for file in &self.written {
                // Sync before others have to wait for the lock.
                let synced = file.file().sync_data();
                synced.map_err(|error| Error::io("sync", &self.path, error))?;
            }
        }
        let directory = self.index.directory().to_owned();
        let mut switch = Switch::begin(&directory, SetNames::of(&self.path), self.durability)?;
        if self.count <= 1 {
            switch.note(self.index, None)?;
            return match self.written.pop() {
                Some(file) => switch.finish_single(file),
                None => Ok(()),
            };
        }
        let names = switch.free_names(self.count, self.is_taken)?;
        let weights = self.weights.iter();
        let weights = weights.filter_map(|(name, number)| Some((&**name, names.get(*number)?)));
        let text = index::encode(&weights.collect(), self.bytes);
        switch.note(self.index, Some(&text))?;
        for (file, name) in self.written.into_iter().zip(&names) {
            switch.put(file, name)?;
        }
        switch.finish()
    }
}

impl TensorSink for ShardedSink {
    fn order(&self) -> &[usize] {
        self.tensors.order()
    }

    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error> {
        let info = self.tensors.get(position)?;
        let Some((shard, output)) = &mut self.open else {
            return Err(Error::refused(&info.name, "all tensors were written"));
        };
        put_tensor(info, data, output)?;
        shard.left = shard.left.saturating_sub(1);
        self.go_on()
    }

    fn write_strings(&mut self, position: usize, _: &[Vec<u8>]) -> Result<(), Error> {
        Err(self.tensors.refuse_strings(position, "safetensors hold no strings".to_owned()))
    }

    fn finish(self: Box<Self>) -> Result<Duration, Error> {
        let begin = Instant::now();
        self.switch()?;
        Ok(begin.elapsed())
    }
}
