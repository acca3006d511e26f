//! Frames on the pipes of a worker: programs with their options, and the results.

use std::io::{self, BufRead, Read, Write};

use serdes::codec::StatusCode;

/// Maximum length of a compiler's message; errors of MLIR print whole modules.
const LONGEST_WORDS: usize = 1 << 16;
/// Maximum length of an answer's line: an escaped character takes at most twelve bytes.
const LONGEST_LINE: u64 = 1 << 20;

/// Writes a program and its options.
pub(super) fn write_request(
    pipe: &mut impl Write,
    program: &[u8],
    options: &[u8],
) -> io::Result<()> {
    for part in [program, options] {
        pipe.write_all(&(part.len() as u64).to_le_bytes())?;
        pipe.write_all(part)?;
    }
    pipe.flush()
}

/// Reads a program and its options; `None` at the end.
pub(super) fn read_request(pipe: &mut impl Read) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    let mut length = [0; 8];
    match pipe.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let program = read_bytes(pipe, u64::from_le_bytes(length))?;
    pipe.read_exact(&mut length)?;
    let options = read_bytes(pipe, u64::from_le_bytes(length))?;
    Ok(Some((program, options)))
}

/// Answer of a worker: success, or the reason of the failure.
pub(super) type Answer = Result<(), (StatusCode, String)>;

/// Encodes an answer as a line of JSON, since standard output is text.
pub(super) fn answer(answer: &Answer) -> Vec<u8> {
    let (code, words) = match answer {
        Ok(()) => (StatusCode::Ok, String::new()),
        Err((code, words)) => (*code, words.chars().take(LONGEST_WORDS).collect()),
    };
    format!("{}\n", serde_json::json!([code.number(), words])).into_bytes()
}

/// Reads an answer.
///
/// # Errors
/// If the process ends, or sends an invalid answer.
pub(super) fn read_answer(pipe: &mut impl BufRead) -> io::Result<Answer> {
    let mut line = Vec::new();
    pipe.take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    if !line.ends_with(b"\n") {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (code, words): (i32, String) = serde_json::from_slice(&line)?;
    Ok(match StatusCode::from_number(code).unwrap_or(StatusCode::Unknown) {
        StatusCode::Ok => Ok(()),
        code => Err((code, words)),
    })
}

/// Reads bytes, allocating memory as they arrive.
fn read_bytes(pipe: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    pipe.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let mut pipe = Vec::new();
        write_request(&mut pipe, b"program", b"").unwrap();
        write_request(&mut pipe, b"", b"options").unwrap();
        let mut read = &*pipe;
        let first = read_request(&mut read).unwrap();
        assert_eq!(first, Some((b"program".to_vec(), Vec::new())));
        assert_eq!(read_request(&mut read).unwrap(), Some((Vec::new(), b"options".to_vec())));
        assert_eq!(read_request(&mut read).unwrap(), None);
        assert!(read_request(&mut &pipe[..12]).is_err());
        for said in [Ok(()), Err((StatusCode::InvalidArgument, "no such type".to_owned()))] {
            assert_eq!(read_answer(&mut &*answer(&said)).unwrap(), said);
        }
    }

    #[test]
    fn frames_bound_the_words_of_an_answer() {
        let pipe = answer(&Err((StatusCode::Unknown, "\u{1b}ü".repeat(LONGEST_WORDS))));
        let (_, words) = read_answer(&mut &*pipe).unwrap().unwrap_err();
        assert_eq!(words.chars().count(), LONGEST_WORDS);
        // Output that a plug-in could write in place of the process.
        let endless = vec![b'['; 2 << 20];
        for wrong in [&endless[..], b"", b"[0,\"\"]", b"hello\n", b"[0]\n"] {
            assert!(read_answer(&mut &*wrong).is_err());
        }
    }
}
