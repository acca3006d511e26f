fn main() -> std::process::ExitCode {
    serdes_version_registry::build("versions.toml")
}
