//! Generates the Rust tables of jaxlib and torch_xla releases from `jaxlib.json` and `plugins.json`
//! in `crates/releases/data`: `cargo xtask releases [--check]`.
//!
//! Crates without dependencies have the rows as constants, each in a folder `generated`.

use std::{collections::BTreeSet, error::Error, fmt::Write as _, fs, path::Path};

use serdes_releases::{Exports, Jaxlib, JaxlibRelease, Plugins, Takes};

/// The tables, from the root of the workspace.
pub(crate) const JAXLIB: &str = "crates/releases/data/jaxlib.json";
const PLUGINS: &str = "crates/releases/data/plugins.json";

const HEAD: &str =
    "//! Generated from `crates/releases/data` by `cargo xtask releases`; never edit it.\n\n";

/// Writes the generated files, or with `check` compares them. Returns the files that differ.
pub(crate) fn run(root: &Path, check: bool) -> Result<Vec<&'static str>, Box<dyn Error>> {
    let table = Jaxlib::parse(&fs::read_to_string(root.join(JAXLIB))?)?;
    let plugins = Plugins::parse(&fs::read_to_string(root.join(PLUGINS))?)?;
    let mut moved = Vec::new();
    for (name, text) in files(&table, &plugins)? {
        let path = root.join(name);
        if fs::read_to_string(&path).is_ok_and(|found| found == text) {
            continue;
        }
        moved.push(name);
        if !check {
            fs::write(path, text)?;
        }
    }
    Ok(moved)
}

/// Returns the generated files, with paths relative to the workspace's root.
fn files(table: &Jaxlib, plugins: &Plugins) -> Result<[(&'static str, String); 3], Box<dyn Error>> {
    Ok([
        ("crates/jax-artifacts/src/release/generated/mod.rs", exports(table)?),
        ("crates/pjrt/src/skew/generated/mod.rs", frameworks(table, plugins)?),
        ("crates/stablehlo/src/generated/mod.rs", clients(table)?),
    ])
}

/// Formats the numbers of a version in Rust: `1, 22, 0`.
fn numbers(version: &str) -> Result<String, Box<dyn Error>> {
    let numbers: Vec<u32> = version.split('.').map(str::parse).collect::<Result<_, _>>()?;
    match numbers[..] {
        [major, minor, patch] => Ok(format!("{major}, {minor}, {patch}")),
        _ => Err(format!("{version} has not three numbers").into()),
    }
}

/// Returns the name of a variant: `NamedWithDevice` for `named_with_device`.
fn variant(name: &str) -> String {
    let part = |part: &str| {
        let mut letters = part.chars();
        letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect::<String>()
    };
    name.split('_').map(part).collect()
}

fn measured(table: &Jaxlib) -> impl Iterator<Item = (&JaxlibRelease, &Exports)> {
    table.releases.iter().filter_map(|release| Some((release, release.exports.as_ref()?)))
}

fn exports(table: &Jaxlib) -> Result<String, Box<dyn Error>> {
    let names = |of: fn(&Exports) -> &str| {
        let names: BTreeSet<String> = measured(table).map(|(_, one)| variant(of(one))).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    };
    let mut text = HEAD.to_owned();
    let (deserializers, devices) =
        (names(|one| &one.deserializer), names(|one| &one.writes_devices));
    write!(
        text,
        "#[rustfmt::skip]\nuse super::{{\n    Deserializer::{{{deserializers}}},\n    DeviceField::{{{devices}}},\n    Release,\n    table::row,\n}};\n\n\
         /// Every release that is known, the oldest first.\n#[rustfmt::skip]\npub(super) const RELEASES: &[Release] = &[\n"
    )?;
    for (release, one) in measured(table) {
        let day: Vec<u32> = one.day.split('-').map(str::parse).collect::<Result<_, _>>()?;
        let [year, month, day] = day[..] else {
            return Err(format!("{} is no day", one.day).into());
        };
        writeln!(
            text,
            "    row(\"{}\", ({year}, {month}, {day}), ({}), ({}), ({}), {}, {}, {}, {}, {}, {}),",
            release.version,
            numbers(&release.stablehlo)?,
            numbers(&one.week_4)?,
            numbers(&one.week_12)?,
            one.serialization,
            one.writes_serialization,
            variant(&one.writes_devices),
            one.calling_convention,
            variant(&one.deserializer),
            one.last_dtype
        )?;
    }
    text.push_str("];\n");
    Ok(text)
}

fn gate(takes: Takes) -> &'static str {
    match takes {
        Takes::Equal => "Gate::Equal",
        Takes::From29 => "SINCE_29",
    }
}

fn frameworks(table: &Jaxlib, plugins: &Plugins) -> Result<String, Box<dyn Error>> {
    let mut text = format!(
        "{HEAD}use super::{{\n    gate::Gate,\n    releases::{{Release, SINCE_29, release, without_programs}},\n}};\n\n\
         /// Releases of jaxlib, oldest first.\n#[rustfmt::skip]\npub(super) const JAXLIB: &[Release] = &[\n"
    );
    for one in &table.releases {
        let gate = gate(one.takes);
        let stablehlo = numbers(&one.stablehlo)?;
        writeln!(text, "    release(\"{}\", {}, {gate}, [{stablehlo}]),", one.version, one.pjrt)?;
    }
    text.push_str(
        "];\n\n/// Releases of torch_xla, oldest first.\n#[rustfmt::skip]\npub(super) const TORCH_XLA: &[Release] = &[\n",
    );
    for one in plugins.frameworks.iter().filter(|one| one.package == "torch-xla") {
        let gate = gate(one.takes);
        writeln!(text, "    without_programs(\"{}\", {}, {gate}),", one.version, one.pjrt)?;
    }
    text.push_str("];\n");
    Ok(text)
}

fn clients(table: &Jaxlib) -> Result<String, Box<dyn Error>> {
    let programs = |one: &JaxlibRelease| {
        let version = one.proxy.as_ref()?.programs.clone()?;
        Some((one.version.clone(), version))
    };
    let clients: Vec<(String, String)> = table.releases.iter().filter_map(programs).collect();
    let mut text = format!(
        "{HEAD}use super::{{StableHloVersion, clients::ProxyClient}};\n\nimpl ProxyClient {{\n    \
         /// Measured clients, oldest first. The version of their programs depends on the client's\n    \
         /// release alone, not on the server.\n    #[rustfmt::skip]\n    pub const KNOWN: &'static [Self] = &[\n"
    );
    for (release, version) in clients {
        let version = numbers(&version)?;
        writeln!(
            text,
            "        Self::new(\"jaxlib-{release}\", StableHloVersion::new({version})),"
        )?;
    }
    text.push_str("    ];\n}\n");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_tables_are_those_of_the_data() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        assert_eq!(run(&root, true).unwrap(), [""; 0], "run `cargo xtask releases`");
    }

    #[test]
    fn variants_are_named_as_rust_names_them() {
        assert_eq!(variant("named_with_device"), "NamedWithDevice");
        assert!(numbers("1.2").is_err());
    }
}
