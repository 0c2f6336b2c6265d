//! `/metrics` over HTTP, for clients that reach the address. The collector makes the text.

use std::{
    net::SocketAddr,
    sync::{Arc, mpsc::Sender},
    time::Duration,
};

use exporters::metrics::Format;
use http_body_util::Full;
use hyper::{
    Method, Request, Response,
    body::{Bytes, Incoming},
    header::{ACCEPT, ALLOW, HeaderValue},
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
};
use tracing::info;

use super::{collector::Scrape, thread};
use crate::{
    failure_log::FailureLog,
    http::{self, Server, Slot, Slots, Times},
    peers::{Peer, Peers},
};

/// Connections at once; a quarter of them is reserved for root and for peers that have none yet.
const CONNECTIONS: usize = 64;
/// Connections at once of one peer.
const PER_PEER: usize = 4;
const TIMES: Times = Times { head: Duration::from_secs(2), whole: Duration::from_secs(30) };
const PATH: &str = "/metrics";
const TEXT: &str = "text/plain; charset=utf-8";

/// Serves an address; where that is taken, it is tried `again` after that time.
pub(super) fn serve(
    address: SocketAddr,
    requests: Sender<Scrape>,
    again: Duration,
) -> std::io::Result<Server> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Server::start(runtime, listen(address, requests, again), |body| thread("metrics-http", body))
}

async fn listen(address: SocketAddr, requests: Sender<Scrape>, again: Duration) {
    let mut failures = FailureLog::new("metrics are not served", "metrics are served again");
    let listener = loop {
        match TcpListener::bind(address).await {
            Ok(listener) => break listener,
            Err(error) => failures.fail(format!("{address}: {error}")),
        }
        tokio::time::sleep(again).await;
    };
    failures.succeeded();
    info!("serving metrics at http://{}{PATH}", listener.local_addr().unwrap_or(address));
    let (slots, peers) = (Arc::new(Slots::default()), Peers::open());
    http::accept(listener, move |stream| {
        let (Ok(theirs), Ok(ours)) = (stream.peer_addr(), stream.local_addr()) else { return };
        match slot(&slots, peers.of(theirs, ours)) {
            Some(slot) => drop(tokio::spawn(connection(stream, requests.clone(), slot))),
            None => http::reject(&stream, TEXT, "too many connections\n"),
        }
    })
    .await;
}

/// A few of each peer; the last quarter is for root and for peers that have none yet.
fn slot(slots: &Arc<Slots<Peer>>, peer: Peer) -> Option<Slot<Peer>> {
    Slots::take(slots, peer, |own, all| {
        let max = if own == 0 || peer == ROOT { CONNECTIONS } else { CONNECTIONS - CONNECTIONS / 4 };
        own < PER_PEER && all < max
    })
}

const ROOT: Peer = Peer::User(0);

async fn connection(stream: TcpStream, requests: Sender<Scrape>, slot: Slot<Peer>) {
    let all = slot.client == ROOT;
    let respond = |request: Request<Incoming>| {
        let requests = requests.clone();
        async move { response(&request, &requests, all).await }
    };
    http::serve(stream, TIMES, respond).await;
}

async fn response(
    request: &Request<Incoming>,
    requests: &Sender<Scrape>,
    all: bool,
) -> Response<Full<Bytes>> {
    if request.uri().path() != PATH {
        return text(404, "metrics are at /metrics\n");
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut response = text(405, "only GET and HEAD\n");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let accept: Vec<&str> =
        request.headers().get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let format = Format::accepted(&accept.join(","));
    let (answer, answered) = oneshot::channel();
    if requests.send(Scrape { format, all, answer }).is_err() {
        return text(503, "the daemon is stopping\n");
    }
    match answered.await {
        Ok(metrics) => http::response(200, format.content_type(), Bytes::copy_from_slice(metrics.as_bytes())),
        Err(_) => text(503, "the daemon is stopping\n"),
    }
}

fn text(status: u16, text: &'static str) -> Response<Full<Bytes>> {
    http::response(status, TEXT, Bytes::from_static(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack finding 14.
    #[test]
    fn one_user_takes_a_few_slots_and_leaves_the_others() {
        let slots = Arc::new(Slots::default());
        let take = |peer: Peer, times: usize| -> Vec<Slot<Peer>> {
            (0..times).filter_map(|_| slot(&slots, peer)).collect()
        };
        let flood = take(Peer::User(1000), 40);
        assert_eq!(flood.len(), PER_PEER);
        assert_eq!(take(Peer::User(1001), 1).len(), 1);
        let many: Vec<Vec<Slot<Peer>>> = (2000..2100).map(|uid| take(Peer::User(uid), PER_PEER)).collect();
        assert!(many.iter().map(Vec::len).sum::<usize>() < CONNECTIONS);
        drop(many);
        assert_eq!(take(Peer::User(1000), 1).len(), 0);
        drop(flood);
        assert_eq!(take(Peer::User(1000), 1).len(), 1);
        assert!(take(ROOT, 1).len() == 1 && slots.is_empty());
    }
}
