//! Writes the golden device states as text, field by field and byte by byte, so that changes can be
//! read in a diff.
//!
//! The text is made from `docs/format.md` alone: this file must not use the library, so that a
//! mistake there is not repeated here.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

const REGENERATE: &str = "SERDES_REGENERATE_GOLDEN";

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/device_state")
}

/// Names of the header's fields, by tag without the bit for fields that readers must know.
const HEADER_FIELDS: [&str; 8] = [
    "end of the fields",
    "bad_consumers",
    "writer",
    "version of the array specs",
    "bytes of a chunk",
    "metadata of the source",
    "part of a save",
    "parts of a merged state",
];

const TABLES: [&str; 7] =
    ["", "arrays", "pieces", "checksums", "placements", "array specs", "names"];

/// A file that is being written as text: every byte is shown once, in order.
struct Page<'a> {
    bytes: &'a [u8],
    at: usize,
    text: String,
}

impl<'a> Page<'a> {
    fn heading(&mut self, what: &str) {
        writeln!(self.text, "\n{what}").unwrap();
    }

    /// Shows the next `count` bytes as `what`, sixteen per line.
    fn show(&mut self, what: &str, count: usize) -> &'a [u8] {
        let bytes = &self.bytes[self.at..self.at + count];
        let mut what = what;
        for line in bytes.chunks(16) {
            let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            let offset = self.at;
            writeln!(self.text, "{offset:06x}  {what:40}  {}", hex.join(" ")).unwrap();
            (self.at, what) = (self.at + line.len(), "");
        }
        bytes
    }

    fn number(&mut self, what: &str, width: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(&self.bytes[self.at..self.at + width]);
        let number = u64::from_le_bytes(bytes);
        self.show(&format!("{what}: {number}"), width);
        number
    }

    fn u32(&mut self, what: &str) -> u32 {
        self.number(what, 4) as u32
    }

    fn u64(&mut self, what: &str) -> u64 {
        self.number(what, 8)
    }

    fn checksum(&mut self, what: &str) {
        let bytes = self.bytes[self.at..self.at + 4].try_into().unwrap();
        self.show(&format!("{what}: {:08x}", u32::from_le_bytes(bytes)), 4);
    }

    fn name(&mut self, what: &str, count: usize) -> String {
        let text = self.bytes[self.at..self.at + count].escape_ascii().to_string();
        self.show(&format!("{what}: \"{text}\""), count);
        text
    }

    fn magic(&mut self) {
        self.name("magic", 8);
    }

    /// Shows zeros up to `end`.
    fn zeros(&mut self, end: usize) {
        let zeros = &self.bytes[self.at..end];
        assert!(zeros.iter().all(|byte| *byte == 0), "padding at {:#x}", self.at);
        if !zeros.is_empty() {
            writeln!(self.text, "{:06x}  {} zeros", self.at, zeros.len()).unwrap();
        }
        self.at = end;
    }

    fn zeros_to_multiple(&mut self, alignment: usize) {
        self.zeros(self.at.next_multiple_of(alignment));
    }
}

fn header(page: &mut Page<'_>) -> usize {
    page.heading("header");
    page.magic();
    let format = page.u32("format");
    page.u32("producer");
    page.u32("min_consumer");
    let end = page.u32("bytes of the header") as usize;
    page.u32("zero");
    page.checksum("checksum");
    if format > 0 {
        return end;
    }
    let mut chunk = 0;
    loop {
        let tag = u32::from_le_bytes(page.bytes[page.at..page.at + 4].try_into().unwrap());
        let kind = tag & 0x7fff_ffff;
        let name = HEADER_FIELDS[kind as usize];
        page.show(&format!("field {tag:#x}: {name}"), 4);
        let length = page.u32("  length") as usize;
        let value_end = page.at + length;
        match kind {
            0 => break,
            2 => drop(page.name("  text", length)),
            3 => drop(page.u32("  version")),
            4 => chunk = page.u32("  bytes") as usize,
            5 => {
                for _ in 0..page.u32("  entries") {
                    for what in ["key", "value"] {
                        let length = page.u32(&format!("  bytes of the {what}")) as usize;
                        page.name(&format!("  {what}"), length);
                    }
                }
            }
            6 => {
                page.show("  id of the save", 16);
                page.u32("  number of the part");
                page.u32("  number of parts");
            }
            7 => merged(page),
            _ => drop(page.show("  value", length)),
        }
        assert_eq!(page.at, value_end, "{name}");
        page.zeros_to_multiple(8);
    }
    page.zeros(end - 4);
    page.checksum("checksum of the header");
    chunk
}

fn merged(page: &mut Page<'_>) {
    let begin = page.at;
    page.show("  id of the save", 16);
    let parts = page.u32("  parts");
    let length = page.u32("  bytes of the directory's name") as usize;
    page.name("  directory", length);
    page.zeros(begin + (page.at - begin).next_multiple_of(8));
    for part in 0..parts {
        page.u64(&format!("  part {part}: bytes of its header"));
        page.show("    its trailer", 64);
    }
}

fn domain(page: &mut Page<'_>, dimensions: u32) {
    for dimension in 0..dimensions {
        page.u64(&format!("  dimension {dimension}: first index"));
        page.u64("    extent");
    }
}

fn piece(page: &mut Page<'_>, chunk: usize) {
    page.heading("piece");
    page.magic();
    let data = page.u64("offset of the data") as usize;
    let bytes = page.u64("bytes of data") as usize;
    page.u32("number");
    page.u32("device");
    let (name, spec) = (page.u32("bytes of the name"), page.u32("bytes of the array spec"));
    let dimensions = page.u32("dimensions of the domain");
    page.u32("is a part");
    page.name("name", name as usize);
    page.show("array spec", spec as usize);
    domain(page, dimensions);
    page.checksum("checksum of this header");
    page.zeros(data);
    page.show("data", bytes);
    page.name("magic", 4);
    page.u32("number");
    for number in 0..bytes.div_ceil(chunk) {
        page.checksum(&format!("checksum of chunk {number}"));
    }
    page.checksum("checksum of this footer");
    page.zeros_to_multiple(64);
}

fn table(page: &mut Page<'_>, kind: u32, end: usize) {
    page.heading(&format!("table of {}", TABLES[kind as usize]));
    while page.at < end {
        match kind {
            1 => {
                page.u32("offset of the name");
                page.u32("  spec");
                page.u32("  first piece");
                page.u32("  pieces");
            }
            2 => {
                page.u64("offset of the data");
                page.u64("  bytes");
                page.u32("  array");
                page.u32("  first chunk");
                page.u32("  placement");
                page.u32("  zero");
            }
            3 => page.checksum("checksum"),
            4 => {
                page.u32("device");
                page.u32("  zero");
                let dimensions = page.u32("  dimensions of the domain");
                page.u32("  is a part");
                domain(page, dimensions);
            }
            5 => {
                let length = page.u32("bytes of the array spec") as usize;
                page.show("  array spec", length);
            }
            _ => drop(page.name("names", end - page.at)),
        }
    }
    page.zeros_to_multiple(8);
}

fn index(page: &mut Page<'_>) {
    page.heading("index");
    let begin = page.at;
    page.magic();
    let tables = page.u32("tables");
    page.u32("zero");
    let mut places = Vec::new();
    for _ in 0..tables {
        let tag = page.u32("table");
        page.u32("  zero");
        let offset = page.u64("  offset in the index") as usize;
        places.push((tag & 0x7fff_ffff, begin + offset, page.u64("  bytes") as usize));
    }
    for (kind, offset, bytes) in places {
        assert_eq!(page.at, offset, "{}", TABLES[kind as usize]);
        table(page, kind, offset + bytes);
    }
}

fn trailer(page: &mut Page<'_>) {
    page.heading("trailer");
    page.u64("offset of the index");
    page.u64("bytes of the index");
    page.u64("bytes of the file");
    page.checksum("checksum of the index");
    page.checksum("checksum of the header");
    page.u64("bytes of data");
    page.zeros(page.at + 12);
    page.checksum("checksum of the trailer");
    page.magic();
}

/// Returns the text of one file.
fn text(bytes: &[u8]) -> String {
    let mut page = Page { bytes, at: 0, text: String::new() };
    let chunk = header(&mut page);
    if page.at == 32 {
        page.heading("what only a later format explains");
        page.show("", bytes.len() - page.at);
        return page.text;
    }
    while bytes[page.at..].starts_with(b"\x8fSDSbuf\n") {
        piece(&mut page, chunk);
    }
    index(&mut page);
    trailer(&mut page);
    assert_eq!(page.at, bytes.len(), "a byte that is not shown");
    page.text
}

fn pages() -> [(PathBuf, Vec<PathBuf>); 2] {
    let v0 = directory().join("v0");
    let mut parts: Vec<PathBuf> = fs::read_dir(v0.join("merged.sds.parts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    parts.sort();
    let files = [v0.join("small.sds"), v0.join("merged.sds")].into_iter().chain(parts);
    [
        (directory().join("v0.md"), files.collect()),
        (directory().join("future.md"), vec![directory().join("future.sds")]),
    ]
}

#[test]
fn golden_states_have_a_matching_text_beside_them() {
    for (path, files) in pages() {
        let mut expected =
            "# Golden device states\n\nThe bytes as text, by docs/format.md. Written by \
                            `cargo xtask golden`; not to be edited.\n"
                .to_owned();
        for file in files {
            let name = file.strip_prefix(directory()).unwrap().display().to_string();
            let bytes = fs::read(&file).unwrap();
            write!(expected, "\n## {name} ({} bytes)\n\n```text", bytes.len()).unwrap();
            writeln!(expected, "{}```", text(&bytes)).unwrap();
        }
        if std::env::var_os(REGENERATE).is_some() {
            fs::write(&path, &expected).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(found == expected, "{}: run `cargo xtask golden`", path.display());
    }
}

#[test]
fn every_golden_state_is_on_a_page() {
    let mut listed: Vec<PathBuf> = pages().into_iter().flat_map(|(_, files)| files).collect();
    let mut found = Vec::new();
    let mut folders = vec![directory()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|extension| extension.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("md") => {}
                _ => found.push(path),
            }
        }
    }
    listed.sort();
    found.sort();
    assert_eq!(found, listed);
}
