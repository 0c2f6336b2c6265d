//! Listens on loopback, takes connections of our user alone, applies the limits, and hands whole requests on.

use std::{
    net::{SocketAddr, TcpListener as Listener},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use answers::{Problem, routes::Answer};
use daemon::{
    http::{self, Slot, Slots, Times},
    peers::{Peer, Peers},
};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Body as _, Bytes, Incoming},
    header::{
        ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, ETAG,
        HeaderName, HeaderValue, IF_NONE_MATCH, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
        X_FRAME_OPTIONS,
    },
};
use kernel::GroupName;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use crate::{
    answer::{Answers, Body, Context},
    api::session::Token,
    assets,
    error::Error,
    group::Looks,
    guard::{self, Target},
    history,
    lab::Results,
    live::{Live, Watched},
    peers::{Allowed, Refused},
    program::Program,
    routes::{Call, Kind},
    sessions::Sessions,
};

/// Bytes of a body: a layout of 4 MiB as JSON.
const BODY: usize = 5 << 20;
/// A body comes within this time, or the connection ends.
const BODY_TIME: Duration = Duration::from_secs(10);
/// The whole is longer than the longest command and the longest `why`.
const TIMES: Times = Times { head: Duration::from_secs(5), whole: Duration::from_secs(320) };
/// Connections at once; a browser has six.
const CONNECTIONS: usize = 64;
/// Requests at once that read or change something.
const TURNS: usize = 8;
/// How many of them may be such as take long: those that look for a while, and changes, which wait for each other.
const LONG: usize = TURNS / 2;

const PROBLEM: &str = "application/problem+json";
const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";
const CROSS_ORIGIN_RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const CROSS_ORIGIN_OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Everything of this server and nothing of others; the report of an experiment stands in a frame.
const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// A report has its style in itself, no script, and no other origin's rights.
const REPORT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; font-src data:; img-src data:; base-uri 'none'; \
form-action 'none'; frame-ancestors 'self'; sandbox";

/// What is served, and to whom.
#[derive(Debug, Clone)]
pub struct Options {
    /// A loopback address; port 0: a free one.
    pub listen: SocketAddr,
    /// Are changes carried out?
    pub write: bool,
    /// How long a session lasts.
    pub session: Duration,
    /// Only these groups and those below them; empty: all of ours.
    pub groups: Vec<GroupName>,
    /// The recorder's log.
    pub log: PathBuf,
    /// Where experiments have their results.
    pub results: PathBuf,
    /// The program whose commands are run.
    pub program: Program,
    /// Takes what is to be known of connections that get no answer.
    pub warn: fn(&str),
}

/// A server, until this is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    _serving: http::Server,
}

struct Shared {
    sessions: Sessions,
    cookie: String,
    answers: Answers,
    allowed: Allowed,
    refused: Refused,
    warn: fn(&str),
    turns: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

/// Serves, in threads of its own.
///
/// # Errors
/// [`Error`].
pub fn serve(options: Options) -> Result<Server, Error> {
    if !options.listen.ip().is_loopback() {
        return Err(Error::NotLoopback(options.listen));
    }
    let failed = |error| Error::Listen { address: options.listen, error };
    let listener = Listener::bind(options.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let watched =
        Watched { groups: options.groups, state: history::state(&options.program).directory().to_owned() };
    let shared = Arc::new(Shared {
        sessions: Sessions::new(options.session),
        // cookies know no port: another server on this machine must not get, or replace, this one's
        cookie: format!("ringfence-{}", address.port()),
        answers: Answers {
            write: options.write,
            program: options.program,
            log: options.log,
            live: Live::start(watched).map_err(Error::Start)?,
            results: Results::new(options.results),
            looks: Looks::default(),
            change: Default::default(),
        },
        allowed: Allowed::of_this_process(),
        refused: Refused::default(),
        warn: options.warn,
        turns: Arc::new(Semaphore::new(TURNS)),
        long: Arc::new(Semaphore::new(LONG)),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(TURNS)
        .thread_keep_alive(Duration::from_secs(1))
        .thread_name("web-work")
        .build()
        .map_err(Error::Start)?;
    let of_server = Arc::clone(&shared);
    let serving = async move {
        let Ok(listener) = TcpListener::from_std(listener) else { return };
        let (slots, peers) = (Arc::new(Slots::default()), Peers::open());
        http::accept(listener, move |stream| connected(&of_server, &slots, &peers, stream)).await;
    };
    let spawn = |body| std::thread::Builder::new().name("web".to_owned()).spawn(body);
    let serving = http::Server::start(runtime, serving, spawn).map_err(Error::Start)?;
    Ok(Server { address, shared, _serving: serving })
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL that opens one session, once; the one before it, if nobody used it, is worth nothing any more. Its token stands
    /// behind `#`: no browser sends it but to this page.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub fn url(&self) -> Result<String, Error> {
        let token = self.shared.sessions.token().map_err(Error::Random)?;
        Ok(format!("http://{}/#token={token}", self.address))
    }
}

fn connected(server: &Arc<Shared>, slots: &Arc<Slots<Peer>>, peers: &Peers, stream: TcpStream) {
    let (Ok(theirs), Ok(ours)) = (stream.peer_addr(), stream.local_addr()) else { return };
    let peer = peers.of(theirs, ours);
    if !server.allowed.has(peer) {
        // who may not connect gets no word; the user may wonder why the browser shows nothing
        if let Some(words) = server.refused.words(peer, &server.allowed) {
            (server.warn)(&words);
        }
        return;
    }
    match Slots::take(slots, peer, |_, all| all < CONNECTIONS) {
        Some(slot) => drop(tokio::spawn(connection(Arc::clone(server), stream, slot))),
        None => http::reject(
            &stream,
            PROBLEM,
            r#"{"status":503,"kind":"unavailable","message":"too many connections"}"#,
        ),
    }
}

async fn connection(server: Arc<Shared>, stream: TcpStream, _slot: Slot<Peer>) {
    let respond = |request| {
        let server = Arc::clone(&server);
        async move { response(&server, request).await }
    };
    http::serve(stream, TIMES, respond).await;
}

type Reply = Response<Full<Bytes>>;

async fn response(server: &Arc<Shared>, request: Request<Incoming>) -> Reply {
    let mut reply = match replied(server, request).await {
        Ok(reply) => reply,
        Err(problem) => refused(&problem),
    };
    let headers = reply.headers_mut();
    let mut set = |name, value| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    set(CONTENT_SECURITY_POLICY, PAGE_POLICY);
    set(X_FRAME_OPTIONS, "DENY");
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(CACHE_CONTROL, "no-store");
    set(REFERRER_POLICY, "no-referrer");
    set(CROSS_ORIGIN_RESOURCE, "same-origin");
    set(CROSS_ORIGIN_OPENER, "same-origin");
    reply
}

fn refused(problem: &Problem) -> Reply {
    let body = serde_json::to_vec(problem).unwrap_or_default();
    let mut reply = http::response(problem.status, PROBLEM, body.into());
    if problem.status == 405 {
        let allow = problem.message.rsplit("takes ").next().map(|methods| methods.replace(" or ", ", "));
        let allow = allow.and_then(|allow| HeaderValue::from_str(&allow).ok());
        reply.headers_mut().extend(allow.map(|allow| (ALLOW, allow)));
    }
    reply
}

async fn replied(server: &Arc<Shared>, request: Request<Incoming>) -> Result<Reply, Problem> {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    if uri.authority().is_some() {
        return Err(Problem::invalid("this is no proxy"));
    }
    if !uri.path().starts_with("/api/") {
        guard::check(&method, request.headers(), Target::Page)?;
        return page(&method, uri.path());
    }
    let call = Call::parse(method.as_str(), uri.path(), uri.query());
    let is_frame = call.as_ref().is_ok_and(|call| matches!(call.route.answer, Answer::Html));
    let target = if is_frame { Target::Frame } else { Target::Api };
    guard::check(&method, request.headers(), target)?;
    let call = match call {
        Ok(call) => call,
        // who has no session learns no path
        Err(problem) => return session(server, request.headers()).and(Err(problem)),
    };
    if call.route.kind == Kind::OpenSession {
        return opened(server, &read(request).await?);
    }
    let (cookie, ends) = session(server, request.headers())?;
    if call.route.kind == Kind::EndSession {
        server.sessions.close(&cookie);
        return Ok(with_cookie(server, "", Duration::ZERO));
    }
    let tag = request.headers().get(IF_NONE_MATCH).cloned();
    let body = if call.route.body.is_some() { read(request).await? } else { Bytes::new() };
    let seen = if Answers::needs_snapshot(&call) { Some(server.answers.live.now().await?) } else { None };
    let answered = answered(server, call, body, Context { ends, seen }).await?;
    Ok(sent(answered, tag.as_ref()))
}

fn page(method: &Method, path: &str) -> Result<Reply, Problem> {
    let asset = assets::find(path).ok_or_else(|| Problem::missing("there is no such page"))?;
    if ![Method::GET, Method::HEAD].contains(method) {
        return Err(Problem::new(405, "this path takes GET or HEAD"));
    }
    let mut reply = http::response(200, asset.content, Bytes::from_static(asset.packed));
    reply.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Ok(reply)
}

fn opened(server: &Shared, body: &[u8]) -> Result<Reply, Problem> {
    let call: Token = serde_json::from_slice(body)
        .map_err(|error| Problem::invalid(format!("the body is not as expected: {error}")))?;
    let opened = server.sessions.open(&call.token);
    let cookie = opened.map_err(|errno| Problem::unavailable(Error::Random(errno)))?;
    match cookie {
        Some(cookie) => Ok(with_cookie(server, &cookie, server.sessions.length())),
        None => Err(over("this URL was used, is over, or is not this server's")),
    }
}

fn over(message: &str) -> Problem {
    Problem::new(401, message)
        .hint("press Enter in the terminal where ringfence web runs: it prints a new URL")
}

/// 204 with the session's cookie, or without any.
fn with_cookie(server: &Shared, cookie: &str, length: Duration) -> Reply {
    let mut reply = http::response(StatusCode::NO_CONTENT.as_u16(), JSON, Bytes::new());
    reply.headers_mut().remove(CONTENT_TYPE);
    let text = format!(
        "{}={cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}",
        server.cookie,
        length.as_secs()
    );
    if let Ok(value) = HeaderValue::from_str(&text) {
        reply.headers_mut().insert(SET_COOKIE, value);
    }
    reply
}

/// The session's cookie, and when it ends.
fn session(server: &Shared, headers: &HeaderMap) -> Result<(String, std::time::SystemTime), Problem> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let own = all.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut own = own.filter(|(name, _)| *name == server.cookie);
    let none = || over("there is no session, or it is over");
    let (_, cookie) = own.next().ok_or_else(none)?;
    if own.next().is_some() {
        return Err(Problem::invalid("the session's cookie stands twice"));
    }
    let ends = server.sessions.ends(cookie).ok_or_else(none)?;
    Ok((cookie.to_owned(), ends))
}

async fn read(request: Request<Incoming>) -> Result<Bytes, Problem> {
    let too_large = || Problem::new(413, "a body has at most 5 MiB, and a layout in it 4 MiB");
    let body = request.into_body();
    if body.size_hint().lower() > BODY as u64 {
        return Err(too_large());
    }
    let late = |_| Problem::new(408, "the body did not come in time");
    match timeout(BODY_TIME, Limited::new(body, BODY).collect()).await.map_err(late)? {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::invalid("the body broke off")),
    }
}

/// What is at hand needs no other thread.
async fn answered(server: &Arc<Shared>, call: Call, body: Bytes, context: Context) -> Result<Body, Problem> {
    let is_at_hand = context.seen.is_some() && call.route.kind != Kind::Plan;
    if is_at_hand {
        return server.answers.answer(&call, &body, &context);
    }
    let ends = |_| Problem::unavailable("the server is stopping");
    let takes_long = call.route.kind == Kind::Why || call.route.writes;
    let long = match takes_long {
        true => Some(Arc::clone(&server.long).acquire_owned().await.map_err(ends)?),
        false => None,
    };
    let turn = Arc::clone(&server.turns).acquire_owned().await.map_err(ends)?;
    let of_work = Arc::clone(server);
    let work = move || {
        let _turns = (long, turn); // also after the client went away
        // a defect in one request ends no other
        catch_unwind(AssertUnwindSafe(|| of_work.answers.answer(&call, &body, &context)))
            .unwrap_or_else(|_| Err(Problem::new(500, "the request failed by a defect of ringfence")))
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Problem::unavailable("the request could not be carried out")))
}

fn sent(body: Body, tag: Option<&HeaderValue>) -> Reply {
    match body {
        Body::Json(bytes) => http::response(200, JSON, bytes),
        Body::Versioned(bytes, version) => {
            let own = HeaderValue::from_str(&format!("\"{version}\"")).ok();
            let is_known = own.is_some() && own.as_ref() == tag;
            let mut reply = if is_known {
                http::response(304, JSON, Bytes::new())
            } else {
                http::response(200, JSON, bytes)
            };
            reply.headers_mut().extend(own.map(|own| (ETAG, own)));
            reply
        }
        Body::Report(bytes) => {
            let mut reply = http::response(200, HTML, bytes);
            reply.headers_mut().insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(REPORT_POLICY));
            reply.headers_mut().insert(X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
            reply
        }
    }
}
