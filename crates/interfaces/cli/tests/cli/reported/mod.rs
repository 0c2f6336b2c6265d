//! What the program reports beside what is true of the processes: each row makes a situation, and compares what `plan`,
//! `status`, `where`, `get` and `freeze` say with what /proc and the group file systems show. A row that this machine
//! can't show is reported as ignored, with the reason.

mod above;
mod advised;
mod again;
mod applied;
mod by_hand;
mod by_load;
mod changed;
mod found;
mod killed;
mod renamed;
mod rules;
mod shared;
mod stopped;
mod taken_back;
mod truth;
mod versions;

use std::sync::Arc;

use fake::suite;
use libtest_mimic::Trial;

use crate::{
    desk::Desk,
    world::{Need, World},
};

pub use truth::Stage;

pub struct Row {
    /// What happened, as a sentence.
    name: &'static str,
    needs: &'static [Need],
    case: fn(&mut Stage<'_>),
}

const fn row(name: &'static str, case: fn(&mut Stage<'_>)) -> Row {
    Row { name, needs: &[], case }
}

impl Row {
    const fn needs(mut self, needs: &'static [Need]) -> Row {
        self.needs = needs;
        self
    }
}

pub fn trials(world: &Arc<World>) -> Vec<Trial> {
    let tables = [
        above::ROWS,
        advised::ROWS,
        again::ROWS,
        applied::ROWS,
        by_hand::ROWS,
        by_load::ROWS,
        taken_back::ROWS,
        changed::ROWS,
        found::ROWS,
        killed::ROWS,
        renamed::ROWS,
        rules::ROWS,
        shared::ROWS,
        stopped::ROWS,
        versions::ROWS,
    ];
    tables.into_iter().flatten().map(|row| trial(world, row)).collect()
}

fn trial(world: &Arc<World>, row: &'static Row) -> Trial {
    let (lacks, world) = (world.lacks(&[&[Need::Usual], row.needs].concat()), world.clone());
    suite::trial(format!("reported: {}", row.name), lacks, move || {
        let mut desk = Desk::new(&world, row.name);
        (row.case)(&mut Stage::new(&mut desk));
    })
}
