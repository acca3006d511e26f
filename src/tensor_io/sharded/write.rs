//! Writing tensors into several files, and their index.

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    super::{
        Announced, Error, Metadata, Output, Target, TensorInfo, TensorSink,
        safetensors::{SafetensorsPlan, put_tensor},
    },
    index,
};
use crate::files::{Durability, Replacement, sync_directory};

/// The most files: each is open until all appear.
const MOST_SHARDS: usize = 500;

/// A place for shards.
pub(in super::super) struct ShardedTarget {
    path: PathBuf,
    shard_bytes: u64,
    durability: Durability,
}

impl ShardedTarget {
    pub(in super::super) fn new(path: &Path, shard_bytes: u64, durability: Durability) -> Self {
        Self { path: path.to_owned(), shard_bytes, durability }
    }

    /// The path of a shard; of the only one, that of the target.
    fn shard(&self, number: usize, count: usize) -> PathBuf {
        if count <= 1 {
            return self.path.clone();
        }
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!("{stem}-{:05}-of-{count:05}.safetensors", number + 1))
    }

    fn index(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!("{name}.index.json"))
    }
}

/// Positions of tensors, in their order, in groups of at most so many bytes.
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

/// A file in the making, and those that come after it.
struct Shard {
    path: PathBuf,
    header: Vec<u8>,
    /// How many of its tensors are left to write.
    left: usize,
}

struct ShardedSink {
    tensors: Announced,
    durability: Durability,
    /// Those that were not begun, the next one last.
    waiting: Vec<Shard>,
    open: Option<(Shard, Output)>,
    written: Vec<Replacement>,
    /// Where the index goes, and its text.
    index: Option<(PathBuf, Vec<u8>)>,
}

impl Target for ShardedTarget {
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
            let path = self.shard(number, count);
            let infos: Vec<TensorInfo> =
                group.iter().filter_map(|position| tensors.get(*position).cloned()).collect();
            let plan = SafetensorsPlan::new(&infos, metadata, &path)?;
            order.extend(plan.order.iter().filter_map(|place| group.get(*place).copied()));
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            for position in group {
                if let Some(info) = tensors.get(*position) {
                    weights.insert(&*info.name, file.clone());
                }
            }
            waiting.push(Shard { path, header: plan.header, left: group.len() });
        }
        let bytes = tensors.iter().map(|info| info.bytes).sum();
        let index = (count > 1).then(|| (self.index(), index::encode(&weights, bytes)));
        waiting.reverse();
        let mut sink = ShardedSink {
            tensors: Announced::ordered(tensors, order),
            durability: self.durability,
            waiting,
            open: None,
            written: Vec::new(),
            index,
        };
        sink.go_on()?;
        Ok(Box::new(sink))
    }
}

impl ShardedSink {
    /// Ends shards that have all their tensors, and begins the next one.
    fn go_on(&mut self) -> Result<(), Error> {
        while self.open.as_ref().is_none_or(|(shard, _)| shard.left == 0) {
            if let Some((_, output)) = self.open.take() {
                self.written.extend(output.seal()?.map(|(replacement, _)| replacement));
            }
            let Some(mut shard) = self.waiting.pop() else { return Ok(()) };
            let mut output = Output::create(&shard.path, self.durability)?;
            output.put(&std::mem::take(&mut shard.header))?;
            self.open = Some((shard, output));
        }
        Ok(())
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

    fn finish(mut self: Box<Self>) -> Result<Duration, Error> {
        let begin = Instant::now();
        let mut old_index = None;
        if let Some((path, text)) = self.index.take() {
            let mut output = Output::create(&path, self.durability)?;
            output.put(&text)?;
            self.written.extend(output.seal()?.map(|(replacement, _)| replacement));
            old_index = Some(path);
        }
        for replacement in &self.written {
            replacement.settle(self.durability)?;
        }
        // An old index would say of the new files what was in the old ones.
        if let Some(path) = &old_index {
            index::remove(path)?;
        }
        for replacement in &mut self.written {
            replacement.appear()?;
        }
        if self.durability == Durability::Data
            && let Some(replacement) = self.written.first()
        {
            sync_directory(replacement.directory())?;
        }
        Ok(begin.elapsed())
    }
}
