//! Keys, sizes and signals as one descriptor that a loop can wait for: crossterm reads in a thread of its own, since
//! what it has read ahead can't be waited for otherwise.

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::mpsc::{Receiver, Sender, channel},
};

use crossterm::event::{self, Event as Typed, KeyEventKind};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    low_level::pipe,
};

use crate::model::Event;

/// What came in.
pub(crate) enum Came {
    /// For the model.
    Event(Event),
    /// A signal or the terminal's end.
    End,
}

/// Keys and sizes.
pub(crate) struct Input {
    came: Receiver<Came>,
    /// Readable when something came.
    bell: UnixStream,
    /// Readable with the first signal to end.
    stopped: UnixStream,
}

impl Input {
    pub(crate) fn start() -> io::Result<Input> {
        let (stopped, sender) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            pipe::register(signal, sender.try_clone()?)?;
        }
        let (bell, ring) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        let (send, came) = channel();
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || read(&send, ring))?;
        Ok(Input { came, bell, stopped })
    }

    /// What to wait for.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.bell.as_fd(), self.stopped.as_fd()]
    }

    /// All that came since.
    pub(crate) fn take(&mut self) -> Vec<Came> {
        let mut rung = [0; 256];
        while matches!(self.bell.read(&mut rung), Ok(1..)) {}
        self.came.try_iter().collect()
    }
}

/// Until the terminal ends, or nobody listens.
fn read(to: &Sender<Came>, mut ring: UnixStream) {
    loop {
        let came = match event::read() {
            Ok(Typed::Key(key)) if key.kind != KeyEventKind::Release => Came::Event(Event::Key(key)),
            Ok(Typed::Resize(columns, lines)) => Came::Event(Event::Size(columns, lines)),
            Ok(_) => continue,
            Err(_) => Came::End,
        };
        let is_end = matches!(came, Came::End);
        if to.send(came).is_err() || ring.write_all(&[0]).is_err() || is_end {
            return;
        }
    }
}
