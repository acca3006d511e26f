//! A compiled program, with the trait of the SDK that runs it.

use serdes_plugin::{
    Result,
    pjrt::{self, Launch, Shape},
};

use crate::{Buffer, array::Array, compile::Module, interpret};

pub struct Executable {
    /// The program as the framework wrote it, from which it can be compiled again.
    code: Vec<u8>,
    module: Module,
    parameters: Vec<Shape>,
    outputs: Vec<Shape>,
    fingerprint: String,
}

impl Executable {
    pub fn new(code: &[u8]) -> Result<Self> {
        let module = Module::compile(code)?;
        let shapes = |types: &[crate::array::Type]| -> Result<Vec<Shape>> {
            types.iter().map(|of| of.shape()).collect()
        };
        Ok(Self {
            parameters: shapes(&module.main().parameters)?,
            outputs: shapes(&module.main().outputs)?,
            fingerprint: fingerprint(code),
            code: code.to_vec(),
            module,
        })
    }
}

/// Returns the 64-bit FNV-1a hash of bytes.
fn fingerprint(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

impl pjrt::Executable<Buffer> for Executable {
    fn name(&self) -> &str {
        &self.module.name
    }
    fn parameters(&self) -> &[Shape] {
        &self.parameters
    }
    fn outputs(&self) -> &[Shape] {
        &self.outputs
    }
    fn fingerprint(&self) -> Option<&str> {
        Some(&self.fingerprint)
    }
    fn memory_stats(&self) -> pjrt::ExecutableStats {
        let temporary = self.module.main().elements.saturating_mul(size_of::<f64>()) as u64;
        pjrt::ExecutableStats { code: self.code.len() as u64, temporary }
    }
    fn serialize(&self) -> Result<Vec<u8>> {
        Ok(self.code.clone())
    }

    /// Runs the program. A driver would start a kernel here and wait for it. This runs on a thread
    /// of the device, so the framework continues meanwhile.
    fn execute(&self, launch: &Launch<'_, Buffer>) -> Result<()> {
        let parameters = self.module.main().parameters.iter();
        let arguments = parameters
            .zip(launch.arguments)
            .map(|(of, buffer)| Array::read(of, &buffer.bytes()))
            .collect::<Result<Vec<_>>>()?;
        let results = interpret::run(&self.module, arguments)?;
        for (result, buffer) in results.iter().zip(launch.outputs) {
            result.write(&mut buffer.bytes());
        }
        Ok(())
    }
}
