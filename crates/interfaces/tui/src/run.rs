//! The loop: waits for a beat, a key or a signal, passes it to the model, carries out what that asks for, and draws once for
//! all that came.

use std::{collections::VecDeque, time::Duration};

use monitor::Cadence;
use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};

use crate::{
    error::Error,
    input::{Came, Input},
    model::{Event, Model, Request},
    render::{Look, render},
    source::Source,
    terminal::Screen,
};

/// How the screens are shown.
#[derive(Debug, Clone)]
pub struct Options {
    /// How often.
    pub interval: Duration,
    /// How figures are drawn.
    pub look: Look,
}

/// Shows the screens until the user ends them, or a signal does.
///
/// # Errors
/// [`Error`]; the terminal is as it was before.
pub fn run(mut model: Model, source: &mut dyn Source, options: &Options) -> Result<(), Error> {
    // what cannot be shown at all is printed on the user's screen
    let first = source.first()?;
    let mut cadence = Cadence::new(options.interval).map_err(no("timer"))?;
    // signals are caught before there is a screen to give back
    let mut input = Input::start().map_err(Error::Terminal)?;
    let mut screen = Screen::enter().map_err(Error::Terminal)?;
    if let Ok(size) = screen.terminal.size() {
        model.update(Event::Size(size.width, size.height));
    }
    let mut goes_on = deliver(&mut model, source, first)?;
    // the first sample is taken already
    cadence.take().map_err(no("timer"))?;
    while goes_on {
        screen.terminal.draw(|frame| render(&model, options.look, frame)).map_err(Error::Terminal)?;
        let ready = wait(&cadence, &input)?;
        if ready.is_signal {
            break;
        }
        let mut events = Vec::new();
        if ready.is_input {
            for came in input.take() {
                match came {
                    Came::Event(event) => events.push(event),
                    Came::End => return Ok(()),
                }
            }
        }
        goes_on = deliver(&mut model, source, events)?;
        if let Some(beat) = cadence.take().map_err(no("timer"))?
            && (model.is_live() || model.is_playing())
        {
            let sampled = source.beat(beat, model.open())?;
            goes_on &= deliver(&mut model, source, sampled)?;
        }
    }
    Ok(())
}

/// Passes the events to the model, and the answers to its requests; `false`: the loop ends. Steps through the log are
/// summed up, so that a key's repeats do not queue.
///
/// # Errors
/// The source can't go on.
pub fn deliver(model: &mut Model, source: &mut dyn Source, events: Vec<Event>) -> Result<bool, Error> {
    let mut events: VecDeque<Event> = events.into();
    let mut steps = 0;
    loop {
        while let Some(event) = events.pop_front() {
            for request in model.update(event) {
                match request {
                    Request::Quit => return Ok(false),
                    Request::Step(by) => steps += by,
                    request => events.extend(source.answer(request, model.open())?),
                }
            }
        }
        match std::mem::take(&mut steps) {
            0 => return Ok(true),
            by => events.extend(source.answer(Request::Step(by), model.open())?),
        }
    }
}

struct Ready {
    is_input: bool,
    is_signal: bool,
}

fn wait(cadence: &Cadence, input: &Input) -> Result<Ready, Error> {
    let [bell, stopped] = input.descriptors();
    let mut ready = [
        PollFd::from_borrowed_fd(bell, PollFlags::IN),
        PollFd::from_borrowed_fd(stopped, PollFlags::IN),
        PollFd::new(cadence, PollFlags::IN),
    ];
    match poll(&mut ready, None) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(errno) => return Err(Error::System { what: "poll", errno }),
    }
    Ok(Ready { is_input: !ready[0].revents().is_empty(), is_signal: !ready[1].revents().is_empty() })
}

fn no(what: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { what, errno }
}
