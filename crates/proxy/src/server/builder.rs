//! Configuration and construction of a server.

use std::{fmt, path::PathBuf, sync::Arc};

use serdes::stablehlo::ProgramBridge;
use serdes_device_state::Versions;

use super::{
    Server,
    access::{Acceptor, Access, Encryption, Tokens},
    arrays::{Devices, ServedDevices},
    budget::Budgets,
    context::{Compilation, Context},
    limits::Limits,
    programs::{CallRules, OptionRules, TrialCompiler, Trials},
    registry::Registry,
    state::{RestoreBudget, State, StateOptions},
};
use crate::{Handshake as _, ProxyError, Ranges};

impl Server {
    /// Returns a server over the devices of a StreamExecutor plug-in or of a PJRT client: all
    /// versions, the default limits, no encryption.
    #[must_use]
    pub fn builder(devices: impl Into<ServedDevices>) -> ServerBuilder {
        ServerBuilder {
            devices: devices.into(),
            platform: None,
            ranges: Ranges::supported(),
            limits: Limits::default(),
            encryption: Encryption::default(),
            tokens: None,
            session_tokens: false,
            transfer_directory: None,
            state: None,
            previous_states: 1,
            state_versions: None,
            program_bridge: None,
            trial_compiler: None,
            compile_options: Vec::new(),
            custom_calls: Vec::new(),
            portable_programs_only: false,
        }
    }
}

/// Makes a [`Server`].
#[derive(Clone)]
pub struct ServerBuilder {
    devices: ServedDevices,
    platform: Option<String>,
    ranges: Ranges,
    limits: Limits,
    encryption: Encryption,
    tokens: Option<Tokens>,
    session_tokens: bool,
    transfer_directory: Option<PathBuf>,
    state: Option<PathBuf>,
    previous_states: u32,
    state_versions: Option<Versions>,
    program_bridge: Option<Arc<dyn ProgramBridge>>,
    trial_compiler: Option<Arc<dyn TrialCompiler>>,
    compile_options: Vec<String>,
    custom_calls: Vec<String>,
    portable_programs_only: bool,
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("ranges", &self.ranges)
            .field("limits", &self.limits)
            .field("tls", &self.encryption.identity.is_some())
            .field("client_certificates", &self.encryption.client_authorities.is_some())
            .field("tokens", &self.tokens)
            .finish_non_exhaustive()
    }
}

impl ServerBuilder {
    /// Speaks these versions only.
    #[must_use]
    pub fn ranges(mut self, ranges: Ranges) -> Self {
        self.ranges = ranges;
        self
    }

    /// Calls the platform of the devices so, in place of what the plug-in does.
    ///
    /// JAX chooses by it how it writes programs: under `cpu` linear algebra becomes calls into the
    /// client's own LAPACK, which no plug-in has; under `tpu` it is written out, and any compiler
    /// takes it, and programs that call functions of their client are sent here, though not every
    /// plug-in takes them.
    #[must_use]
    pub fn platform_name(mut self, name: impl Into<String>) -> Self {
        self.platform = Some(name.into());
        self
    }

    /// Lets clients hold this much.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Takes encrypted connections only, with this certificate chain and key in PEM.
    #[must_use]
    pub fn tls(mut self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.encryption.identity = Some((certificate.as_ref().to_vec(), key.as_ref().to_vec()));
        self
    }

    /// Takes connections only from clients with a certificate that one of these authorities (PEM)
    /// has signed. Needs [`tls`](Self::tls).
    #[must_use]
    pub fn client_authorities(mut self, authorities: impl AsRef<[u8]>) -> Self {
        self.encryption.client_authorities = Some(authorities.as_ref().to_vec());
        self
    }

    /// Answers only calls with one of these tokens in their metadata: `authorization: Bearer
    /// TOKEN`.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Also admits, where tokens are required, sessions that give theirs in the initialization
    /// data, under `serdes.token`: the clients of jaxlib cannot send metadata. The server then
    /// gives its versions to unauthenticated clients, and the host buffers of such a session to any
    /// client at the same address that knows its id, which cannot be guessed.
    #[must_use]
    pub fn session_tokens(mut self) -> Self {
        self.session_tokens = true;
        self
    }

    /// Reads large host buffers from this directory, where clients that see it may leave them.
    /// Without it they come over the network.
    #[must_use]
    pub fn transfer_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.transfer_directory = Some(directory.into());
        self
    }

    /// Restores the arrays of the device state at `path` when the server is built, if there is one,
    /// and saves arrays into it on [`Server::save`] and when the server stops.
    ///
    /// A client that sends `serdes.state.name` in its initialization data has its arrays saved as
    /// `<name>/<handle>`, and leaves them to the server when it goes; with
    /// `serdes.state.name.<handle>` it names one array. Arrays of other clients are saved as
    /// `session-<number>/<handle>` if their session is open at that moment. What was saved once
    /// stays in the state until a client deletes it, or the client to whom its name belongs saves
    /// another array under it. Clients find what was restored in the attributes of the server.
    #[must_use]
    pub fn state(mut self, path: impl Into<PathBuf>) -> Self {
        self.state = Some(path.into());
        self
    }

    /// Keeps this many states before the last one, as `PATH.1` (the newest), `PATH.2` and so on; 1
    /// by default.
    #[must_use]
    pub fn previous_states(mut self, states: u32) -> Self {
        self.previous_states = states;
        self
    }

    /// Writes states that builds of these versions read; [`Versions::by_default`] where this is not
    /// called. An array that
    /// cannot be described at such a version is left out, and saving ends with its error.
    #[must_use]
    pub fn state_versions(mut self, versions: Versions) -> Self {
        self.state_versions = Some(versions);
        self
    }

    /// Has programs that are too new for the plug-in, and cannot be written for it here, written by
    /// `bridge`.
    #[must_use]
    pub fn program_bridge(mut self, bridge: Arc<dyn ProgramBridge>) -> Self {
        self.program_bridge = Some(bridge);
        self
    }

    /// Has programs compiled by `compiler` first, in a process of its own, so that a program which
    /// ends the compiler ends nothing else. Without it the compiler runs in this process alone, and
    /// a client can end that.
    #[must_use]
    pub fn trial_compiler(mut self, compiler: Arc<dyn TrialCompiler>) -> Self {
        self.trial_compiler = Some(compiler);
        self
    }

    /// Takes programs only as portable artifacts of StableHLO, which is what clients of JAX send, and
    /// reads the structure of each before the plug-in does: a program with a custom call to a function
    /// that was not [allowed](Self::allow_custom_call) is refused. Without this a plug-in gets
    /// whatever a client calls a program, the text of MLIR too, whose parser some texts end.
    #[must_use]
    pub fn portable_programs_only(mut self) -> Self {
        self.portable_programs_only = true;
        self
    }

    /// Takes this option of XLA's compiler from clients, whatever its value: by its name
    /// (`xla_dump_to`), or by its number in `xla.DebugOptions`. Without this a list of options and
    /// values passes that are known to do no harm, and everything else is refused by its name. May
    /// be called for several.
    #[must_use]
    pub fn allow_compile_option(mut self, name: impl Into<String>) -> Self {
        self.compile_options.push(name.into());
        self
    }

    /// Lets programs call this function of the plug-in by its name, in a custom call, besides those
    /// that no function answers to (`Sharding` and the like); a name that ends with `*` stands for
    /// all that begin so. Such a function gets whatever operands a client gives it, and not all of
    /// them look at these: one that does not may end the process. May be called for several; decides
    /// nothing without [`portable_programs_only`](Self::portable_programs_only).
    #[must_use]
    pub fn allow_custom_call(mut self, name: impl Into<String>) -> Self {
        self.custom_calls.push(name.into());
        self
    }

    /// Returns the server; it does nothing yet.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] for ranges that this build does not speak, a name that no
    /// platform has, a compile option that no client gets, the name of a custom call that none has, a certificate or a key that cannot be used, a place where no state can be
    /// written or another server has its state, and a plug-in without devices;
    /// [`ProxyError::State`] for a state that cannot be restored; [`ProxyError::Device`] if a
    /// device cannot be used.
    pub fn build(self) -> Result<Server, ProxyError> {
        let ranges = self.ranges.check_supported()?;
        if let Some(name) = &self.platform {
            check_platform(name)?;
        }
        let rules = OptionRules::new(self.compile_options)?;
        let devices = Devices::of(&self.devices)?.on_platform(self.platform);
        // Said now, not when the first client comes.
        let tls = Acceptor::new(&self.encryption)?;
        let gauges = Arc::default();
        let previous = self.previous_states;
        let versions = self.state_versions;
        let state = self.state.map(|path| {
            // Only a server with a state needs any, and the testing switch finds one that was told
            // none.
            let versions = versions.unwrap_or_else(Versions::by_default);
            StateOptions { path, previous, versions }
        });
        let limits = self.limits.resolved(devices.memory());
        let budgets = Budgets::of_all(&limits);
        let restored = RestoreBudget::new(&budgets);
        let state = State::open(state, &devices, &gauges, &restored)?;
        let trials = Trials::new(self.trial_compiler);
        let calls = CallRules::new(self.custom_calls)?;
        let portable_only = self.portable_programs_only.then_some(calls);
        let compilation = Compilation { bridge: self.program_bridge, trials, rules, portable_only };
        let context = Context::new(limits, devices, gauges, budgets, compilation);
        let access = Access::new(self.tokens, self.session_tokens);
        let (state, directory) = (Arc::new(state), self.transfer_directory);
        Ok(Server::new(Registry::new(context, ranges, access, state, directory), tls))
    }
}

/// # Errors
/// [`ProxyError::Configuration`] for what clients could not take for a name.
fn check_platform(name: &str) -> Result<(), ProxyError> {
    /// No platform has a longer one.
    const LONGEST: usize = 64;
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if (1..=LONGEST).contains(&name.len()) && name.bytes().all(is_of_name) {
        return Ok(());
    }
    let reason = "expected 1 to 64 letters, digits, `_`, `-` or `.`, such as `cpu` or `tpu`";
    Err(ProxyError::configuration(
        "the name of the platform",
        name.escape_debug().to_string(),
        reason,
    ))
}
