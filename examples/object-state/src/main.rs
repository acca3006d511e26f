//! Saves a state into a bucket of S3, from one process or several, and reads it back.
//!
//! ```text
//! object-state save BUCKET NAME FILE                      the bytes of FILE, as one object
//! object-state put-part BUCKET NAME SAVE N COUNT FILE     process N of COUNT contributes FILE
//! object-state merge BUCKET NAME SAVE                     makes a state of the parts
//! object-state get BUCKET NAME TENSOR FILE                writes a tensor of the state to FILE
//! object-state list BUCKET NAME                           the tensors, and the parts if there are
//! ```
//!
//! SAVE is 32 hexadecimal digits: the same in all processes, different for every attempt.
//! Credentials, region and endpoint come from the environment: AWS_ACCESS_KEY_ID,
//! AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT, AWS_ALLOW_HTTP. A file is saved as the tensor
//! `data`, the file of process N as `data-N`.

use std::{
    env,
    error::Error,
    fs::File,
    io::{self, Write as _},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use object_store::{ObjectStore, RetryConfig, aws::AmazonS3Builder, path::Path};
use serdes_device_state::{ObjectParts, Part, Reader, SaveId, Versions, ProgressMonitor, WriteOptions, Writer, merge_in};
use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};

type Outcome = Result<(), Box<dyn Error>>;

fn bucket(name: &str) -> Result<Arc<dyn ObjectStore>, Box<dyn Error>> {
    // A person waits for the command, so retries end after ten seconds.
    let retry = RetryConfig { retry_timeout: Duration::from_secs(10), ..RetryConfig::default() };
    let store = AmazonS3Builder::from_env().with_bucket_name(name).with_retry(retry).build()?;
    Ok(Arc::new(store))
}

fn options() -> WriteOptions {
    WriteOptions::new(Versions::week_4_old())
}

fn add_file(writer: &mut Writer, name: &str, path: &str) -> Outcome {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let shape = Shape::new([i64::try_from(bytes)?])?;
    let spec = ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)));
    writer.add_reader(name, &spec, &mut file, bytes)?;
    Ok(())
}

fn run(arguments: &[&str]) -> Outcome {
    match *arguments {
        ["save", bucket_name, name, file] => {
            let mut writer = options().create_object(bucket(bucket_name)?, &Path::from(name))?;
            add_file(&mut writer, "data", file)?;
            let written = writer.finish()?;
            println!("{} bytes", written.file_bytes);
        }
        ["put-part", bucket_name, name, save, number, count, file] => {
            let parts = ObjectParts::new(bucket(bucket_name)?, Path::from(name))?;
            let part = Part::new(save.parse::<SaveId>()?, number.parse()?, count.parse()?)?;
            let mut writer = options().create_part_in(&parts, part)?;
            add_file(&mut writer, &format!("data-{number}"), file)?;
            // For the test that stops a process before it has finished.
            println!("written");
            io::stdout().flush()?;
            if env::var_os("OBJECT_STATE_WAIT").is_some() {
                io::stdin().read_line(&mut String::new())?;
            }
            writer.finish()?;
        }
        ["merge", bucket_name, name, save] => {
            // Only one job saves this state, so parts of other attempts can be deleted at once.
            let parts = ObjectParts::new(bucket(bucket_name)?, Path::from(name))?
                .with_leftover_age(Duration::ZERO);
            let merged = merge_in(Arc::new(parts), save.parse()?, &options())?;
            println!("{} parts, {} bytes", merged.parts, merged.bytes);
        }
        ["get", bucket_name, name, tensor, file] => {
            let state = Reader::open_object(bucket(bucket_name)?, &Path::from(name))?;
            io::copy(&mut state.tensor(tensor)?.read()?, &mut File::create(file)?)?;
        }
        ["list", bucket_name, name] => {
            let state = Reader::open_object(bucket(bucket_name)?, &Path::from(name))?;
            let damaged = state.verify(&ProgressMonitor::new())?;
            println!("{} parts, {} damaged", state.parts(), damaged.len());
            state.names().for_each(|name| println!("{name}"));
        }
        _ => return Err("expected save, put-part, merge, get or list and their arguments".into()),
    }
    Ok(())
}

fn main() -> ExitCode {
    // The error for a provider that was already installed cannot occur: nothing else installs one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
