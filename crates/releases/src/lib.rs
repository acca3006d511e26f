//! Releases of jaxlib, of its plug-ins, of TensorFlow, PyTorch and their dependents, as data.
//!
//! This is the one table for all verdicts on releases: `data/jaxlib.json` has the versions that
//! each jaxlib was built with and reads, `data/packages.json` the declarations of packages,
//! `data/plugins.json` the measured and undeclared facts about plug-ins. `data/schema.json`
//! describes all three. The crate reads and writes them, and does not depend on the conclusions
//! from them.
//!
//! ```
//! let newest = serdes_releases::jaxlib().releases.last().unwrap();
//! assert!(newest.pjrt >= 116);
//! ```

#![forbid(unsafe_code)]

mod jaxlib;
mod packages;
mod plugins;
mod rows;

use std::sync::OnceLock;

pub use self::{
    jaxlib::{Exports, Jaxlib, JaxlibRelease, Proxy, Takes},
    packages::{Package, PackageRelease, Packages},
    plugins::{BuiltWith, Driver, FrameworkRelease, Need, PjrtVersion, Plugins},
    rows::TableError,
};

/// Returns the releases of jaxlib in this build.
#[must_use]
pub fn jaxlib() -> &'static Jaxlib {
    static KNOWN: OnceLock<Jaxlib> = OnceLock::new();
    KNOWN.get_or_init(|| embedded(Jaxlib::parse(include_str!("../data/jaxlib.json"))))
}

/// Returns the releases of packages in this build.
#[must_use]
pub fn packages() -> &'static Packages {
    static KNOWN: OnceLock<Packages> = OnceLock::new();
    KNOWN.get_or_init(|| embedded(Packages::parse(include_str!("../data/packages.json"))))
}

/// Returns the facts about plug-ins in this build.
#[must_use]
pub fn plugins() -> &'static Plugins {
    static KNOWN: OnceLock<Plugins> = OnceLock::new();
    KNOWN.get_or_init(|| embedded(Plugins::parse(include_str!("../data/plugins.json"))))
}

#[expect(
    clippy::expect_used,
    reason = "the text is part of the program and a test parses it; without tables everything would fit"
)]
fn embedded<T>(table: Result<T, TableError>) -> T {
    table.expect("the embedded table parses")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    const SCHEMA: &str = include_str!("../data/schema.json");
    const FILES: [(&str, &str); 3] = [
        ("jaxlib", include_str!("../data/jaxlib.json")),
        ("packages", include_str!("../data/packages.json")),
        ("plugins", include_str!("../data/plugins.json")),
    ];

    /// Collects the fields of a schema and of its nested schemas: `releases.version`.
    fn described(schema: &Value, at: &str, names: &mut BTreeSet<String>) {
        let properties = schema["properties"].as_object().into_iter().flatten();
        for (name, field) in properties {
            let name = format!("{at}{name}");
            described(field, &format!("{name}."), names);
            names.insert(name);
        }
        if !schema["items"].is_null() {
            described(&schema["items"], at, names);
        }
    }

    fn found(value: &Value, at: &str, names: &mut BTreeSet<String>) {
        for (name, field) in value.as_object().into_iter().flatten() {
            let name = format!("{at}{name}");
            found(field, &format!("{name}."), names);
            names.insert(name);
        }
        for item in value.as_array().into_iter().flatten() {
            found(item, at, names);
        }
    }

    #[test]
    fn schema_describes_the_fields_of_the_tables() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        for (name, text) in FILES {
            let (mut expected, mut there) = (BTreeSet::new(), BTreeSet::new());
            described(&schema["$defs"][name], "", &mut expected);
            found(&serde_json::from_str(text).unwrap(), "", &mut there);
            assert_eq!(there, expected, "data/{name}.json and data/schema.json");
        }
    }
}
