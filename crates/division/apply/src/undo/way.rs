//! From the generations in effect to those that will be.

use super::*;
use crate::state::{in_place, is_replaced};

/// The state that an undo brings back.
pub(crate) enum To<'m> {
    /// That before the last generation in effect.
    BeforeLast,
    /// That after this generation; 0: before the first.
    After(u32),
    /// The present one without these generations, behind which is no other.
    Without(&'m dyn Fn(&Head) -> bool),
}

/// The generations in effect now, and those that will be.
pub(super) struct Way {
    now: Vec<u32>,
    pub(super) wanted: Vec<u32>,
    /// How many of them are the same.
    common: usize,
}

impl Way {
    pub(super) fn new(now: Vec<u32>, wanted: Vec<u32>) -> Way {
        let common = common(&now, &wanted);
        Way { now, wanted, common }
    }

    /// Those that are undone.
    pub(super) fn undone(&self) -> &[u32] {
        &self.now[self.common..]
    }

    /// Those that stay.
    pub(super) fn kept(&self) -> &[u32] {
        &self.wanted[..self.common]
    }

    /// Those that come back.
    pub(super) fn again(&self) -> &[u32] {
        &self.wanted[self.common..]
    }
}

fn common(now: &[u32], wanted: &[u32]) -> usize {
    now.iter().zip(wanted).take_while(|(one, other)| one == other).count()
}

impl To<'_> {
    /// The generation after which it was so, and those in effect then. `now`: those in effect, of an earlier boot as far as
    /// they outlived it; `is_left`: earlier undos had to leave something.
    pub(super) fn wanted(
        &self,
        state: &State,
        target: Target<'_>,
        (last, now): (u32, &[u32]),
        is_left: bool,
    ) -> Result<(u32, Vec<u32>), Failure> {
        match self {
            To::BeforeLast => match now.split_last() {
                Some((_, rest)) => Ok((rest.last().copied().unwrap_or(0), rest.to_vec())),
                None if is_left => Ok((0, Vec::new())),
                None => Err(Failure::NothingToUndo),
            },
            To::After(0) => Ok((0, Vec::new())),
            To::After(requested) => {
                let boot = target.system.boot();
                Ok((*requested, in_effect_after(state, *requested, (last, now), &boot)?))
            }
            To::Without(is_meant) => without(state, now, is_meant),
        }
    }
}

fn without(state: &State, now: &[u32], is_meant: &dyn Fn(&Head) -> bool) -> Result<(u32, Vec<u32>), Failure> {
    let mut wanted = Vec::new();
    for &generation in now {
        // skip generations without a record
        if !state.is_there(generation) || !is_meant(&state.summary(generation)?.head) {
            wanted.push(generation);
        }
    }
    if wanted.len() == now.len() {
        return Err(Failure::NothingToUndo);
    }
    let before = common(now, &wanted);
    if let Some(behind) = wanted.get(before) {
        let to = before.checked_sub(1).map_or(0, |last| wanted[last]);
        return Err(Failure::Behind { behind: *behind, to });
    }
    Ok((wanted.last().copied().unwrap_or(0), wanted))
}

fn in_effect_after(
    state: &State,
    requested: u32,
    (last, now): (u32, &[u32]),
    boot: &str,
) -> Result<Vec<u32>, Failure> {
    let joined = state.joined()?;
    if !state.finished()?.contains(&requested) || is_replaced(&joined, requested) {
        return Err(Failure::NoGeneration { requested, last });
    }
    let record = state.summary(requested)?;
    let mut wanted = record.in_effect().to_vec();
    in_place(&joined, &mut wanted);
    if record.head.boot != boot && !wanted.is_empty() {
        let left: Vec<u32> = wanted.into_iter().filter(|generation| now.contains(generation)).collect();
        let is_before = left.last() == Some(&requested) && left.len() < now.len() && now.starts_with(&left);
        return if is_before { Ok(left) } else { Err(Failure::OtherBoot { generation: requested }) };
    }
    Ok(wanted)
}
