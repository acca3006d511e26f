//! The compiling process: reads programs from standard input, writes the results to standard
//! output, and ends with the server.

use std::io;

use serdes::codec::StatusCode;
use serdes_pjrt::{Client, CompileOptions, PjrtError, Program, ProgramFormat};

use super::frames::{self, Answer};
use crate::{
    arguments::ServeArguments, commands::device::open_client, failure::Failure,
    plugin_argument::PluginArgument, status::ExitStatus, terminal::Terminal,
};

/// Compiles programs until there are no more. Output of the plug-in does not mix with the results:
/// only the terminal writes to standard output.
pub(crate) fn run(
    arguments: &ServeArguments,
    terminal: &mut Terminal,
) -> Result<ExitStatus, Failure> {
    #[cfg(target_os = "linux")]
    settle();
    let client = match &PluginArgument::parse(&arguments.plugin)? {
        PluginArgument::Pjrt { path, options } => {
            open_client(path, options.clone(), arguments.layout.as_deref())?
        }
        PluginArgument::StreamExecutor(name) => {
            return Err(Failure::new(format_args!("{name} compiles no programs")));
        }
    };
    // Reports that the client exists, and the process is ready.
    terminal.raw(&frames::answer(&Ok(())))?;
    let mut programs = io::stdin().lock();
    let failed = |error: io::Error| Failure::new(format_args!("cannot read programs: {error}"));
    while let Some((program, options)) = frames::read_request(&mut programs).map_err(failed)? {
        terminal.raw(&frames::answer(&compile(&client, &program, options)))?;
    }
    Ok(ExitStatus::Success)
}

fn compile(client: &Client, program: &[u8], options: Vec<u8>) -> Answer {
    let said = |error: PjrtError| {
        let code = match &error {
            PjrtError::Status { code, .. } => code
                .canonical()
                .filter(|code| *code != StatusCode::Ok)
                .unwrap_or(StatusCode::Internal),
            PjrtError::InvalidArgument { .. } => StatusCode::InvalidArgument,
            _ => StatusCode::Internal,
        };
        (code, error.to_string())
    };
    let options = CompileOptions::of_bytes(options).map_err(said)?;
    let program = Program::new(program, ProgramFormat::Mlir);
    client.compile(&program, &options).map(drop).map_err(said)
}

/// Makes the process end with the server, and lets the system prefer it over the server when it
/// runs out of memory. Failures are harmless.
#[cfg(target_os = "linux")]
fn settle() {
    use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // A core dump would contain the server's data.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}
