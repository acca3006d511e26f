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
    /// Creates a builder of a server for the devices of a StreamExecutor plug-in or a PJRT client:
    /// with all versions, default limits and no encryption.
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

/// Builder of a [`Server`].
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
    /// Sets the versions to offer.
    #[must_use]
    pub fn ranges(mut self, ranges: Ranges) -> Self {
        self.ranges = ranges;
        self
    }

    /// Sets the name of the platform that clients see, instead of the plug-in's.
    ///
    /// JAX chooses by the name how it writes programs: under `cpu` linear algebra becomes calls
    /// into the client's own LAPACK, which plug-ins do not have; under `tpu` it is written out, and
    /// any compiler accepts it, and programs that call functions of their client are sent here,
    /// though not every plug-in accepts them.
    #[must_use]
    pub fn platform_name(mut self, name: impl Into<String>) -> Self {
        self.platform = Some(name.into());
        self
    }

    /// Sets the limits on resources of clients.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Accepts only encrypted connections, with this certificate chain and key in PEM.
    #[must_use]
    pub fn tls(mut self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.encryption.identity = Some((certificate.as_ref().to_vec(), key.as_ref().to_vec()));
        self
    }

    /// Accepts only clients with a certificate that one of these authorities (PEM) has signed.
    /// Requires [`tls`](Self::tls).
    #[must_use]
    pub fn client_authorities(mut self, authorities: impl AsRef<[u8]>) -> Self {
        self.encryption.client_authorities = Some(authorities.as_ref().to_vec());
        self
    }

    /// Requires one of these tokens in the metadata of each call: `authorization: Bearer TOKEN`.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Also admits, where tokens are required, sessions with a token in the initialization data,
    /// under `serdes.token`: the clients of jaxlib cannot send metadata. The server then gives its
    /// versions to unauthenticated clients, and the host buffers of such a session to any client at
    /// the same address that knows its id, which cannot be guessed.
    #[must_use]
    pub fn session_tokens(mut self) -> Self {
        self.session_tokens = true;
        self
    }

    /// Sets a directory from which large host buffers are read, where clients with access may leave
    /// them. Without it they come over the network.
    #[must_use]
    pub fn transfer_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.transfer_directory = Some(directory.into());
        self
    }

    /// Sets the path of a device state: its arrays are restored when the server is built, if it
    /// exists, and arrays are saved to it on [`Server::save`] and when the server stops.
    ///
    /// A client that sends `serdes.state.name` in its initialization data has its arrays saved as
    /// `<name>/<handle>`, and leaves them to the server when it disconnects; with
    /// `serdes.state.name.<handle>` it names one array. Arrays of other clients are saved as
    /// `session-<number>/<handle>` if their session is open at that moment. A saved array stays in
    /// the state until a client deletes it, or the client that owns its name saves another array
    /// under it. Clients find restored arrays in the server's attributes.
    #[must_use]
    pub fn state(mut self, path: impl Into<PathBuf>) -> Self {
        self.state = Some(path.into());
        self
    }

    /// Sets how many earlier states to keep, as `PATH.1` (the newest), `PATH.2` and so on; 1 by
    /// default.
    #[must_use]
    pub fn previous_states(mut self, states: u32) -> Self {
        self.previous_states = states;
        self
    }

    /// Sets the versions of the builds that must be able to read the state;
    /// [`Versions::by_default`] if not called. An array that cannot be described at such a version
    /// is left out, and saving returns its error.
    #[must_use]
    pub fn state_versions(mut self, versions: Versions) -> Self {
        self.state_versions = Some(versions);
        self
    }

    /// Sets the `bridge` that rewrites programs that are too new for the plug-in and that the
    /// server cannot rewrite itself.
    #[must_use]
    pub fn program_bridge(mut self, bridge: Arc<dyn ProgramBridge>) -> Self {
        self.program_bridge = Some(bridge);
        self
    }

    /// Sets a `compiler` that compiles programs first, in a process of its own, so that a program
    /// that crashes the compiler affects nothing else. Without it the compiler runs only in this
    /// process, and a client can crash it.
    #[must_use]
    pub fn trial_compiler(mut self, compiler: Arc<dyn TrialCompiler>) -> Self {
        self.trial_compiler = Some(compiler);
        self
    }

    /// Accepts only portable artifacts of StableHLO, which clients of JAX send, and reads the
    /// structure of each before the plug-in does: a program with a custom call to a function that
    /// was not [allowed](Self::allow_custom_call) is refused. Without this a plug-in gets any
    /// program that a client sends, including MLIR text, which can crash its parser.
    #[must_use]
    pub fn portable_programs_only(mut self) -> Self {
        self.portable_programs_only = true;
        self
    }

    /// Accepts this option of XLA's compiler from clients with any value: by its name
    /// (`xla_dump_to`), or by its number in `xla.DebugOptions`. Without this only a list of options
    /// and values known to be harmless is accepted, and everything else is refused by its name. May
    /// be called for several options.
    #[must_use]
    pub fn allow_compile_option(mut self, name: impl Into<String>) -> Self {
        self.compile_options.push(name.into());
        self
    }

    /// Lets programs call this function of the plug-in in a custom call, in addition to names
    /// without a function (such as `Sharding`); a name that ends with `*` matches all names with
    /// that prefix. The function gets any operands that a client passes; if it does not check them,
    /// it may crash the process. May be called for several functions; has no effect without
    /// [`portable_programs_only`](Self::portable_programs_only).
    #[must_use]
    pub fn allow_custom_call(mut self, name: impl Into<String>) -> Self {
        self.custom_calls.push(name.into());
        self
    }

    /// Builds the server, which does not serve yet.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] for ranges that this build does not support, an invalid
    /// platform name, a compile option that is never permitted, an invalid name of a custom call, a
    /// certificate or a key that cannot be used, a path where no state can be written or another
    /// server has its state, and a plug-in without devices; [`ProxyError::State`] for a state that
    /// cannot be restored; [`ProxyError::Device`] if a device cannot be used.
    pub fn build(self) -> Result<Server, ProxyError> {
        let ranges = self.ranges.check_supported()?;
        if let Some(name) = &self.platform {
            check_platform(name)?;
        }
        let rules = OptionRules::new(self.compile_options)?;
        let devices = Devices::of(&self.devices)?.on_platform(self.platform);
        // Report errors now, not when the first client connects.
        let tls = Acceptor::new(&self.encryption)?;
        let gauges = Arc::default();
        let previous = self.previous_states;
        let versions = self.state_versions;
        let state = self.state.map(|path| {
            // Only a server with a state needs versions, and the testing switch detects servers
            // without them.
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
/// [`ProxyError::Configuration`] for a name that clients cannot accept.
fn check_platform(name: &str) -> Result<(), ProxyError> {
    /// Maximum length of a platform name.
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
