//! The target over programs in StableHLO.

use serdes::stablehlo::{Program, StableHloVersion};

/// Reads a program and writes it for older readers. The output must be readable, and must have only
/// what those readers know.
pub fn stablehlo_programs(input: &[u8]) {
    let Ok(program) = Program::read(input) else { return };
    assert!(program.lowest_as_it_is().is_none() || program.lowest_rewritten().is_some());
    for minor in [13, 15, 17, 19, 21] {
        let target = StableHloVersion::new(1, minor, 0);
        let Ok(written) = program.written_for(target) else { continue };
        let again = Program::read(&written).expect("what was written");
        assert_eq!(again.version(), target.min(program.version()));
        if program.version() > target {
            assert!(again.lowest_as_it_is() <= Some(target), "{:?}", again.needs());
        }
        assert_eq!(again.dialects().collect::<Vec<_>>(), program.dialects().collect::<Vec<_>>());
    }
}
