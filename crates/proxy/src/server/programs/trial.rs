//! Compiles programs in another process first: a compiler that crashes on a program then ends only
//! that process.

use std::{
    collections::{HashSet, VecDeque},
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serdes::{
    ErrorKind,
    codec::{Status, StatusCode},
};

use crate::{
    server::digest::{Digest, hash},
    status::status,
};

/// Compiles programs in a separate process, to find out if they compile.
///
/// A compiler is foreign code that reads bytes of untrusted clients; some programs make it overflow
/// its stack, fail an assertion, or work for hours. A server with a trial compiler compiles a
/// program itself only after the trial has succeeded. Without one, a program that crashes the
/// compiler ends the server.
pub trait TrialCompiler: fmt::Debug + Send + Sync {
    /// Compiles a program (of the format `mlir`) with these options (`xla.CompileOptionsProto`) on
    /// the server's plug-in, and discards the result.
    ///
    /// # Errors
    /// The reason why the program is not compiled.
    fn compile(&self, program: &[u8], options: &[u8], limit: Duration) -> Result<(), TrialFailure>;
}

/// The reason why a trial compilation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrialFailure {
    /// The compiler reported an error.
    #[error("{message}")]
    Refused {
        /// Status code of the error.
        code: StatusCode,
        /// Message of the error.
        message: String,
    },
    /// The process ended without an answer.
    #[error("the compiler did not survive it: {how}")]
    Ended {
        /// Description of the end.
        how: String,
    },
    /// The time limit was exceeded, and the process was ended.
    #[error("it took too long")]
    Overdue,
    /// The process could not be started.
    #[error("no compiler could be started: {reason}")]
    NotStarted {
        /// Reason of the failure.
        reason: String,
    },
}

impl TrialFailure {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused { code, .. } => ErrorKind::of_code(*code),
            Self::Ended { .. } => ErrorKind::Faulty,
            Self::Overdue => ErrorKind::Limit,
            Self::NotStarted { .. } => ErrorKind::System,
        }
    }
}

/// The trial compiler, and the programs that have passed.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    compiler: Option<Arc<dyn TrialCompiler>>,
    passed: Mutex<Passed>,
}

impl Trials {
    pub(crate) fn new(compiler: Option<Arc<dyn TrialCompiler>>) -> Self {
        Self { compiler, passed: Mutex::default() }
    }

    /// Compiles the program in a trial, unless it has passed before. Waits until `deadline`, which
    /// is `limit` after the client's request.
    ///
    /// # Errors
    /// The inner error is the compiler's; the outer one is UNAVAILABLE if the compiler crashed,
    /// DEADLINE_EXCEEDED if it was stopped.
    pub(super) fn run(
        &self,
        program: &[u8],
        options: &[u8],
        deadline: Deadline,
    ) -> Result<Result<(), Status>, Status> {
        let Some(compiler) = &self.compiler else { return Ok(Ok(())) };
        let digest = hash(&[hash(program), hash(options)].concat());
        if self.passed().contains(&digest) {
            return Ok(Ok(()));
        }
        let left =
            deadline.at.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
        match compiler.compile(program, options, left) {
            Ok(()) => {
                self.passed().insert(digest);
                Ok(Ok(()))
            }
            Err(TrialFailure::Refused { code, message }) => Ok(Err(Status::new(code, message))),
            Err(TrialFailure::Overdue) => Err(deadline.exceeded()),
            Err(error @ TrialFailure::Ended { .. }) => {
                tracing::warn!(
                    "the compiler's process ended over a program of a client, and another takes its place: {error}"
                );
                Err(status!(
                    Unavailable,
                    "the program was not compiled: {error}; nothing else is lost, and arrays and other programs are as they were: change the program or its compile options before you send it again"
                ))
            }
            Err(error) => Err(status!(Unavailable, "the program was not compiled: {error}")),
        }
    }

    fn passed(&self) -> std::sync::MutexGuard<'_, Passed> {
        self.passed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time until which a client waits for its program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// `None` for no deadline.
    at: Option<Instant>,
    limit: Duration,
}

impl Deadline {
    /// Creates a deadline after `limit` from now.
    pub(crate) fn after(limit: Duration) -> Self {
        Self { at: Instant::now().checked_add(limit), limit }
    }

    fn exceeded(self) -> Status {
        status!(
            DeadlineExceeded,
            "the program was not compiled within the {} seconds that the limit `compilation-seconds` of this server allows, and its compiler was stopped",
            self.limit.as_secs_f64()
        )
    }
}

/// The last programs that have passed.
#[derive(Debug, Default)]
struct Passed {
    known: HashSet<Digest>,
    order: VecDeque<Digest>,
}

impl Passed {
    /// Maximum number of digests that are kept, of 64 bytes each.
    const MOST: usize = 1 << 14;

    fn contains(&self, digest: &Digest) -> bool {
        self.known.contains(digest)
    }

    fn insert(&mut self, digest: Digest) {
        if !self.known.insert(digest) {
            return;
        }
        self.order.push_back(digest);
        if self.order.len() > Self::MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A compiler that fails on request, and counts its calls.
    #[derive(Debug)]
    struct FixedOutcome(Result<(), TrialFailure>, AtomicUsize);

    impl TrialCompiler for FixedOutcome {
        fn compile(&self, _: &[u8], _: &[u8], _: Duration) -> Result<(), TrialFailure> {
            self.1.fetch_add(1, Ordering::Relaxed);
            self.0.clone()
        }
    }

    fn told(outcome: Result<(), TrialFailure>) -> (Arc<FixedOutcome>, Trials) {
        let compiler = Arc::new(FixedOutcome(outcome, AtomicUsize::new(0)));
        let trials = Trials::new(Some(Arc::clone(&compiler) as Arc<dyn TrialCompiler>));
        (compiler, trials)
    }

    fn deadline() -> Deadline {
        Deadline::after(Duration::from_secs(7))
    }

    #[test]
    fn trials_ask_once_for_a_program_that_passes() {
        let (compiler, trials) = told(Ok(()));
        for (program, options, asked) in
            [("a", "b", 1), ("a", "b", 1), ("ab", "", 2), ("a", "c", 3), ("ab", "", 3)]
        {
            let found = trials.run(program.as_bytes(), options.as_bytes(), deadline());
            assert_eq!(found, Ok(Ok(())));
            assert_eq!(compiler.1.load(Ordering::Relaxed), asked, "{program} {options}");
        }
    }

    #[test]
    fn trials_say_what_became_of_the_compiler() {
        let ended = TrialFailure::Ended { how: "signal: 11".to_owned() };
        for (failure, code, part) in [
            (ended, StatusCode::Unavailable, "signal: 11"),
            (TrialFailure::Overdue, StatusCode::DeadlineExceeded, "7 seconds"),
            (
                TrialFailure::NotStarted { reason: "no memory".to_owned() },
                StatusCode::Unavailable,
                "no memory",
            ),
        ] {
            let (compiler, trials) = told(Err(failure));
            for asked in [1, 2] {
                let error = trials.run(b"a", b"", deadline()).unwrap_err();
                assert_eq!(error.code(), code);
                assert!(error.message().contains(part), "{}", error.message());
                assert_eq!(compiler.1.load(Ordering::Relaxed), asked);
            }
        }
        let refused = TrialFailure::Refused {
            code: StatusCode::InvalidArgument,
            message: "no such type".to_owned(),
        };
        let refused = told(Err(refused)).1.run(b"a", b"", deadline()).unwrap().unwrap_err();
        assert_eq!(
            (refused.code(), refused.message()),
            (StatusCode::InvalidArgument, "no such type")
        );
    }

    #[test]
    fn passed_programs_are_bounded() {
        let mut passed = Passed::default();
        for number in 0..Passed::MOST as u64 + 5 {
            passed.insert(hash(&number.to_le_bytes()));
        }
        assert_eq!((passed.known.len(), passed.order.len()), (Passed::MOST, Passed::MOST));
        assert!(!passed.contains(&hash(&4_u64.to_le_bytes())));
        assert!(passed.contains(&hash(&5_u64.to_le_bytes())));
    }
}
