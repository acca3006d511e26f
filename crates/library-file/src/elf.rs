//! Reads the ELF file of a shared library without loading or running it.

use std::{
    collections::BTreeSet,
    fs::File,
    path::{Path, PathBuf},
};

use object::{
    Endianness, ReadCache, ReadRef, U32,
    elf::{
        DT_GNU_HASH, DT_HASH, DT_NEEDED, DT_NULL, DT_REL, DT_RELA, DT_STRSZ, DT_STRTAB, DT_SYMENT,
        DT_SYMTAB, DT_VERDEF, DT_VERDEFNUM, DT_VERNEED, DT_VERSYM, DynamicTag, EM_386, EM_AARCH64,
        EM_ALPHA, EM_ARM, EM_LOONGARCH, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64, ET_DYN,
        FileHeader32, FileHeader64, Machine, PT_DYNAMIC, PT_LOAD, SHN_ABS, STB_LOCAL, STB_WEAK,
        STT_COMMON, STT_OBJECT, STT_TLS, Verdaux, Verdef,
    },
    pod::{Pod, from_bytes, slice_from_all_bytes},
    read::elf::{Dyn, FileHeader, GnuHashTable, ProgramHeader, Sym},
};

use crate::status_functions::serves;

/// The error of a file that cannot be loaded here, regardless of its content.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} cannot be loaded: {reason}")]
pub struct NotLoadable {
    /// The file.
    pub path: PathBuf,
    /// The reason, and the remedy.
    pub reason: String,
}

/// Exports and imports of an ELF shared library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The processor architecture, such as `x86_64`.
    pub architecture: String,
    /// True for a shared library (and not an executable at a fixed address or an object file).
    pub shared: bool,
    /// Symbols that it defines for others, sorted.
    pub exports: Vec<String>,
    /// True if the library exports a variable named `SE_InitPlugin`, which cannot be called.
    pub entry_is_data: bool,
    /// Symbols that others must define, sorted, without weak ones, which may stay undefined.
    pub undefined: Vec<String>,
    /// The names in `undefined` that this host provides: status functions.
    pub served: Vec<String>,
    /// The names in `undefined` that look like TensorFlow's and that this host does not provide.
    pub unserved: Vec<String>,
    /// The libraries that must be loaded with it, in the file's order.
    pub needed: Vec<String>,
}

/// The interface of a plug-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// StreamExecutor: the library exports `SE_InitPlugin`.
    StreamExecutor,
    /// PJRT: the library exports `GetPjrtApi`.
    Pjrt,
}

impl Api {
    /// Returns `stream_executor` or `pjrt`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StreamExecutor => "stream_executor",
            Self::Pjrt => "pjrt",
        }
    }
}

impl Inspection {
    /// Returns the plug-in interface of the library, if any; StreamExecutor if it has both.
    #[must_use]
    pub fn api(&self) -> Option<Api> {
        if self.is_plugin() {
            Some(Api::StreamExecutor)
        } else {
            self.exports.iter().any(|name| name == PJRT_ENTRY).then_some(Api::Pjrt)
        }
    }

    /// Returns true if the library exports the function `SE_InitPlugin`.
    #[must_use]
    pub fn is_plugin(&self) -> bool {
        !self.entry_is_data && self.exports.iter().any(|name| name == ENTRY)
    }

    /// Returns true if the library is for the architecture that this program runs on.
    #[must_use]
    pub fn is_for_this_machine(&self) -> bool {
        self.architecture == std::env::consts::ARCH
    }
}

/// Inspects the file at `path`.
///
/// # Errors
/// [`NotLoadable`] if it cannot be read, is not an ELF file, or is damaged.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection, NotLoadable> {
    let path = path.as_ref();
    let refuse = |reason: String| NotLoadable { path: path.to_owned(), reason };
    let unreadable = |error: std::io::Error| refuse(format!("{error}; check the path"));
    // Checked before opening, because opening a pipe waits for a writer.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(refuse("it is not a file; give the path of a shared library".to_owned()));
    }
    let cache = ReadCache::new(File::open(path).map_err(unreadable)?);
    let damaged = |reason: String| {
        refuse(format!("it is a damaged ELF file ({reason}); get a new copy of it"))
    };
    let identification = (&cache).read_bytes_at(0, 16).unwrap_or_default();
    // The fifth byte is the class: 1 for 32 bits, 2 for 64.
    match identification {
        [0x7f, b'E', b'L', b'F', 2, ..] => {
            read::<FileHeader64<Endianness>>(&cache).map_err(damaged)
        }
        [0x7f, b'E', b'L', b'F', 1, ..] => {
            read::<FileHeader32<Endianness>>(&cache).map_err(damaged)
        }
        other => Err(refuse(format!(
            "it is not an ELF file (found {}); give the path of a shared library",
            foreign_format(other)
        ))),
    }
}

/// Returns the name of a format other than ELF, detected by the first bytes.
fn foreign_format(head: &[u8]) -> &'static str {
    match head {
        // For one processor in either order of bytes, and for several.
        [0xcf, 0xfa, 0xed, 0xfe, ..]
        | [0xfe, 0xed, 0xfa, 0xcf, ..]
        | [0xca, 0xfe, 0xba, 0xbe, ..] => "Mach-O, the format of macOS",
        [b'M', b'Z', ..] => "PE, the format of Windows",
        _ => "no ELF magic",
    }
}

/// The function by which a plug-in registers.
const ENTRY: &str = "SE_InitPlugin";

/// The function through which a PJRT plug-in returns its functions.
pub const PJRT_ENTRY: &str = "GetPjrtApi";

/// The maximum number of bytes that are read of one table. The largest known tables, in libraries
/// of 600 MB, have a tenth of it.
const LARGEST_TABLE: u64 = 256 << 20;

/// Limit on the total length of a library's names, as a multiple of its string table. Names share
/// suffixes, so the sum is slightly larger than the table; if every symbol names nearly the whole
/// table, the sum has no practical bound.
const SHARED_NAMES: u64 = 8;

type ElfResult<T> = Result<T, String>;

/// The segments that the dynamic loader would map. Only they are used: the loader never reads
/// sections, and a library may have none.
struct Image<'data, Elf: FileHeader<Endian = Endianness>> {
    endian: Endianness,
    file: &'data ReadCache<File>,
    segments: &'data [Elf::ProgramHeader],
    /// The tag and the value of each dynamic entry, without the last one.
    dynamic: Vec<(DynamicTag, u64)>,
}

impl<'data, Elf: FileHeader<Endian = Endianness>> Image<'data, Elf> {
    fn new(
        header: &'data Elf,
        endian: Endianness,
        file: &'data ReadCache<File>,
    ) -> ElfResult<Self> {
        let segments = header.program_headers(endian, file).map_err(|error| error.to_string())?;
        let length = file.len().map_err(|()| "it has no length".to_owned())?;
        let mut image = Self { endian, file, segments, dynamic: Vec::new() };
        for segment in segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD) {
            let (offset, size) = segment.file_range(endian);
            if size > 0 && offset.checked_add(size).is_none_or(|end| end > length) {
                return Err(format!(
                    "it is cut off: found {length} bytes, expected {size} at offset {offset}"
                ));
            }
        }
        let Some(table) = segments.iter().find(|segment| segment.p_type(endian) == PT_DYNAMIC)
        else {
            return Ok(image);
        };
        let (offset, size) = table.file_range(endian);
        let entry = size_of::<Elf::Dyn>() as u64;
        let bytes = image.read(offset, size - size % entry, "the dynamic table")?;
        let entries: &[Elf::Dyn] = slice_of(bytes, "the dynamic table")?;
        image.dynamic = entries
            .iter()
            .map(|entry| (entry.tag(endian), entry.val(endian)))
            .take_while(|&(tag, _)| tag != DT_NULL)
            .collect();
        Ok(image)
    }

    fn value(&self, tag: DynamicTag) -> Option<u64> {
        self.dynamic.iter().find(|&&(known, _)| known == tag).map(|&(_, value)| value)
    }

    fn read(&self, offset: u64, size: u64, what: &str) -> ElfResult<&'data [u8]> {
        if size > LARGEST_TABLE {
            return Err(format!("{what} has {size} bytes, expected {LARGEST_TABLE} at most"));
        }
        self.file
            .read_bytes_at(offset, size)
            .map_err(|()| format!("{what} is not in the file: {size} bytes at offset {offset}"))
    }

    /// Returns the file offset of the byte at an address, and the number of bytes from there to the
    /// end of its segment.
    fn place(&self, address: u64) -> Option<(u64, u64)> {
        self.segments.iter().filter(|segment| segment.p_type(self.endian) == PT_LOAD).find_map(
            |segment| {
                let (offset, size) = segment.file_range(self.endian);
                let within = address.checked_sub(segment.p_vaddr(self.endian).into())?;
                Some((offset.checked_add(within)?, size.checked_sub(within)?))
            },
        )
    }

    fn table(&self, address: u64, size: u64, what: &str) -> ElfResult<&'data [u8]> {
        let (offset, there) =
            self.place(address).ok_or_else(|| format!("{what} is not in any segment"))?;
        if size > there {
            return Err(format!("{what} has {size} bytes, and its segment ends after {there}"));
        }
        self.read(offset, size, what)
    }

    /// Returns the number of bytes from an address to the next table or to the end of the segment:
    /// the largest size of a table without a length.
    fn bytes_to_next_table(&self, address: u64) -> u64 {
        const TABLES: [DynamicTag; 9] = [
            DT_HASH,
            DT_GNU_HASH,
            DT_SYMTAB,
            DT_STRTAB,
            DT_VERSYM,
            DT_VERDEF,
            DT_VERNEED,
            DT_RELA,
            DT_REL,
        ];
        let next =
            TABLES.iter().filter_map(|&tag| self.value(tag)).filter(|&at| at > address).min();
        let end = self.place(address).map_or(0, |(_, there)| there);
        next.map_or(end, |next| end.min(next - address)).min(LARGEST_TABLE)
    }

    /// Returns the number of dynamic symbols, which only the hash tables give.
    fn symbol_count(&self, symbols: u64, machine: Machine) -> ElfResult<u64> {
        // The words of this table have 8 bytes on these machines, and 4 on all others.
        let has_words = machine != EM_S390 && machine != EM_ALPHA;
        if let Some(address) = self.value(DT_HASH).filter(|_| has_words) {
            let header: &[U32<Endianness>] =
                slice_of(self.table(address, 8, "the hash table")?, "the hash table")?;
            return Ok(header.get(1).map_or(0, |chains| chains.get(self.endian).into()));
        }
        let named = match self.value(DT_GNU_HASH) {
            Some(address) => {
                let bytes =
                    self.table(address, self.bytes_to_next_table(address), "the hash table")?;
                GnuHashTable::<Elf>::parse(self.endian, bytes)
                    .map_err(|error| error.to_string())?
                    .symbol_table_length(self.endian)
            }
            None => None,
        };
        // A library that exports nothing has no symbol in its hash table.
        Ok(named.map_or_else(
            || self.bytes_to_next_table(symbols) / size_of::<Elf::Sym>() as u64,
            u64::from,
        ))
    }

    fn symbols(&self, machine: Machine) -> ElfResult<&'data [Elf::Sym]> {
        let Some(address) = self.value(DT_SYMTAB) else { return Ok(&[]) };
        let size = size_of::<Elf::Sym>() as u64;
        if let Some(said) = self.value(DT_SYMENT).filter(|&said| said != size) {
            return Err(format!("a symbol has {said} bytes, expected {size}"));
        }
        let bytes = self.symbol_count(address, machine)?.saturating_mul(size);
        let what = "the symbol table";
        slice_of(self.table(address, bytes, what)?, what)
    }

    fn strings(&self) -> ElfResult<&'data [u8]> {
        let (Some(address), Some(size)) = (self.value(DT_STRTAB), self.value(DT_STRSZ)) else {
            return Ok(&[]);
        };
        self.table(address, size, "the string table")
    }

    /// Returns the names of the symbol versions that a library defines, such as `GLIBC_2.17`. The
    /// symbol table has an absolute symbol for each, which cannot be called.
    fn defined_versions(&self, names: &mut Names<'data>) -> ElfResult<BTreeSet<&'data [u8]>> {
        let mut found = BTreeSet::new();
        let (Some(address), Some(count)) = (self.value(DT_VERDEF), self.value(DT_VERDEFNUM)) else {
            return Ok(found);
        };
        let what = "the table of versions";
        let mut rest = self.table(address, self.bytes_to_next_table(address), what)?;
        let cut_off = || format!("{what} is cut off");
        let behind = |bytes: &'data [u8], distance: U32<Endianness>| {
            bytes.get(distance.get(self.endian) as usize..).ok_or_else(cut_off)
        };
        for _ in 0..count {
            let (definition, _) = from_bytes::<Verdef<Endianness>>(rest).map_err(|()| cut_off())?;
            // The first record has the name; later ones name the versions that this one follows.
            let (record, _) = from_bytes::<Verdaux<Endianness>>(behind(rest, definition.vd_aux)?)
                .map_err(|()| cut_off())?;
            found.insert(names.at(record.vda_name.get(self.endian).into())?);
            // The last one has 0, and would be read again.
            if definition.vd_next.get(self.endian) == 0 {
                break;
            }
            rest = behind(rest, definition.vd_next)?;
        }
        Ok(found)
    }
}

fn slice_of<'data, T: Pod>(bytes: &'data [u8], what: &str) -> ElfResult<&'data [T]> {
    let size = size_of::<T>();
    slice_from_all_bytes(bytes)
        .map_err(|()| format!("{what} has {} bytes, expected whole entries of {size}", bytes.len()))
}

/// Takes names from a string table, up to the limit of a real library.
struct Names<'data> {
    strings: &'data [u8],
    left: u64,
}

impl<'data> Names<'data> {
    fn new(strings: &'data [u8]) -> Self {
        Self { strings, left: SHARED_NAMES.saturating_mul(strings.len() as u64) }
    }

    fn at(&mut self, offset: u64) -> ElfResult<&'data [u8]> {
        let tail = usize::try_from(offset).ok().and_then(|offset| self.strings.get(offset..));
        let name = tail.and_then(|tail| {
            tail.split(|&byte| byte == 0).next().filter(|name| name.len() < tail.len())
        });
        let name = name.ok_or_else(|| format!("a name at {offset} is not in the string table"))?;
        self.left = self.left.checked_sub(name.len() as u64).ok_or_else(|| {
            format!("its names have more than {SHARED_NAMES} times the bytes of their table")
        })?;
        Ok(name)
    }
}

/// Returns the names that look like TensorFlow's.
fn of_tensorflow(names: &[String]) -> impl Iterator<Item = String> {
    names.iter().filter(|name| is_of_tensorflow(name)).cloned()
}

/// Returns true if the name looks like one of TensorFlow's C functions.
pub fn is_of_tensorflow(name: &str) -> bool {
    const PREFIXES: [&str; 5] = ["TF_", "TSL_", "TFE_", "SE_", "TFNPD_"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn read<Elf>(file: &ReadCache<File>) -> ElfResult<Inspection>
where
    Elf: FileHeader<Endian = Endianness>,
{
    let wrong = |error: object::Error| error.to_string();
    let header = Elf::parse(file).map_err(wrong)?;
    let endian = header.endian().map_err(wrong)?;
    // Sections are not used, but a file without the sections that its header declares is truncated.
    header.section_headers(endian, file).map_err(wrong)?;
    let image = Image::<Elf>::new(header, endian, file)?;
    let machine = header.e_machine(endian);
    let mut names = Names::new(image.strings()?);
    let versions = image.defined_versions(&mut names)?;
    let (mut exports, mut undefined) = (BTreeSet::new(), BTreeSet::new());
    let mut entry_is_data = false;
    for symbol in image.symbols(machine)? {
        let name = names.at(symbol.st_name(endian).into())?;
        let binding = symbol.st_bind();
        if name.is_empty() || binding == STB_LOCAL {
            continue;
        }
        if symbol.st_shndx(endian) == SHN_ABS && versions.contains(name) {
            continue;
        }
        if symbol.is_undefined(endian) {
            if binding != STB_WEAK {
                undefined.insert(name);
            }
        } else {
            exports.insert(name);
            if name == ENTRY.as_bytes() {
                entry_is_data = matches!(symbol.st_type(), STT_OBJECT | STT_COMMON | STT_TLS);
            }
        }
    }
    let owned = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let sorted = |names: BTreeSet<&[u8]>| names.into_iter().map(owned).collect::<Vec<_>>();
    let (exports, undefined) = (sorted(exports), sorted(undefined));
    let mut needed = Vec::new();
    for &(tag, value) in &image.dynamic {
        if tag == DT_NEEDED {
            needed.push(owned(names.at(value)?));
        }
    }
    let (served, unserved) = of_tensorflow(&undefined).partition(|name| serves(name));
    Ok(Inspection {
        architecture: architecture(machine),
        shared: header.e_type(endian) == ET_DYN,
        exports,
        entry_is_data,
        undefined,
        served,
        unserved,
        needed,
    })
}

/// Returns the architecture's name in Rust's spelling.
fn architecture(machine: Machine) -> String {
    match machine {
        EM_X86_64 => "x86_64".to_owned(),
        EM_AARCH64 => "aarch64".to_owned(),
        EM_386 => "x86".to_owned(),
        EM_ARM => "arm".to_owned(),
        EM_RISCV => "riscv64".to_owned(),
        EM_PPC64 => "powerpc64".to_owned(),
        EM_S390 => "s390x".to_owned(),
        EM_LOONGARCH => "loongarch64".to_owned(),
        Machine(other) => format!("machine {other}"),
    }
}
