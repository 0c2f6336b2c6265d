//! HTTP for the control socket and the metrics: one thread each, asleep until a client connects, with bounds for
//! everything that a client sends. One connection carries one request. Knows no route. Another server of HTTP on this machine
//! is built of the same parts.

use std::{
    collections::HashMap,
    convert::Infallible,
    hash::Hash,
    io,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    thread::JoinHandle,
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONNECTION, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    runtime::Runtime,
    sync::oneshot,
};

/// Bytes of a request's head.
const MAX_HEAD: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
/// After an accept that failed for lack of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(200);
/// Requests that are still carried out at the end have this time.
const LAST: Duration = Duration::from_secs(5);

/// A thread that serves until this is dropped.
#[derive(Debug)]
pub struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Runs a future, mostly [`accept`], in a thread that `spawn` starts.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(
        runtime: Runtime,
        serving: impl Future<Output = ()> + Send + 'static,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<JoinHandle<()>>,
    ) -> io::Result<Server> {
        let (stop, stopped) = oneshot::channel();
        let body = move || {
            runtime.block_on(async move {
                tokio::spawn(serving);
                // an error means that the server was dropped, which is as good
                let _ = stopped.await;
            });
            runtime.shutdown_timeout(LAST);
        };
        Ok(Server { stop: Some(stop), thread: Some(spawn(Box::new(body))?) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a thread that panicked has ended as well
        }
    }
}

/// Where clients connect.
pub trait Listen {
    /// A connection.
    type Stream: Stream;
    /// The next one.
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Self::Stream>>;
}

impl Listen for UnixListener {
    type Stream = UnixStream;
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<UnixStream>> {
        UnixListener::poll_accept(self, context).map_ok(|(stream, _)| stream)
    }
}

impl Listen for TcpListener {
    type Stream = TcpStream;
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        TcpListener::poll_accept(self, context).map_ok(|(stream, _)| stream)
    }
}

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Writes what needs no waiting.
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize>;
}

impl Stream for UnixStream {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        UnixStream::try_write(self, bytes)
    }
}

impl Stream for TcpStream {
    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        TcpStream::try_write(self, bytes)
    }
}

/// Hands on connections as they come.
pub async fn accept<L: Listen>(listener: L, mut connected: impl FnMut(L::Stream)) {
    loop {
        match std::future::poll_fn(|context| listener.poll_accept(context)).await {
            Ok(stream) => connected(stream),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// How long a client may take.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Until the request's head has come.
    pub head: Duration,
    /// Until the connection is over.
    pub whole: Duration,
}

/// Serves one request. True unless the client broke a bound or the protocol.
pub async fn serve<F: Future<Output = Response<Full<Bytes>>>>(
    stream: impl Stream,
    times: Times,
    respond: impl Fn(Request<Incoming>) -> F,
) -> bool {
    let respond = |request| {
        let response = respond(request);
        async move { Ok::<_, Infallible>(response.await) }
    };
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(times.head)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service_fn(respond));
    matches!(tokio::time::timeout(times.whole, served).await, Ok(Ok(())))
}

/// An answer, after which the connection is closed.
pub fn response(status: u16, content: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Refuses a connection, if that needs no waiting.
pub fn reject(stream: &impl Stream, content: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {content}\r\nretry-after: 1\r\nconnection: close\r\n"
    );
    let _ = stream.try_write(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).as_bytes());
}

/// Open connections by client, so that one client can't take them all.
#[derive(Debug)]
pub struct Slots<C>(Mutex<HashMap<C, usize>>);

/// A connection that is counted as long as this lives.
#[derive(Debug)]
pub struct Slot<C: Eq + Hash + Copy> {
    slots: Arc<Slots<C>>,
    /// Whose it is.
    pub client: C,
}

impl<C> Default for Slots<C> {
    fn default() -> Slots<C> {
        Slots(Mutex::default())
    }
}

impl<C: Eq + Hash + Copy> Slots<C> {
    /// A slot, if `is_free` says so of the client's own connections and of all.
    pub fn take(slots: &Arc<Slots<C>>, client: C, is_free: impl Fn(usize, usize) -> bool) -> Option<Slot<C>> {
        let mut taken = slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.get(&client).copied().unwrap_or(0);
        is_free(own, taken.values().sum()).then(|| {
            *taken.entry(client).or_default() += 1;
            Slot { slots: Arc::clone(slots), client }
        })
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

impl<C: Eq + Hash + Copy> Drop for Slot<C> {
    fn drop(&mut self) {
        let mut taken = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.client);
            }
        }
    }
}
