//! Arguments of `negotiate`, and the versions that a side of the proxy speaks.

use std::path::PathBuf;

use clap::Args;

/// The versions that a side of the proxy speaks.
#[derive(Debug, Args)]
pub(crate) struct RangeArguments {
    /// The IFRT SerDes versions to speak, both ends included; all by default.
    #[arg(long, value_name = "MIN..MAX")]
    pub(crate) serdes: Option<String>,
    /// The proxy protocol versions to speak, both ends included; all by default.
    #[arg(long, value_name = "MIN..MAX")]
    pub(crate) protocol: Option<String>,
}

/// Arguments of `negotiate`.
#[derive(Debug, Args)]
pub(crate) struct NegotiateArguments {
    /// The server: HOST:PORT, with grpc://, http:// or, encrypted, https:// before it or nothing.
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: String,
    #[command(flatten)]
    pub(crate) ranges: RangeArguments,
    /// The certificates to trust, in PEM, for an https:// address.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// The name in the server's certificate, where it is not that of the address.
    #[arg(long, value_name = "NAME")]
    pub(crate) tls_name: Option<String>,
    /// The certificate to show to the server, in PEM, for an https:// address.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The token to send: the first one in FILE, as for `serve`.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Ask only whether the server takes new sessions, which needs no token: status 0 if it does, 1
    /// if it does not.
    #[arg(long, conflicts_with_all = ["serdes", "protocol", "token_file"])]
    pub(crate) health: bool,
}
