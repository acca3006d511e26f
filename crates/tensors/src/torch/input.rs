//! The bytes of a pickle, read front to back and never beyond its end.

use serdes_files::ReadAt;

use super::error::TorchError;

/// Number of bytes that are read from the file at a time.
const STEP: usize = 64 << 10;

/// Maximum length of a pickle: those of real models are a few megabytes long, because tensors lie
/// outside them.
const LONGEST: u64 = 256 << 20;

/// A range of a file, with the current position.
pub(super) struct Input<'a> {
    source: &'a dyn ReadAt,
    /// Position in the file of the next byte of `buffer`.
    position: u64,
    begin: u64,
    end: u64,
    buffer: Vec<u8>,
    taken: usize,
}

impl<'a> Input<'a> {
    /// Creates a reader of the bytes of a file from `begin` to `end`.
    pub(super) fn new(source: &'a dyn ReadAt, begin: u64, end: u64) -> Self {
        Self { source, position: begin, begin, end, buffer: Vec::new(), taken: 0 }
    }

    /// Returns the position of the next byte in the file.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of bytes read.
    pub(super) const fn read(&self) -> u64 {
        self.position - self.begin
    }

    /// Returns an error unless `count` more bytes exist, and may be read.
    fn check(&self, count: u64) -> Result<(), TorchError> {
        let left = self.end.saturating_sub(self.position);
        if count > left {
            let found = format!("{left} bytes at byte {}", self.position);
            return Err(TorchError::damaged(found, format!("{count} bytes of the pickle")));
        }
        if self.read().saturating_add(count) > LONGEST {
            let reason = format!(
                "its pickle is longer than {LONGEST} bytes; save tensors alone, as model.state_dict()"
            );
            return Err(TorchError::unsupported(reason));
        }
        Ok(())
    }

    fn fill(&mut self) -> Result<(), TorchError> {
        let left = self.end.saturating_sub(self.position);
        let step = usize::try_from(left).map_or(STEP, |left| left.min(STEP));
        self.buffer.resize(step, 0);
        self.taken = 0;
        self.source.read_exact_at(&mut self.buffer, self.position)?;
        Ok(())
    }

    /// Returns the next byte.
    pub(super) fn byte(&mut self) -> Result<u8, TorchError> {
        self.check(1)?;
        if self.taken == self.buffer.len() {
            self.fill()?;
        }
        let byte = self.buffer.get(self.taken).copied().unwrap_or_default();
        self.taken += 1;
        self.position += 1;
        Ok(byte)
    }

    /// Returns the next bytes, as many as the array holds.
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], TorchError> {
        let mut array = [0; N];
        for byte in &mut array {
            *byte = self.byte()?;
        }
        Ok(array)
    }

    /// Returns the next `count` bytes. Memory is allocated only once the file is known to have
    /// them.
    pub(super) fn bytes(&mut self, count: u64) -> Result<Vec<u8>, TorchError> {
        self.check(count)?;
        let mut bytes = vec![0; usize::try_from(count).unwrap_or(usize::MAX)];
        let kept = self.buffer.get(self.taken..).unwrap_or_default();
        let kept_bytes = kept.len().min(bytes.len());
        let (from_buffer, rest) = bytes.split_at_mut(kept_bytes);
        from_buffer.copy_from_slice(kept.get(..from_buffer.len()).unwrap_or_default());
        self.taken += from_buffer.len();
        self.position += from_buffer.len() as u64;
        if !rest.is_empty() {
            self.source.read_exact_at(rest, self.position)?;
            self.position += rest.len() as u64;
            self.buffer.clear();
            self.taken = 0;
        }
        Ok(bytes)
    }

    /// Returns the next bytes up to the end of a line, without it.
    pub(super) fn line(&mut self) -> Result<Vec<u8>, TorchError> {
        let mut line = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => return Ok(line),
                byte => line.push(byte),
            }
        }
    }
}
