//! What a group used with each of the last samples, for the small curves.

use std::collections::VecDeque;

use exporters::view::{Heading, Row, Value};

use crate::figures::of_row;

/// The samples stored: as many as a curve is wide.
const MAX_SAMPLES: usize = 240;

/// Figures of one group, oldest first; `None` where the kernel has none.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    pub cpu: VecDeque<Option<f32>>,
    pub memory: VecDeque<Option<f32>>,
    /// Read and written together.
    pub io: VecDeque<Option<f32>>,
}

impl History {
    pub(crate) fn push(&mut self, headings: &[Heading], row: &Row) {
        let figure = |name: &str| match of_row(headings, row, name) {
            Value::At(number) => Some(number as f32),
            _ => None,
        };
        let io = match (figure("io.rbytes"), figure("io.wbytes")) {
            (None, None) => None,
            (read, written) => Some(read.unwrap_or(0.0) + written.unwrap_or(0.0)),
        };
        keep(&mut self.cpu, figure("cpu.usage"));
        keep(&mut self.memory, figure("memory.current"));
        keep(&mut self.io, io);
    }
}

fn keep(of: &mut VecDeque<Option<f32>>, number: Option<f32>) {
    if of.len() == MAX_SAMPLES {
        of.pop_front();
    }
    of.push_back(number);
}
