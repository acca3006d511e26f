//! Tests of programs that send to the host while they run, and receive from it.

use std::sync::{Arc, Mutex};

use serdes_pjrt::{
    Argument, Client, CompileOptions, ElementType, ExecuteOptions, Execution, HostArray,
    HostTransfers, PjrtError, Program, ProgramFormat, Target,
};

use super::plugins::Library;

/// Compiles and runs a program that sends and receives on each of two devices.
fn run(client: &Client, transfers: HostTransfers) -> Result<Execution, PjrtError> {
    let options = CompileOptions::new(2, 1)?;
    let program = Program::new(b"outputs 1 donates -1 talks", ProgramFormat::Mlir);
    let loaded = client.compile(&program, &options)?;
    let array = HostArray::new(ElementType::U8, &[4]);
    let mut arguments = Vec::new();
    for (at, device) in loaded.addressable_devices().iter().enumerate() {
        let data = [1, 2, 3, 4].map(|byte| byte + 10 * at as u8);
        arguments.push(vec![Argument::Given(client.put(&array, &data, Target::Device(device))?)]);
    }
    loaded.execute(arguments, &ExecuteOptions::new().with_host_transfers(transfers))
}

fn client(library: &Library) -> Client {
    library.load().unwrap().create_client(&[]).unwrap()
}

/// A piece that a program sent: the position of its device, its bytes, the size of the whole, and
/// whether it was the last.
type SentPiece = (usize, Vec<u8>, usize, bool);

/// Returns handlers that ignore received chunks, and send three.
fn quiet() -> HostTransfers {
    HostTransfers::new()
        .with_send(1, |_| Ok(()))
        .with_receive(2, |mut stream| stream.write(vec![3]).unwrap())
}

#[test]
fn program_exchanges_data_with_the_host_on_each_device() {
    for minor in [29, 81, 114] {
        let library = Library::new(minor, &["EQUAL_SIZES"]);
        let client = client(&library);
        let sent: Arc<Mutex<Vec<SentPiece>>> = Arc::default();
        let pieces = Arc::clone(&sent);
        let transfers = HostTransfers::new()
            .with_send(1, move |piece| {
                let data = piece.data().to_vec();
                let (device, total) = (piece.device_index(), piece.total_bytes());
                pieces.lock().unwrap().push((device, data, total, piece.is_last()));
                Ok(())
            })
            .with_receive(2, |mut stream| {
                assert_eq!(
                    (stream.total_bytes().unwrap(), stream.granule_bytes().unwrap()),
                    (8, 1)
                );
                stream.write(vec![5, 10]).unwrap();
                assert_eq!(stream.current_bytes().unwrap(), 2);
                stream.write(vec![stream.device_index() as u8]).unwrap();
                let error = stream.write(vec![0; 6]).unwrap_err();
                assert!(matches!(error, PjrtError::OutOfRange { size: 8, .. }), "{error}");
            });
        assert!(!transfers.is_empty() && format!("{transfers:?}").contains("sends: [1]"));
        let execution = run(&client, transfers).unwrap();
        execution.wait().unwrap();
        assert_eq!(execution.outputs()[0][0].read().unwrap(), [16, 17, 18, 19], "0.{minor}");
        assert_eq!(execution.outputs()[1][0].read().unwrap(), [27, 28, 29, 30], "0.{minor}");
        let expected = [
            (0, vec![1, 2], 4, false),
            (0, vec![3, 4], 4, true),
            (1, vec![11, 12], 4, false),
            (1, vec![13, 14], 4, true),
        ];
        assert_eq!(*sent.lock().unwrap(), expected, "0.{minor}");
        assert_eq!(library.freed_chunks(), 4);
        drop((execution, client));
        assert_eq!(library.live_objects(), 0, "0.{minor}");
        // The handlers are dropped soon after the run.
        let is_alone = || Arc::strong_count(&sent) == 1;
        let waited = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            is_alone()
        });
        assert!(waited, "0.{minor}");
    }
}

#[test]
fn host_error_for_a_piece_is_the_error_of_the_run() {
    let library = Library::new(81, &[]);
    let client = client(&library);
    let refusing = HostTransfers::new()
        .with_send(1, |piece| if piece.is_last() { Err("enough".to_owned()) } else { Ok(()) })
        .with_receive(2, drop);
    let error = run(&client, refusing).unwrap_err();
    assert!(error.to_string().contains("enough (INTERNAL)"), "{error}");
    let panicking = HostTransfers::new()
        .with_send(1, |_| panic!("a piece that was not expected"))
        .with_receive(2, drop);
    let error = run(&client, panicking).unwrap_err();
    assert!(error.to_string().contains("the host panicked"), "{error}");
    // The plug-in is told the real number of channels.
    let error = run(&client, HostTransfers::new()).unwrap_err();
    assert!(error.to_string().contains("another number of channels"), "{error}");
    drop(client);
    assert_eq!(library.live_objects(), 0);
    assert_eq!(library.freed_chunks(), 3);
}

#[test]
fn plugin_faults_in_pieces_and_streams_are_survived() {
    for (switches, part) in [
        (&["NULL_CHUNK"][..], "the plug-in sent NULL as a piece"),
        (&["CHUNK_SAID=(size_t)-1"], "the plug-in sent 18446744073709551615 bytes"),
        (&["NULL_CHUNK_DATA"], "the plug-in sent 2 bytes at 0x0"),
        (&["LATE_PIECE"], "waits for this piece no more"),
    ] {
        let library = Library::new(81, switches);
        let client = client(&library);
        let error = run(&client, quiet()).unwrap_err().to_string();
        assert!(error.contains(part), "{switches:?}: {error}");
        drop(client);
        assert_eq!(library.live_objects(), 0, "{switches:?}");
    }
    for (switches, first) in [
        (&["NULL_STREAM"][..], 1),
        // An error that cannot be created cannot be reported.
        (&["NO_ERRORS", "LATE_PIECE"], 4),
        (&["FAILING=\"PJRT_CopyToDeviceStream_GranuleSize\""], 1),
        (&["FAILING=\"PJRT_CopyToDeviceStream_TotalBytes\""], 1),
        (&["NULL_SLOT=SLOT_PJRT_CopyToDeviceStream_AddChunk"], 1),
        (&["GRANULE=2"], 1),
        (&["GRANULE=-1"], 4),
        (&["NULL_EVENTS"], 4),
        (&["NULL_COMPLETE"], 4),
    ] {
        let library = Library::new(81, switches);
        let client = client(&library);
        let written = |mut stream: serdes_pjrt::HostStream| drop(stream.write(vec![3]));
        let transfers = HostTransfers::new().with_send(1, |_| Ok(())).with_receive(2, written);
        let execution = run(&client, transfers).unwrap();
        execution.wait().unwrap();
        assert_eq!(execution.outputs()[0][0].read().unwrap()[0], first, "{switches:?}");
        drop((execution, client));
        assert_eq!(library.live_objects(), 0, "{switches:?}");
    }
}
