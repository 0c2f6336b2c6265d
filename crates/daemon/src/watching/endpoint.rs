//! `/metrics` over HTTP, for who reaches the address. One thread, asleep until somebody comes; every size, time and number
//! is limited. Makes no text itself.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, mpsc::Sender},
    thread::JoinHandle,
    time::Duration,
};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{ACCEPT, ALLOW, CONNECTION, CONTENT_TYPE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
};
use tracing::info;
use watch::metrics::Format;

use super::{collector::Ask, thread, told::Told};

/// Connections at once.
const CONNECTIONS: usize = 16;
/// A request's head has come, or the connection is closed.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// The connection is over.
const WHOLE_TIME: Duration = Duration::from_secs(30);
/// Bytes of a request's head.
const HEAD: usize = 16 << 10;
/// After an accept that failed for want of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(200);

const PATH: &str = "/metrics";

/// An address that is served until this is dropped.
pub(super) struct Endpoint {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Serves an address; where that is taken, it is tried `again` after that time.
pub(super) fn serve(address: SocketAddr, asks: Sender<Ask>, again: Duration) -> std::io::Result<Endpoint> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (stop, stopped) = oneshot::channel();
    let serving = move || {
        runtime.block_on(async move {
            tokio::spawn(listen(address, asks, again));
            // an error means that the handle is gone, which is as good
            let _ = stopped.await;
        });
    };
    let thread = thread("metrics-http", serving)?;
    Ok(Endpoint { stop: Some(stop), thread: Some(thread) })
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // one that panicked has ended as well
        }
    }
}

async fn listen(address: SocketAddr, asks: Sender<Ask>, again: Duration) {
    let mut told = Told::new("metrics are not served", "metrics are served again");
    let listener = loop {
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(error) => told.fail(format!("{address}: {error}")),
        }
        tokio::time::sleep(again).await;
    };
    told.well();
    info!("metrics are at http://{}{PATH}", listener.local_addr().unwrap_or(address));
    let seats = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => match seats.clone().try_acquire_owned() {
                Ok(seat) => drop(tokio::spawn(connection(stream, asks.clone(), seat))),
                Err(_) => turn_away(&stream),
            },
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Says so if that needs no waiting, and closes.
fn turn_away(stream: &TcpStream) {
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
}

async fn connection(stream: TcpStream, asks: Sender<Ask>, _seat: OwnedSemaphorePermit) {
    let respond = |request: Request<Incoming>| {
        let asks = asks.clone();
        async move { Ok::<_, Infallible>(response(&request, &asks).await) }
    };
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD)
        .max_headers(64)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service_fn(respond));
    // who is slow or speaks otherwise is let go
    let _ = tokio::time::timeout(WHOLE_TIME, served).await;
}

async fn response(request: &Request<Incoming>, asks: &Sender<Ask>) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return told(StatusCode::NOT_FOUND, "metrics are at /metrics\n");
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut response = told(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        response.headers_mut().insert(ALLOW, hyper::header::HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let accept: Vec<&str> =
        request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let format = Format::accepted(&accept.join(","));
    let (answer, answered) = oneshot::channel();
    if asks.send(Ask { format, answer }).is_err() {
        return told(StatusCode::SERVICE_UNAVAILABLE, "the daemon ends\n");
    }
    match answered.await {
        Ok(text) => whole(StatusCode::OK, format.content_type(), Bytes::copy_from_slice(text.as_bytes())),
        Err(_) => told(StatusCode::SERVICE_UNAVAILABLE, "the daemon ends\n"),
    }
}

fn told(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    whole(status, "text/plain; charset=utf-8", Bytes::from_static(text.as_bytes()))
}

fn whole(status: StatusCode, content: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content));
    headers.insert(CONNECTION, hyper::header::HeaderValue::from_static("close"));
    response
}
