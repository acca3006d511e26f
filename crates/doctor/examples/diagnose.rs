//! Prints what does not fit in the environments that are named.
//!
//! `cargo run -p serdes-doctor --example diagnose -- .venv uv.lock`

use std::{env, error::Error};

use serdes_doctor::{Environment, TablesOnly, diagnose};

fn main() -> Result<(), Box<dyn Error>> {
    for path in env::args_os().skip(1) {
        for environment in Environment::read(path)? {
            println!("{}", diagnose(&environment, &TablesOnly));
        }
    }
    Ok(())
}
