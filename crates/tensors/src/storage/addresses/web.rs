//! Files of the web, read by ranges.
//!
//! A server without range support sends the whole file, which is kept in a temporary file.

use std::{
    io::{self, Read},
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, Method, Response, StatusCode, Uri, header};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use object_store::client::{HttpError, HttpRequest, HttpRequestBody};
use serdes_files::{
    LONGEST_STREAM, ProgressMonitor, ReadAt, Stamp,
    object::{Driver, RangeCache, changed, header_text},
    spool,
};
use tokio::time::{sleep, timeout};

use super::{
    address::shown,
    client::{Client, room_for},
    held::Held,
};

/// Size of the first request in bytes, which mostly suffices besides the end of a file.
const FIRST: u64 = 64 << 10;
/// Maximum number of redirects.
const REDIRECTS: usize = 10;
/// Number of retries if a server is busy or a connection breaks.
const RETRIES: u32 = 3;
/// Longest time without a byte from a server.
const LONGEST_SILENCE: Duration = Duration::from_secs(60);
/// Minimum rate of a server in bytes per second, after the longest silence.
const LEAST_RATE: u64 = 1024;
/// Interval at which a wait for a body checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Maximum number of files that stay open between a look and a read.
const KEPT: usize = 16;

/// Files of the web, with those that were opened last.
#[derive(Debug)]
pub(super) struct Web {
    client: Client,
    driver: Arc<Driver>,
    monitor: ProgressMonitor,
    opened: Mutex<Vec<(Uri, Arc<dyn ReadAt>)>>,
}

impl Web {
    pub(super) fn new(driver: Arc<Driver>, monitor: ProgressMonitor) -> io::Result<Self> {
        Ok(Self { client: Client::of_web()?, driver, monitor, opened: Mutex::default() })
    }

    /// Returns the file at an address.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no file, or the server's error.
    pub(super) fn open(&self, uri: &Uri) -> io::Result<Arc<dyn ReadAt>> {
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, file)) = opened().iter().find(|(known, _)| known == uri) {
            return Ok(Arc::clone(file));
        }
        let file = self.open_anew(uri)?;
        let mut opened = opened();
        if opened.len() == KEPT {
            opened.remove(0);
        }
        opened.push((uri.clone(), Arc::clone(&file)));
        Ok(file)
    }

    /// Clears the cache: later opens request the current files.
    pub(super) fn forget(&self) {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn open_anew(&self, uri: &Uri) -> io::Result<Arc<dyn ReadAt>> {
        let (client, asked) = (self.client.clone(), uri.clone());
        let first = self.driver.run_io(async move { first(&client, asked).await })?;
        match first {
            First::Part { uri, size, held, head } => {
                let remote = Remote { client: self.client.clone(), uri, size, held };
                let file = WebFile { driver: Arc::clone(&self.driver), remote, head };
                Ok(Arc::new(RangeCache::new(file)?))
            }
            First::Whole(body) => {
                let (send, receive) = sync_channel(4);
                self.driver.spawn(pass_on(body, send));
                let stream =
                    Arriving { receive, rest: Bytes::new(), monitor: self.monitor.clone() };
                spool(stream, LONGEST_STREAM)?.ok_or_else(|| {
                    io::Error::new(io::ErrorKind::FileTooLarge, "the file is longer than 64 GiB")
                })
            }
        }
    }
}

/// Result of the first request.
enum First {
    /// A part of the file: the server supports ranges.
    Part {
        /// Address of the file after redirects.
        uri: Uri,
        size: u64,
        held: Held,
        head: Bytes,
    },
    /// The whole file.
    Whole(Incoming),
}

async fn first(client: &Client, uri: Uri) -> io::Result<First> {
    let (uri, answer) = get(client, uri, &(0..FIRST), &Held::default()).await?;
    let headers = answer.headers();
    check_encoding(headers)?;
    match answer.status() {
        StatusCode::PARTIAL_CONTENT => {
            let Some((0, size)) = part_of(headers) else {
                return Err(io::Error::other("the server answered another range than was asked"));
            };
            let held = Held::of(headers);
            let head = body_of(answer, FIRST).await?;
            if head.len() as u64 != size.min(FIRST) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(First::Part { uri, size, held, head })
        }
        // The range is empty: the file has no bytes.
        StatusCode::RANGE_NOT_SATISFIABLE => {
            Ok(First::Part { uri, size: 0, held: Held::default(), head: Bytes::new() })
        }
        StatusCode::OK => Ok(First::Whole(answer.into_body())),
        status => Err(refused(status)),
    }
}

/// Returns an error for encoded bytes, although only the plain ones were requested.
fn check_encoding(headers: &HeaderMap) -> io::Result<()> {
    let encodings = headers.get_all(header::CONTENT_ENCODING);
    match encodings.iter().find(|found| !found.as_bytes().eq_ignore_ascii_case(b"identity")) {
        None => Ok(()),
        Some(found) => {
            let found =
                String::from_utf8_lossy(found.as_bytes()).chars().take(40).collect::<String>();
            Err(io::Error::other(format!(
                "the server sends the file compressed ({}), and was asked for it as it is; load it down and name the file",
                found.escape_debug()
            )))
        }
    }
}

/// Parses `bytes 0-65535/123456`: the begin of a part, and the length of the file.
fn part_of(headers: &HeaderMap) -> Option<(u64, u64)> {
    let text = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (begin, _) = range.split_once('-')?;
    Some((begin.trim().parse().ok()?, size.trim().parse().ok()?))
}

fn refused(status: StatusCode) -> io::Error {
    let kind = match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => io::ErrorKind::NotFound,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => io::ErrorKind::PermissionDenied,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, format!("the server answered {status}"))
}

/// Requests a range, following redirects.
async fn get(
    client: &Client,
    mut uri: Uri,
    range: &Range<u64>,
    held: &Held,
) -> io::Result<(Uri, Response<Incoming>)> {
    for _ in 0..=REDIRECTS {
        let answer = get_from(client, &uri, range, held).await?;
        if !answer.status().is_redirection() {
            return Ok((uri, answer));
        }
        let location = answer.headers().get(header::LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        let next = location
            .and_then(|location| joined(&uri, location))
            .ok_or_else(|| io::Error::other("the server sends on to an address that is none"))?;
        if uri.scheme_str() == Some("https") && next.scheme_str() != Some("https") {
            return Err(io::Error::other("the server sends on to an address without encryption"));
        }
        uri = next;
    }
    Err(io::Error::other(format!("the server sends on more than {REDIRECTS} times")))
}

/// Resolves the address of a `Location` header.
fn joined(base: &Uri, location: &str) -> Option<Uri> {
    let location = location.split('#').next()?;
    let (scheme, host) = (base.scheme_str()?, base.authority()?);
    // A query may contain another address.
    let way = location.split(['?', '/']).next()?;
    let text = if way.ends_with(':') && location.contains("://") {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{scheme}://{host}{location}")
    } else if location.starts_with('?') {
        format!("{scheme}://{host}{}{location}", base.path())
    } else {
        let (folder, _) = base.path().rsplit_once('/')?;
        format!("{scheme}://{host}{folder}/{location}")
    };
    let uri: Uri = text.parse().ok()?;
    let is_of_web = matches!(uri.scheme_str(), Some("http" | "https"));
    (is_of_web && uri.authority().is_some()).then_some(uri)
}

async fn get_from(
    client: &Client,
    uri: &Uri,
    range: &Range<u64>,
    held: &Held,
) -> io::Result<Response<Incoming>> {
    let mut attempt = 0;
    loop {
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = uri.clone();
        let headers = request.headers_mut();
        let bytes = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
        headers.insert(header::RANGE, bytes.parse().map_err(io::Error::other)?);
        // Compressed bytes differ from those of the file.
        headers.insert(header::ACCEPT_ENCODING, header::HeaderValue::from_static("identity"));
        let agent = concat!("serdes/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, header::HeaderValue::from_static(agent));
        headers.extend(held.condition());
        let answer = timeout(LONGEST_SILENCE, client.send(request)).await;
        let answer = answer.map_err(|_| silent())?;
        let is_last = attempt == RETRIES;
        match answer {
            Ok(answer) if !is_busy(answer.status()) || is_last => return Ok(answer),
            Err(error) if is_last => return Err(failed(uri, &error)),
            _ => {}
        }
        sleep(Duration::from_millis(200 << attempt)).await;
        attempt += 1;
    }
}

fn is_busy(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

fn silent() -> io::Error {
    let reason = format!("the server sent nothing for {} seconds", LONGEST_SILENCE.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, reason)
}

fn failed(uri: &Uri, error: &HttpError) -> io::Error {
    let cause = std::error::Error::source(error).map_or_else(String::new, ToString::to_string);
    io::Error::other(format!("no answer from {}: {cause}", shown(uri)))
}

/// Reads the body of an answer, up to a maximum number of bytes.
async fn body_of(answer: Response<Incoming>, most: u64) -> io::Result<Bytes> {
    let mut arriving = Body::new(answer.into_body());
    let mut bytes = BytesMut::with_capacity(room_for(arriving.body.size_hint().exact(), most));
    while let Some(part) = arriving.next().await? {
        if (bytes.len() as u64).saturating_add(part.len() as u64) > most {
            return Err(io::Error::other("the server sent more than it was asked for"));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes.freeze())
}

/// A body with a minimum rate: reading fails if a server sends only a byte now and then.
struct Body {
    body: Incoming,
    bytes: u64,
    /// Time spent waiting.
    waited: Duration,
}

impl Body {
    const fn new(body: Incoming) -> Self {
        Self { body, bytes: 0, waited: Duration::ZERO }
    }

    /// Reads the next bytes; `None` at the end.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let begin = Instant::now();
        let frame = timeout(LONGEST_SILENCE, self.body.frame()).await.map_err(|_| silent())?;
        self.waited += begin.elapsed();
        let part = match frame {
            None => return Ok(None),
            Some(frame) => frame.map_err(io::Error::other)?.into_data().unwrap_or_default(),
        };
        self.bytes = self.bytes.saturating_add(part.len() as u64);
        if self.waited > longest_wait(self.bytes) {
            let reason = format!("the server sends less than {LEAST_RATE} bytes a second");
            return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
        }
        Ok(Some(part))
    }
}

/// Returns the longest time for `bytes` bytes to arrive.
const fn longest_wait(bytes: u64) -> Duration {
    LONGEST_SILENCE.saturating_add(Duration::from_secs(bytes / LEAST_RATE))
}

/// Forwards the body of an answer as it arrives.
async fn pass_on(body: Incoming, to: SyncSender<io::Result<Bytes>>) {
    let mut body = Body::new(body);
    loop {
        let Some(part) = body.next().await.transpose() else { return };
        let is_last = part.is_err();
        // The reader is limited by its disk; if it stops reading, the rest is not needed.
        let mut part = Some(part);
        while let Some(waiting) = part.take() {
            match to.try_send(waiting) {
                Ok(()) => {}
                Err(std::sync::mpsc::TrySendError::Full(waiting)) => {
                    part = Some(waiting);
                    sleep(Duration::from_millis(2)).await;
                }
                Err(std::sync::mpsc::TrySendError::Disconnected(_)) => return,
            }
        }
        if is_last {
            return;
        }
    }
}

/// Reader of a body that is arriving.
struct Arriving {
    receive: Receiver<io::Result<Bytes>>,
    rest: Bytes,
    monitor: ProgressMonitor,
}

impl Read for Arriving {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            self.monitor.check().map_err(io::Error::other)?;
            match self.receive.recv_timeout(LOOK_EVERY) {
                Ok(part) => self.rest = part?,
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let count = self.rest.len().min(buffer.len());
        if let Some(buffer) = buffer.get_mut(..count) {
            self.rest.copy_to_slice(buffer);
        }
        Ok(count)
    }
}

/// A file on a server, with the properties that later answers must have.
#[derive(Clone)]
struct Remote {
    client: Client,
    uri: Uri,
    size: u64,
    held: Held,
}

impl Remote {
    async fn read(self, range: Range<u64>) -> io::Result<Bytes> {
        let length = range.end - range.start;
        let (_, answer) = get(&self.client, self.uri, &range, &self.held).await?;
        let part = format!("bytes {}-{}", range.start, range.end.saturating_sub(1));
        let expected = || format!("{part} of {}, {}", self.size, self.held);
        match answer.status() {
            StatusCode::PARTIAL_CONTENT => {}
            status @ (StatusCode::OK
            | StatusCode::PRECONDITION_FAILED
            | StatusCode::RANGE_NOT_SATISFIABLE
            | StatusCode::NOT_FOUND
            | StatusCode::GONE) => {
                let found = format!("{status}, {}", Held::of(answer.headers()));
                return Err(changed(found, expected()));
            }
            status => return Err(refused(status)),
        }
        if part_of(answer.headers()) != Some((range.start, self.size)) {
            let found = answer.headers().get(header::CONTENT_RANGE);
            let found = header_text("Content-Range", found.map(header::HeaderValue::as_bytes));
            return Err(changed(found, expected()));
        }
        self.held.check(answer.headers())?;
        check_encoding(answer.headers())?;
        let body = body_of(answer, length).await?;
        if body.len() as u64 == length {
            Ok(body)
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

/// A file that is read by ranges.
struct WebFile {
    driver: Arc<Driver>,
    remote: Remote,
    /// Beginning of the file.
    head: Bytes,
}

impl ReadAt for WebFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.remote.size)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = offset.saturating_add(buffer.len() as u64).min(self.remote.size);
        if end <= offset {
            return Ok(0);
        }
        if offset < self.head.len() as u64 {
            return self.head.as_ref().read_at(buffer, offset);
        }
        let bytes = self.driver.run_io(self.remote.clone().read(offset..end))?;
        bytes.as_ref().read_at(buffer, 0)
    }

    fn begin_read(&self, range: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
        if range.is_empty() || range.end > self.remote.size {
            return None;
        }
        Some(self.driver.start_io(self.remote.clone().read(range)))
    }

    fn answers_late(&self) -> bool {
        true
    }

    fn stamp(&self) -> Option<Stamp> {
        Some(Stamp::new(format!("{} {}", self.remote.held, self.remote.size)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_is_an_address_from_the_one_that_was_asked() {
        let base: Uri = "https://host:8443/a/b?c".parse().unwrap();
        let to = |location| joined(&base, location).map(|uri| uri.to_string());
        assert_eq!(to("https://other/x?y#z").as_deref(), Some("https://other/x?y"));
        assert_eq!(to("//other/x").as_deref(), Some("https://other/x"));
        assert_eq!(to("/x").as_deref(), Some("https://host:8443/x"));
        assert_eq!(to("x").as_deref(), Some("https://host:8443/a/x"));
        assert_eq!(to("?d").as_deref(), Some("https://host:8443/a/b?d"));
        // An address may stand in the query of another one.
        let next = "/login?next=https://other/x";
        assert_eq!(to(next).as_deref(), Some("https://host:8443/login?next=https://other/x"));
        assert_eq!(to("x?next=https://y").as_deref(), Some("https://host:8443/a/x?next=https://y"));
        assert_eq!(to("file:///etc/passwd"), None);
        assert_eq!(to("ftp://host/x"), None);
    }
}
