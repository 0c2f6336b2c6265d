//! Listens, holds every client to its limits, and hands whole requests on. One thread, asleep until somebody comes; what a
//! request asks of the kernel is done on up to six others, which end when they are idle, so that a write that takes long
//! keeps nobody else waiting.

use std::{
    collections::HashMap,
    convert::Infallible,
    fs,
    io::{self, ErrorKind},
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::{UnixListener as Listener, UnixStream as Stream},
    },
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    Request, Response,
    body::{Body, Bytes, Incoming},
    header,
    server::conn::http1,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::{Semaphore, oneshot},
};

use tracing::error;

use super::{
    Peer, Problem, Service,
    answer::{Answer, answer},
    routes,
};

/// What clients are held to.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A request's head has come, or the connection is closed.
    pub head: Duration,
    /// The connection is over.
    pub whole: Duration,
    /// Bytes of a body.
    pub body: usize,
    /// Connections at once. A sixteenth of them are root's.
    pub connections: usize,
    /// Connections at once of one user; root has no such limit.
    pub per_user: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            head: Duration::from_secs(5),
            whole: Duration::from_secs(30),
            body: 64 << 10,
            connections: 128,
            per_user: 16,
        }
    }
}

/// What became of connections and requests since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections that were taken.
    pub connections: AtomicU64,
    /// Connections that were refused as there were too many.
    pub turned_away: AtomicU64,
    /// Connections that broke a limit or the protocol.
    pub broken: AtomicU64,
    /// Requests that were answered.
    pub answered: AtomicU64,
    /// Requests among these that were refused for want of a right.
    pub forbidden: AtomicU64,
}

/// Why the socket is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Somebody answers there.
    #[error("another daemon answers on {}", .0.display())]
    Taken(PathBuf),
    /// Others could put a socket of theirs into its place.
    #[error("{} can be written by others than its owner", .0.display())]
    Open(PathBuf),
    /// A file, a link or a directory.
    #[error("{} is not a socket", .0.display())]
    NotASocket(PathBuf),
    /// Something failed.
    #[error("cannot serve {}: {error}", .path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A socket that is served, until this is dropped.
#[derive(Debug)]
pub struct Handle {
    path: PathBuf,
    inode: (u64, u64),
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    counts: Arc<Counts>,
}

/// Serves a socket, in a thread of its own.
///
/// # Errors
/// [`ServeError`].
pub fn serve(path: &Path, service: Arc<dyn Service>) -> Result<Handle, ServeError> {
    serve_within(path, Limits::default(), service)
}

/// As [`serve`], within other limits.
///
/// # Errors
/// [`ServeError`].
pub fn serve_within(path: &Path, limits: Limits, service: Arc<dyn Service>) -> Result<Handle, ServeError> {
    let failed = |error| ServeError::Io { path: path.to_owned(), error };
    let listener = bound(path)?;
    let inode = fs::symlink_metadata(path).map(|file| (file.dev(), file.ino())).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(WORKERS + OTHERS)
        .thread_keep_alive(Duration::from_secs(1))
        .thread_name("socket-work")
        .thread_stack_size(1 << 20)
        .build()
        .map_err(failed)?;
    let (stop, stopped) = oneshot::channel();
    let counts = Arc::new(Counts::default());
    let server = Server {
        limits,
        service,
        counts: counts.clone(),
        seats: Mutex::default(),
        roots: Arc::new(Semaphore::new(WORKERS)),
        others: Arc::new(Semaphore::new(OTHERS)),
        users: Mutex::default(),
    };
    let listening = move || {
        runtime.block_on(async move {
            let Ok(listener) = UnixListener::from_std(listener) else { return };
            tokio::spawn(accept(listener, Arc::new(server)));
            // an error means that the handle is gone, which is as good
            let _ = stopped.await;
        });
        runtime.shutdown_timeout(Duration::from_secs(5));
    };
    let thread = std::thread::Builder::new().name("socket".to_owned()).spawn(listening).map_err(failed)?;
    Ok(Handle { path: path.to_owned(), inode, stop: Some(stop), thread: Some(thread), counts })
}

impl Handle {
    /// What came.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a thread that panicked has ended as well
        }
        // not that of a daemon which started meanwhile
        if fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The socket appears with its mode and only once it listens: it is made beside, and put in its place by a rename.
fn bound(path: &Path) -> Result<Listener, ServeError> {
    let failed = |error| ServeError::Io { path: path.to_owned(), error };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.exists() {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(failed)?;
        // whatever our umask took away
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    let held = fs::metadata(directory).map_err(failed)?;
    if held.mode() & 0o022 != 0 {
        return Err(ServeError::Open(directory.to_owned()));
    }
    match fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => return Err(ServeError::NotASocket(path.to_owned())),
        Ok(_) if Stream::connect(path).is_ok() => return Err(ServeError::Taken(path.to_owned())),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let _ = fs::remove_file(&beside); // left by a process of the same number that was killed
    let listener = Listener::bind(&beside).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o666)).map_err(failed)?;
    fs::rename(&beside, path).map_err(failed)?;
    Ok(listener)
}

/// Requests of root that are carried out at once.
const WORKERS: usize = 2;
/// Requests of others, each of another user.
const OTHERS: usize = 4;
/// After an accept that failed for want of descriptors or memory.
const PAUSE: Duration = Duration::from_millis(200);
/// Bytes of a request's head.
const HEAD: usize = 16 << 10;

struct Server {
    limits: Limits,
    service: Arc<dyn Service>,
    counts: Arc<Counts>,
    /// Connections by user.
    seats: Mutex<HashMap<u32, usize>>,
    roots: Arc<Semaphore>,
    others: Arc<Semaphore>,
    /// Of each user but root, one request at a time is carried out.
    users: Mutex<HashMap<u32, Arc<Semaphore>>>,
}

/// A connection that is counted, as long as this lives.
struct Seat {
    server: Arc<Server>,
    uid: u32,
}

async fn accept(listener: UnixListener, server: Arc<Server>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(peer) = Peer::of(&stream) else { continue };
        match Server::seat(&server, &peer) {
            Some(seat) => drop(tokio::spawn(connection(stream, peer, seat))),
            None => {
                count(&server.counts.turned_away);
                turn_away(&stream);
            }
        }
    }
}

impl Server {
    /// The turns of a user; root needs none.
    fn turns_of(&self, peer: &Peer) -> Option<Arc<Semaphore>> {
        if peer.is_root() {
            return None;
        }
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, turns| Arc::strong_count(turns) > 1);
        Some(Arc::clone(users.entry(peer.uid).or_insert_with(|| Arc::new(Semaphore::new(1)))))
    }

    fn seat(server: &Arc<Server>, peer: &Peer) -> Option<Seat> {
        let limits = &server.limits;
        let mut seats = server.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = seats.values().sum();
        let own = seats.get(&peer.uid).copied().unwrap_or(0);
        let free = if peer.is_root() {
            all < limits.connections
        } else {
            own < limits.per_user && all < limits.connections - limits.connections / 16
        };
        free.then(|| {
            *seats.entry(peer.uid).or_default() += 1;
            Seat { server: server.clone(), uid: peer.uid }
        })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.server.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = seats.get_mut(&self.uid) {
            *own -= 1;
            if *own == 0 {
                seats.remove(&self.uid);
            }
        }
    }
}

/// Says so if that needs no waiting, and closes.
fn turn_away(stream: &UnixStream) {
    const BODY: &str = r#"{"status":503,"detail":"too many connections at once","hint":"ask again"}"#;
    let head =
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n";
    let _ = stream.try_write(
        format!("{head}connection: close\r\ncontent-length: {}\r\n\r\n{BODY}", BODY.len()).as_bytes(),
    );
}

async fn connection(stream: UnixStream, peer: Peer, seat: Seat) {
    let server = seat.server.clone();
    count(&server.counts.connections);
    let respond = |request: Request<Incoming>| {
        let (server, peer) = (server.clone(), peer.clone());
        async move { Ok::<_, Infallible>(response(&server, &peer, request).await) }
    };
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(server.limits.head)
        .max_buf_size(HEAD)
        .max_headers(64)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), hyper::service::service_fn(respond));
    if !matches!(tokio::time::timeout(server.limits.whole, served).await, Ok(Ok(()))) {
        count(&server.counts.broken);
    }
}

async fn response(server: &Arc<Server>, peer: &Peer, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let answer = match whole(server, peer, request).await {
        Ok(answer) => answer,
        Err(problem) => Answer::problem(&problem),
    };
    count(&server.counts.answered);
    if answer.status == 403 {
        count(&server.counts.forbidden);
    }
    let response = Response::builder()
        .status(answer.status)
        .header(header::CONTENT_TYPE, answer.content)
        .header(header::CONNECTION, "close")
        .body(Full::from(answer.body));
    // the status may be anybody's number
    response.unwrap_or_else(|_| Response::new(Full::default()))
}

async fn whole(server: &Arc<Server>, peer: &Peer, request: Request<Incoming>) -> Result<Answer, Problem> {
    let uri = request.uri();
    let asked = routes::Request::parse(request.method().as_str(), uri.path(), uri.query())?;
    let body = if asked.has_body() { read(server, request).await? } else { Bytes::new() };
    let ends = |_| Problem::new(503, "the daemon is stopping");
    // who waits for his own request takes no turn of another user's
    let own = match server.turns_of(peer) {
        Some(own) => Some(own.acquire_owned().await.map_err(ends)?),
        None => None,
    };
    let turns = if peer.is_root() { &server.roots } else { &server.others };
    let turn = turns.clone().acquire_owned().await.map_err(ends)?;
    let (service, peer) = (server.service.clone(), peer.clone());
    let work = move || {
        let _turns = (own, turn); // also after the client went away
        // a defect in one request ends neither the daemon nor its other requests
        let answered = catch_unwind(AssertUnwindSafe(|| answer(service.as_ref(), &peer, &asked, &body)));
        answered.unwrap_or_else(|_| {
            error!("a request failed by a defect of ringfenced; please report it");
            Answer::problem(&Problem::new(500, "the request failed by a defect of ringfenced"))
        })
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::new(500, "the request could not be carried out"))
}

async fn read(server: &Server, request: Request<Incoming>) -> Result<Bytes, Problem> {
    let most = server.limits.body;
    let too_large = || Problem::new(413, format!("a body has at most {most} bytes"));
    let body = request.into_body();
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    match Limited::new(body, most).collect().await {
        Ok(read) => Ok(read.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large()),
        Err(_) => Err(Problem::bad("the body broke off")),
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
