//! Writes a program in StableHLO for a reader of an older version:
//! `program_for_reader 1.13.3 program.mlirbc older.mlirbc`.

use std::{env, error::Error, fs};

use serdes::stablehlo::{Program, StableHloVersion};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [version, from, to] = arguments.as_slice() else {
        return Err("expected: VERSION PROGRAM OUTPUT, such as 1.13.3 new.mlirbc old.mlirbc".into());
    };
    let reader: StableHloVersion = version.parse()?;
    let bytes = fs::read(from)?;
    let program = Program::read(&bytes)?;
    println!("a program of StableHLO {}", program.version());
    for need in program.needs() {
        let way = if need.is_rewritable() { "can be said in an older way" } else { "stays" };
        println!("  {need}: {way}");
    }
    if let Some(lowest) = program.lowest_as_it_is() {
        println!("read as it is by {lowest} and later");
    }
    fs::write(to, program.written_for(reader)?)?;
    Ok(())
}
