//! Checks for several releases of TensorFlow whether a graph may be loaded, without TensorFlow.
//!
//!     cargo run -p serdes-check --example check_before_loading [PATH]

use serdes_check::{self as check, Consumer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1);
    for release in ["2.12", "2.16", "2.21"] {
        let artifact = match &path {
            Some(path) => check::path(path)?,
            // A graph whose versions are { producer: 2474, min_consumer: 1800 }.
            None => check::bytes(vec![0x22, 6, 0x08, 0xaa, 0x13, 0x10, 0x88, 0x0e]),
        };
        let verdict = artifact.for_consumer(&Consumer::tensorflow(release)?);
        println!("TensorFlow {release}: {}", if verdict.is_acceptable() { "yes" } else { "no" });
        // Each reason has the value found, the value expected, and a remedy.
        for reason in verdict.reasons() {
            println!("    {reason}");
        }
    }
    Ok(())
}
