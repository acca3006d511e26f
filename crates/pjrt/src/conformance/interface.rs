//! Behaviours that need no client: the table, the sizes of arguments, errors.

use serdes_abi::pjrt;
use serdes_library_file::conformance::{Verdict, counted, expect, failed};

use super::subject::{Behaviour, Subject};
use crate::{
    PjrtError, Value,
    host::border,
    report::{CallRecord, LONGER},
};

pub(super) const BEHAVIOURS: &[Behaviour] = &[
    Behaviour {
        name: "pjrt_table",
        demand: "GetPjrtApi answers the same table whenever it is asked, of the size of its version",
        run: table,
    },
    Behaviour {
        name: "pjrt_version",
        demand: "the version in the table says its own size, 24",
        run: version,
    },
    Behaviour {
        name: "pjrt_required_functions",
        demand: "every function without which no host can work is there",
        run: required_functions,
    },
    Behaviour {
        name: "pjrt_slots",
        demand: "no function that the table has room for is NULL",
        run: slots,
    },
    Behaviour {
        name: "pjrt_extensions",
        demand: "the chain of extensions ends, and each is at least as long as its head",
        run: extensions,
    },
    Behaviour {
        name: "pjrt_attributes",
        demand: "it says which versions of StableHLO it reads, the oldest not after its own",
        run: attributes,
    },
    Behaviour {
        name: "pjrt_short_arguments",
        demand: "every function refuses arguments shorter than any, and writes nothing into them",
        run: |subject| short_arguments(subject, false),
    },
    Behaviour {
        name: "pjrt_short_arguments_with_type",
        demand: "functions that take an element type refuse short arguments before they look at it",
        run: |subject| short_arguments(subject, true),
    },
    Behaviour {
        name: "pjrt_longer_arguments",
        demand: "arguments longer than its own, as newer hosts have them, are taken",
        run: longer_arguments,
    },
    Behaviour { name: "pjrt_errors", demand: "an error has a code and a message", run: errors },
];

fn table(subject: &Subject) -> Verdict {
    let again = border::open(&subject.path)?;
    expect("the table when it is asked for again", again, subject.slots.address())?;
    let (minor, size) = (subject.plugin.minor(), subject.plugin.struct_size());
    let Some(known) = pjrt::table_size(minor) else { return failed("no version has such a table") };
    let is_of_its_version = if minor.is_known() {
        size == known.declared || size == known.size_of
    } else {
        size >= known.declared && size.is_multiple_of(size_of::<usize>())
    };
    if !is_of_its_version {
        let expected = known.declared;
        return failed(format!("it has {size} bytes, and tables of PJRT {minor} have {expected}"));
    }
    Ok(format!("{size} bytes, as PJRT {minor} has"))
}

fn version(subject: &Subject) -> Verdict {
    match warning(subject, "version") {
        Some(warning) => failed(warning),
        None => Ok(format!("PJRT {}", subject.plugin.minor())),
    }
}

/// Returns the warning about the table that contains `word`.
fn warning<'a>(subject: &'a Subject, word: &str) -> Option<&'a str> {
    subject.plugin.warnings().iter().map(String::as_str).find(|warning| warning.contains(word))
}

fn required_functions(subject: &Subject) -> Verdict {
    match subject.slots.missing_required()[..] {
        [] => Ok("all of them".to_owned()),
        [first, ..] => failed(format!("{first} is missing")),
    }
}

fn slots(subject: &Subject) -> Verdict {
    match subject.slots.missing_optional()[..] {
        [] => Ok(format!("{} functions answer", subject.slots.calls().count())),
        ref missing => failed(format!("without {}", missing.join(", "))),
    }
}

fn extensions(subject: &Subject) -> Verdict {
    /// The size of an extension's head: its size, its number, and the next extension.
    const HEAD: usize = 24;
    if let Some(warning) = warning(subject, "extensions") {
        return failed(warning);
    }
    let extensions = subject.plugin.extensions();
    let sized = subject.plugin.minor() >= pjrt::Minor::SIZED_EXTENSIONS;
    if let Some(short) = extensions.iter().find(|found| sized && found.struct_size < HEAD) {
        return failed(format!(
            "extension {} says that it has {} bytes, expected {HEAD} and more",
            short.number, short.struct_size
        ));
    }
    Ok(counted(extensions.len(), "extension"))
}

fn attributes(subject: &Subject) -> Verdict {
    let attributes = subject.plugin.attributes();
    if !subject.plugin.answers_attributes() {
        return Err(PjrtError::Missing {
            function: "PJRT_Plugin_Attributes",
            since: pjrt::Minor::OLDEST_SUPPORTED,
            minor: subject.plugin.minor(),
        }
        .into());
    }
    if attributes.is_empty() {
        return Ok("it says nothing of itself".to_owned());
    }
    let version = |name: &str| match attributes.iter().find(|(found, _)| found == name) {
        Some((_, Value::Integers(numbers))) if numbers.len() == 3 => Ok(Some(numbers)),
        Some((_, other)) => failed(format!("{name} is {other:?}, expected three integers")),
        None => Ok(None),
    };
    let current = version("stablehlo_current_version")?;
    let minimum = version("stablehlo_minimum_version")?;
    if let (Some(minimum), Some(current)) = (minimum, current)
        && minimum > current
    {
        return failed(format!("it reads StableHLO {minimum:?} to {current:?}"));
    }
    let names: Vec<&str> = attributes.iter().map(|(name, _)| name.as_str()).collect();
    Ok(names.join(", "))
}

/// Shorter than any struct of arguments, which begins with its size and an address.
const TOO_SHORT: [usize; 2] = [0, 15];

/// The names of fields with an element type, for which 0 means none.
const TYPES: [&str; 3] = ["type", "element_type", "shape_element_type"];

fn short_arguments(subject: &Subject, with_type: bool) -> Verdict {
    let minor = subject.plugin.minor();
    let takes_type = |name: &str| {
        pjrt::structure(&format!("{name}_Args")).is_some_and(|arguments| {
            // Functions that only return a value begin with the object that they query.
            name.starts_with("PJRT_Client_")
                && TYPES.iter().any(|field| arguments.field(field, minor).is_some())
        })
    };
    let calls = subject.slots.calls().filter(|(name, _)| takes_type(name) == with_type);
    let calls: Vec<(&'static str, usize)> = calls.collect();
    for (name, own) in &calls {
        for size in TOO_SHORT {
            let mut record = CallRecord::new(*own);
            // The name is looked up because a name from the table of functions is static.
            let Some(function) = pjrt::function(name) else { continue };
            // SAFETY: a plug-in cannot accept arguments that lack even their first two fields; the
            // record has space for all of them, and they are zero.
            match unsafe { subject.slots.call(&function.name, &mut record, size) } {
                Ok(()) => {
                    return failed(format!("{name} takes arguments that declare {size} bytes"));
                }
                Err(error) if !error.is_unsupported() && !record.is_untouched() => {
                    return failed(format!("{name} refuses {size} bytes and writes into them"));
                }
                Err(_) => {}
            }
        }
    }
    Ok(format!("{} functions", calls.len()))
}

fn longer_arguments(subject: &Subject) -> Verdict {
    const CALL: &str = "PJRT_Plugin_Attributes";
    let Some((_, own)) = subject.slots.calls().find(|(name, _)| *name == CALL) else {
        return Ok("there is no function that could be asked".to_owned());
    };
    for more in [LONGER, 4096] {
        let mut record = CallRecord::new(own + more);
        // SAFETY: the function has no inputs, and there is as much space as is declared.
        unsafe { subject.slots.call(&CALL, &mut record, own + more) }?;
    }
    Ok("8 and 4,096 bytes more are taken".to_owned())
}

fn errors(subject: &Subject) -> Verdict {
    const CALL: &str = "PJRT_Client_Create";
    let mut record = CallRecord::new(pjrt::PADDING);
    // SAFETY: as in `short_arguments`.
    match unsafe { subject.slots.call(&CALL, &mut record, 0) } {
        Ok(()) => failed("a client is created with arguments of no bytes"),
        Err(PjrtError::Status { code, message, .. }) => {
            if code.0 < 1 || code.0 > 16 {
                return failed(format!("an error has the code {}, expected 1 to 16", code.0));
            }
            if message.is_empty() {
                return failed("an error has no message");
            }
            Ok(format!("{code}: {message}"))
        }
        Err(error) => Err(error.into()),
    }
}
