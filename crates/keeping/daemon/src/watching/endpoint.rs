//! `/metrics` over HTTP, for who reaches the address. One thread, asleep until somebody comes; every size, time and number
//! is limited. Makes no text itself.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
    thread::JoinHandle,
    time::Duration,
};

use exporters::metrics::Format;
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
    sync::oneshot,
};
use tracing::info;

use super::{
    collector::Ask,
    peers::{Peer, Peers},
    thread,
    told::Told,
};

/// Connections at once; a quarter of them is kept for root and for those who have none yet.
const CONNECTIONS: usize = 64;
/// Connections at once of one peer.
const PER_PEER: usize = 4;
/// A request's head has come, or the connection is closed.
const HEAD_TIME: Duration = Duration::from_secs(2);
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
    let (seats, peers) = (Arc::new(Seats::default()), Peers::new());
    loop {
        match listener.accept().await {
            Ok((stream, theirs)) => {
                let Ok(ours) = stream.local_addr() else { continue };
                let peer = peers.of(theirs, ours);
                match Seats::take(&seats, peer) {
                    Some(seat) => drop(tokio::spawn(connection(stream, asks.clone(), seat))),
                    None => turn_away(&stream),
                }
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Connections by peer: one user can't take them all.
#[derive(Debug, Default)]
struct Seats(Mutex<HashMap<Peer, usize>>);

/// A connection that is counted, as long as this lives.
struct Seat {
    seats: Arc<Seats>,
    peer: Peer,
}

impl Seats {
    fn take(seats: &Arc<Seats>, peer: Peer) -> Option<Seat> {
        let mut taken = seats.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.values().sum();
        let own = taken.get(&peer).copied().unwrap_or(0);
        let most = if own == 0 || peer == ROOT { CONNECTIONS } else { CONNECTIONS - CONNECTIONS / 4 };
        let free = own < PER_PEER && all < most;
        free.then(|| {
            *taken.entry(peer).or_default() += 1;
            Seat { seats: Arc::clone(seats), peer }
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = taken.get_mut(&self.peer) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.peer);
            }
        }
    }
}

const ROOT: Peer = Peer::User(0);

/// Says so if that needs no waiting, and closes.
fn turn_away(stream: &TcpStream) {
    let _ = stream.try_write(
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n",
    );
}

async fn connection(stream: TcpStream, asks: Sender<Ask>, seat: Seat) {
    let whole = seat.peer == ROOT;
    let respond = |request: Request<Incoming>| {
        let asks = asks.clone();
        async move { Ok::<_, Infallible>(response(&request, &asks, whole).await) }
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

async fn response(request: &Request<Incoming>, asks: &Sender<Ask>, all: bool) -> Response<Full<Bytes>> {
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
    if asks.send(Ask { format, all, answer }).is_err() {
        return told(StatusCode::SERVICE_UNAVAILABLE, "the daemon is stopping\n");
    }
    match answered.await {
        Ok(text) => whole(StatusCode::OK, format.content_type(), Bytes::copy_from_slice(text.as_bytes())),
        Err(_) => told(StatusCode::SERVICE_UNAVAILABLE, "the daemon is stopping\n"),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack finding 14.
    #[test]
    fn one_user_takes_a_few_seats_and_leaves_the_others() {
        let seats = Arc::new(Seats::default());
        let take = |peer: Peer, times: usize| -> Vec<Seat> {
            (0..times).filter_map(|_| Seats::take(&seats, peer)).collect()
        };
        let flood = take(Peer::User(1000), 40);
        assert_eq!(flood.len(), PER_PEER);
        assert_eq!(take(Peer::User(1001), 1).len(), 1);
        let many: Vec<Vec<Seat>> = (2000..2100).map(|uid| take(Peer::User(uid), PER_PEER)).collect();
        assert!(many.iter().map(Vec::len).sum::<usize>() < CONNECTIONS);
        drop(many);
        assert_eq!(take(Peer::User(1000), 1).len(), 0);
        drop(flood);
        assert_eq!(take(Peer::User(1000), 1).len(), 1);
        assert!(take(ROOT, 1).len() == 1 && seats.0.lock().unwrap().is_empty());
    }
}
