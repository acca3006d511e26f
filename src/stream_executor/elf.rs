//! What a shared library says of itself, read as an ELF file: nothing is loaded and nothing of it is run.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use object::elf::{
    DT_NEEDED, EM_386, EM_AARCH64, EM_ARM, EM_LOONGARCH, EM_PPC64, EM_RISCV, EM_S390, EM_X86_64,
    ET_DYN, FileHeader32, FileHeader64, Machine, SHN_ABS, SHT_DYNSYM, STB_LOCAL, STB_WEAK,
};
use object::read::elf::{Dyn, FileHeader, SectionTable, Sym};
use object::{Endianness, ReadCache, ReadRef};

use super::error::Error;
use super::status;

/// What an ELF shared library exports and needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The processor architecture, such as `x86_64`.
    pub architecture: String,
    /// Whether it is a shared library (and not an executable at a fixed address or an object file).
    pub shared: bool,
    /// Symbols that it defines for others, sorted.
    pub exports: Vec<String>,
    /// Symbols that others must define, sorted; weak ones, which may stay undefined, left out.
    pub undefined: Vec<String>,
    /// Those of `undefined` that this host serves: status functions.
    pub served: Vec<String>,
    /// Those of `undefined` that look like TensorFlow's and that this host does not serve.
    pub unserved: Vec<String>,
    /// The libraries that must be loaded with it, in its order.
    pub needed: Vec<String>,
}

impl Inspection {
    /// Whether it exports `SE_InitPlugin`.
    #[must_use]
    pub fn is_plugin(&self) -> bool {
        self.exports.iter().any(|name| name == "SE_InitPlugin")
    }

    /// Whether it is for the architecture that this program runs on.
    #[must_use]
    pub fn is_for_this_machine(&self) -> bool {
        self.architecture == std::env::consts::ARCH
    }
}

/// Reads the file at `path`.
///
/// # Errors
/// [`Error::NotLoadable`] if it cannot be read, is no ELF file, or is damaged.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection, Error> {
    let path = path.as_ref();
    let refuse = |reason: String| Error::NotLoadable { path: path.to_owned(), reason };
    let file = File::open(path).map_err(|error| refuse(format!("{error}; check the path")))?;
    let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
    if !is_file {
        return Err(refuse("it is not a file; give the path of a shared library".to_owned()));
    }
    let cache = ReadCache::new(file);
    let damaged = |error: object::Error| {
        refuse(format!("it is a damaged ELF file ({error}); get a new copy of it"))
    };
    let identification = (&cache).read_bytes_at(0, 16).unwrap_or_default();
    // The fifth byte is the class: 1 for 32 bits, 2 for 64.
    match identification {
        [0x7f, b'E', b'L', b'F', 2, ..] => {
            read::<FileHeader64<Endianness>, _>(&cache).map_err(damaged)
        }
        [0x7f, b'E', b'L', b'F', 1, ..] => {
            read::<FileHeader32<Endianness>, _>(&cache).map_err(damaged)
        }
        _ => Err(refuse(
            "it is not an ELF file (found no ELF magic); give the path of a shared library"
                .to_owned(),
        )),
    }
}

/// Fails unless the file is a shared library for this machine that exports `SE_InitPlugin`.
pub(crate) fn check_is_plugin(path: &Path) -> Result<(), Error> {
    let inspection = inspect(path)?;
    let refuse = |reason: String| Err(Error::NotLoadable { path: path.to_owned(), reason });
    if !inspection.is_for_this_machine() {
        return refuse(format!(
            "it is for {}, and this machine is {}; use a plug-in built for this machine",
            inspection.architecture,
            std::env::consts::ARCH
        ));
    }
    if !inspection.shared {
        return refuse("it is an ELF file but no shared library; build it with -shared".to_owned());
    }
    if inspection.is_plugin() {
        return Ok(());
    }
    let others: Vec<&str> = inspection
        .exports
        .iter()
        .map(String::as_str)
        .filter(|name| OTHER_ENTRIES.contains(name))
        .collect();
    let hint = if others.is_empty() {
        String::new()
    } else {
        format!(
            " (it exports {}, which extends a system without adding a device)",
            others.join(", ")
        )
    };
    Err(Error::NotAPlugin { path: path.to_owned(), hint })
}

/// Entry points of other kinds of plug-ins, which people take for device plug-ins.
const OTHER_ENTRIES: [&str; 6] = [
    "TF_InitGraph",
    "TF_InitKernel",
    "TF_InitProfiler",
    "TF_InitPlugin",
    "TFNPD_InitPlugin",
    "GetPjrtApi",
];

fn read<'data, Elf, R>(data: R) -> object::Result<Inspection>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let header = Elf::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let symbols = sections.symbols(endian, data, SHT_DYNSYM)?;
    let versions = defined_versions(&sections, endian, data)?;
    let (mut exports, mut undefined) = (Vec::new(), Vec::new());
    for symbol in symbols.iter() {
        let name = symbol.name(endian, symbols.strings())?;
        let binding = symbol.st_bind();
        if name.is_empty() || binding == STB_LOCAL {
            continue;
        }
        if symbol.st_shndx(endian) == SHN_ABS && versions.contains(name) {
            continue;
        }
        let name = String::from_utf8_lossy(name).into_owned();
        if !symbol.is_undefined(endian) {
            exports.push(name);
        } else if binding != STB_WEAK {
            undefined.push(name);
        }
    }
    exports.sort_unstable();
    exports.dedup();
    undefined.sort_unstable();
    undefined.dedup();
    let mut needed = Vec::new();
    if let Some((entries, strings)) = sections.dynamic(endian, data)? {
        let strings = sections.strings(endian, data, strings)?;
        for entry in entries {
            if entry.tag(endian) == DT_NEEDED {
                needed.push(String::from_utf8_lossy(entry.string(endian, strings)?).into_owned());
            }
        }
    }
    let (served, unserved) = undefined
        .iter()
        .filter(|name| {
            ["TF_", "TSL_", "TFE_", "SE_", "TFNPD_"].iter().any(|prefix| name.starts_with(prefix))
        })
        .cloned()
        .partition(|name| status::serves(name));
    Ok(Inspection {
        architecture: architecture(header.e_machine(endian)),
        shared: header.e_type(endian) == ET_DYN,
        exports,
        undefined,
        served,
        unserved,
        needed,
    })
}

/// The names of the symbol versions that a library defines, such as `GLIBC_2.17`. The symbol table has an absolute symbol for each, which
/// is nothing that anybody can call.
fn defined_versions<'data, Elf, R>(
    sections: &SectionTable<'data, Elf, R>,
    endian: Endianness,
    data: R,
) -> object::Result<BTreeSet<&'data [u8]>>
where
    Elf: FileHeader<Endian = Endianness>,
    R: ReadRef<'data>,
{
    let mut names = BTreeSet::new();
    if let Some((definitions, strings)) = sections.gnu_verdef(endian, data)? {
        let strings = sections.strings(endian, data, strings)?;
        for definition in definitions {
            // The first record has the name; those behind it name the versions that this one follows.
            let (_, mut records) = definition?;
            if let Some(record) = records.next()? {
                names.insert(record.name(endian, strings)?);
            }
        }
    }
    Ok(names)
}

/// The architecture's name as Rust spells it.
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
