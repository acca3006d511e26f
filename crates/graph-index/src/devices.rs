//! Device names, as parsed by Python and by sessions.
//!
//! Depends on the syntax only, not on the existing devices.

/// Kinds of devices that Python knows by their names alone.
const KINDS: [&[u8]; 5] = [b"CPU", b"GPU", b"TPU", b"EPU", b"CUSTOM"];

/// Returns true if Python can parse the name of a device: parts such as `job:worker`, `replica:0`,
/// `task:0` and `device:CPU:0` or `CPU:0` separated by slashes, each of which may be missing.
pub fn is_device(name: &[u8]) -> bool {
    let mut has_kind = false;
    name.split(|byte| *byte == b'/').all(|part| {
        let fields: Vec<&[u8]> = part.splitn(5, |byte| *byte == b':').collect();
        match fields.as_slice() {
            [] | [b""] => true,
            [b"job", _] => true,
            [b"replica" | b"task", number] => is_number(number),
            [kind] if is_kind(kind) => !std::mem::replace(&mut has_kind, true),
            [kind, number] if is_kind(kind) => {
                !std::mem::replace(&mut has_kind, true) && is_number_or_any(number)
            }
            [b"device", _, number] => {
                !std::mem::replace(&mut has_kind, true) && is_number_or_any(number)
            }
            // Python ignores parts that begin with a colon.
            [first, ..] => first.is_empty(),
        }
    })
}

/// Returns true if a session can parse the name of a device: parts such as `/job:worker`,
/// `/replica:0`, `/task:0` and `/device:CPU:0` or `/cpu:0`, each any number of times. The existence
/// of the device is not checked.
pub fn is_session_device(name: &[u8]) -> bool {
    if name == b"/" {
        return true;
    }
    let mut rest = name;
    while !rest.is_empty() {
        match part_behind(rest) {
            Some(behind) => rest = behind,
            None => return false,
        }
    }
    true
}

/// Strips the first part of a device's name; `None` if that is not a valid part.
fn part_behind(name: &[u8]) -> Option<&[u8]> {
    let word = |text: &[u8]| {
        let end = text.iter().position(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        let is_word = text.first().is_some_and(u8::is_ascii_alphabetic);
        is_word.then_some(end.unwrap_or(text.len()))
    };
    let number = |text: &[u8]| {
        let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        (end > 0).then_some(end)
    };
    let behind = |text: &'_ [u8], length: Option<usize>| {
        let any = text.first() == Some(&b'*');
        Some(if any { 1 } else { length? })
    };
    if let Some(text) = name.strip_prefix(b"/job:") {
        return text.get(behind(text, word(text))?..);
    }
    for prefix in [&b"/replica:"[..], b"/task:", b"/cpu:", b"/CPU:", b"/gpu:", b"/GPU:"] {
        if let Some(text) = name.strip_prefix(prefix) {
            return text.get(behind(text, number(text))?..);
        }
    }
    let text = name.strip_prefix(b"/device:")?;
    let rest = text.get(behind(text, word(text))?..)?;
    match rest.strip_prefix(b":") {
        Some(text) => text.get(behind(text, number(text))?..),
        None => Some(rest),
    }
}

fn is_kind(name: &[u8]) -> bool {
    KINDS.iter().any(|kind| kind.eq_ignore_ascii_case(name))
}

fn is_number_or_any(text: &[u8]) -> bool {
    text == b"*" || is_number(text)
}

/// Returns true if Python's `int()` accepts the text.
fn is_number(text: &[u8]) -> bool {
    let digits = text.trim_ascii();
    let digits = digits.strip_prefix(b"-").or(digits.strip_prefix(b"+")).unwrap_or(digits);
    digits
        .split(|byte| *byte == b'_')
        .all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit))
}

/// Checks the devices of nodes; most nodes have the same device as the one before.
#[derive(Clone, Debug, Default)]
pub struct DeviceReader {
    /// The last name that Python can parse.
    last: Vec<u8>,
    /// The last name that a session can parse.
    last_in_session: Vec<u8>,
}

impl DeviceReader {
    /// Caches [`is_device`] for the last name.
    #[inline]
    pub fn is_device(&mut self, name: &[u8]) -> bool {
        name == self.last || self.look_at(name)
    }

    /// Caches [`is_session_device`] for the last name.
    #[inline]
    pub fn is_session_device(&mut self, name: &[u8]) -> bool {
        if name == self.last_in_session {
            return true;
        }
        let is_device = is_session_device(name);
        if is_device {
            self.last_in_session.clear();
            self.last_in_session.extend_from_slice(name);
        }
        is_device
    }

    #[cold]
    fn look_at(&mut self, name: &[u8]) -> bool {
        let is_device = is_device(name);
        if is_device {
            self.last.clear();
            self.last.extend_from_slice(name);
        }
        is_device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_one_whatever_came_before_it() {
        let mut reader = DeviceReader::default();
        for name in ["", "/gpu:x", "/gpu:1", "/gpu:1", "/gpu:x", "/gpu:1", ""] {
            assert_eq!(reader.is_device(name.as_bytes()), is_device(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn names_of_devices_are_the_ones_that_a_session_reads() {
        for name in ["", "/", "/cpu:0", "/CPU:*", "/device:CPU:0", "/device:CPU", "/device:*:1"] {
            assert!(is_session_device(name.as_bytes()), "{name}");
        }
        for name in ["/job:x/replica:0/task:0/device:GPU:7", "/job:*/task:3", "/task:1/task:2"] {
            assert!(is_session_device(name.as_bytes()), "{name}");
        }
        for name in ["CPU", "cpu:0", "garbage::", "\u{1}", "/job:1", "/task:a", "/cpu", "//cpu:0"] {
            assert!(!is_session_device(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn names_of_devices_are_the_ones_that_python_reads() {
        for name in [
            "",
            "/",
            "/cpu:0",
            "/device:GPU:1",
            "/job:worker/replica:0/task:3/device:CPU:0",
            "/job:a",
            "cpu",
            "/gpu:*",
            "/device:XLA_CPU:0",
            "//task:0",
            "/:x",
            "/device:a b:*",
        ] {
            assert!(is_device(name.as_bytes()), "{name}");
        }
        for name in [
            "not a device",
            "/task:a",
            "/replica:",
            "/cpu:x",
            "/cpu:0/gpu:0",
            "/device:CPU",
            "/device:CPU:0:1",
            "/job:a:b",
            "/cpu:0/device:GPU:0",
            "cpu:0:1",
        ] {
            assert!(!is_device(name.as_bytes()), "{name}");
        }
    }
}
