//! Frames on the pipes of the process: a text or a program, preceded by its length.

use std::io::{self, Read, Write};

/// Writes a request: the target version and the program.
pub(super) fn write_request(pipe: &mut impl Write, target: &str, program: &[u8]) -> io::Result<()> {
    for part in [target.as_bytes(), program] {
        pipe.write_all(&(part.len() as u64).to_le_bytes())?;
        pipe.write_all(part)?;
    }
    pipe.flush()
}

/// Reads an answer: the program, or an error message.
///
/// # Errors
/// If the process ends, or sends an invalid answer or one of more than `most` bytes.
pub(super) fn read_answer(pipe: &mut impl Read, most: u64) -> io::Result<Result<Vec<u8>, String>> {
    let mut kind = [0];
    pipe.read_exact(&mut kind)?;
    let mut length = [0; 8];
    pipe.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > most {
        let message = format!("it announces {length} bytes; expected at most {most}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let mut answer = Vec::new();
    pipe.take(length).read_to_end(&mut answer)?;
    if answer.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match kind {
        [0] => Ok(Ok(answer)),
        [1] => Ok(Err(String::from_utf8_lossy(&answer).chars().take(LONGEST_WORDS).collect())),
        [other] => {
            let message = format!("its answer is of the kind {other}; expected 0 or 1");
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        }
    }
}

/// Maximum length of an error message: errors of MLIR print whole modules.
const LONGEST_WORDS: usize = 600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_were_announced_and_no_further() {
        let answer = |kind: u8, length: u64, bytes: &[u8]| {
            let frame = [&[kind][..], &length.to_le_bytes(), bytes].concat();
            read_answer(&mut &*frame, 8).map_err(|error| error.to_string())
        };
        assert_eq!(answer(0, 3, b"abcd"), Ok(Ok(b"abc".to_vec())));
        assert_eq!(answer(1, 4, b"no\xFFo"), Ok(Err("no\u{FFFD}o".to_owned())));
        assert!(answer(0, u64::MAX, b"").unwrap_err().contains("expected at most 8"));
        assert!(answer(7, 0, b"").unwrap_err().contains("of the kind 7"));
        assert!(answer(0, 5, b"abc").is_err());
        assert!(answer(0, 0, b"").unwrap().unwrap().is_empty());
    }
}
