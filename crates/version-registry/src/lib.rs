//! Parses and validates a registry of dated versions (versions.toml).
