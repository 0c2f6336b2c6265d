//! Listens, applies the limits to every client, and hands whole requests on. What a request needs of the kernel is done on
//! up to six more threads, which end when they are idle, so that a write that takes long delays no other client.

use std::{
    collections::HashMap,
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
    time::Duration,
};

use answers::Problem;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::{
    Request, Response,
    body::{Body, Bytes, Incoming},
};
use tokio::{
    net::{UnixListener, UnixStream},
    sync::Semaphore,
};

use system::files;
use tracing::error;

use super::{
    Peer, Service,
    answer::{Answer, PROBLEM, answer},
    routes,
};
use crate::http::{self, Slot, Slots, Times};

/// Limits on clients.
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

/// Connections and requests since the start.
#[derive(Debug, Default)]
pub struct Counts {
    /// Connections that were taken.
    pub connections: AtomicU64,
    /// Connections that were refused as there were too many.
    pub rejected: AtomicU64,
    /// Connections that broke a limit or the protocol.
    pub broken: AtomicU64,
    /// Requests that were answered.
    pub answered: AtomicU64,
    /// Requests among these that were refused for lack of a right.
    pub forbidden: AtomicU64,
}

/// Why the socket is not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Somebody answers there.
    #[error("another daemon answers on {}", .0.display())]
    Taken(PathBuf),
    /// Others could put a socket of theirs into its place.
    #[error(
        "another user could put a socket in the place of the daemon's: {0}; --socket names another place"
    )]
    Untrusted(files::Untrusted),
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
    serving: Option<http::Server>,
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
    let counts = Arc::new(Counts::default());
    let server = Arc::new(Server {
        limits,
        service,
        counts: counts.clone(),
        slots: Arc::default(),
        root_turns: Arc::new(Semaphore::new(WORKERS)),
        other_turns: Arc::new(Semaphore::new(OTHERS)),
        users: Mutex::default(),
    });
    let serving = async move {
        let Ok(listener) = UnixListener::from_std(listener) else { return };
        http::accept(listener, |stream| Server::connected(&server, stream)).await;
    };
    let spawn = |body| std::thread::Builder::new().name("socket".to_owned()).spawn(body);
    let serving = http::Server::start(runtime, serving, spawn).map_err(failed)?;
    Ok(Handle { path: path.to_owned(), inode, serving: Some(serving), counts })
}

impl Handle {
    /// What came.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        drop(self.serving.take());
        // not that of a daemon which started meanwhile
        if fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Can the socket be there? Its directory is made if it is missing.
///
/// # Errors
/// [`ServeError`], as [`serve`] would return it.
pub(crate) fn check(path: &Path) -> Result<(), ServeError> {
    let failed = |error| ServeError::Io { path: path.to_owned(), error };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !directory.exists() {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(failed)?;
        // our umask may have taken bits away
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    files::trusted(directory).map_err(ServeError::Untrusted)?;
    match fs::symlink_metadata(path) {
        Ok(file) if !file.file_type().is_socket() => Err(ServeError::NotASocket(path.to_owned())),
        Ok(_) if Stream::connect(path).is_ok() => Err(ServeError::Taken(path.to_owned())),
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}

/// The socket appears with its mode and only once it listens: it is made beside, and put in its place by a rename.
fn bound(path: &Path) -> Result<Listener, ServeError> {
    let failed = |error| ServeError::Io { path: path.to_owned(), error };
    check(path)?;
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

struct Server {
    limits: Limits,
    service: Arc<dyn Service>,
    counts: Arc<Counts>,
    /// Connections by user.
    slots: Arc<Slots<u32>>,
    root_turns: Arc<Semaphore>,
    other_turns: Arc<Semaphore>,
    /// Of each user but root, one request at a time is carried out.
    users: Mutex<HashMap<u32, Arc<Semaphore>>>,
}

/// The answer to a connection too many.
const BUSY: &str = r#"{"status":503,"detail":"too many connections","hint":"try again"}"#;

impl Server {
    fn connected(server: &Arc<Server>, stream: UnixStream) {
        let Ok(peer) = Peer::of(&stream) else { return };
        match server.slot(&peer) {
            Some(slot) => drop(tokio::spawn(connection(server.clone(), stream, peer, slot))),
            None => {
                count(&server.counts.rejected);
                http::reject(&stream, PROBLEM, BUSY);
            }
        }
    }

    /// The turns of a user; root needs none.
    fn turns_of(&self, peer: &Peer) -> Option<Arc<Semaphore>> {
        if peer.is_root() {
            return None;
        }
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        users.retain(|_, turns| Arc::strong_count(turns) > 1);
        Some(Arc::clone(users.entry(peer.uid).or_insert_with(|| Arc::new(Semaphore::new(1)))))
    }

    fn slot(&self, peer: &Peer) -> Option<Slot<u32>> {
        let limits = &self.limits;
        Slots::take(&self.slots, peer.uid, |own, all| match peer.is_root() {
            true => all < limits.connections,
            false => own < limits.per_user && all < limits.connections - limits.connections / 16,
        })
    }
}

async fn connection(server: Arc<Server>, stream: UnixStream, peer: Peer, _slot: Slot<u32>) {
    count(&server.counts.connections);
    let times = Times { head: server.limits.head, whole: server.limits.whole };
    let respond = |request| {
        let (server, peer) = (server.clone(), peer.clone());
        async move { response(&server, &peer, request).await }
    };
    if !http::serve(stream, times, respond).await {
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
    http::response(answer.status, answer.content, Bytes::from(answer.body))
}

async fn whole(server: &Arc<Server>, peer: &Peer, request: Request<Incoming>) -> Result<Answer, Problem> {
    let uri = request.uri();
    let route = routes::Request::parse(request.method().as_str(), uri.path(), uri.query())?;
    let body = if route.has_body() { read(server, request).await? } else { Bytes::new() };
    let ends = |_| Problem::new(503, "the daemon is stopping");
    // a user who waits for his own request takes no turn of another user's
    let own = match server.turns_of(peer) {
        Some(own) => Some(own.acquire_owned().await.map_err(ends)?),
        None => None,
    };
    let turns = if peer.is_root() { &server.root_turns } else { &server.other_turns };
    let turn = turns.clone().acquire_owned().await.map_err(ends)?;
    let (service, peer) = (server.service.clone(), peer.clone());
    let work = move || {
        let _turns = (own, turn); // also after the client went away
        // a defect in one request ends neither the daemon nor its other requests
        let answered = catch_unwind(AssertUnwindSafe(|| answer(service.as_ref(), &peer, &route, &body)));
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
        Err(_) => Err(Problem::invalid("the body broke off")),
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
