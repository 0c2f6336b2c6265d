//! The order of writes to the sets of one kind (CPUs, or memory nodes) of a tree of groups, such that the kernel takes
//! each of them, no group with tasks is ever without any, and none that is exclusive ever overlaps with another one.
//! A model of the tree is changed step by step, and nothing is done that the kernel's rules forbid in the state then
//! reached. Knows nothing of files.

mod rules;

use units::CpuSet;

pub(crate) use rules::Rules;

/// Whether a group's set is its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flag {
    /// Not.
    Off,
    /// By the kernel's keeping.
    On,
    /// As [`Flag::On`], and the scheduler leaves tasks where they are.
    Isolated,
    /// It was said, but the kernel does not keep it.
    Invalid,
}

impl Flag {
    /// Does the kernel keep others off?
    pub(crate) fn holds(self) -> bool {
        matches!(self, Flag::On | Flag::Isolated)
    }
}

/// A group in the tree.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    /// `None` for the root, which has everything, is exclusive, and is never written.
    pub parent: Option<usize>,
    /// What it has; on v2, nothing stands for all that its parent has.
    pub now: CpuSet,
    /// What it is to have; `None`: it stays as it is.
    pub goal: Option<CpuSet>,
    pub flag: Flag,
    /// `None`: it stays as it is.
    pub goal_flag: Option<Flag>,
    /// Are there tasks in the group itself?
    pub tasks: bool,
    /// Are there tasks in it or below it?
    pub populated: bool,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub cell: usize,
    pub to: To,
    pub why: Why,
}

/// What changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum To {
    Set(CpuSet),
    Flag(Flag),
}

/// Why, where it is not simply what is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// What is wanted.
    Wanted,
    /// Old and new together, so that groups below it can move.
    Widened,
    /// Gives up what others are to have.
    Released,
    /// Not exclusive while sets change hands.
    Opened,
    /// Exclusive once its set is its own.
    Closed,
}

/// No order was found; the cells that could not be brought to their goals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stuck(pub Vec<usize>);

/// The changes that bring every cell to its goal. Parents come before their children in `cells`.
///
/// # Errors
/// [`Stuck`]: the goals contradict the kernel's rules or what stays as it is.
pub(crate) fn sequence(cells: Vec<Cell>, rules: Rules) -> Result<Vec<Change>, Stuck> {
    let mut model = Model::new(cells, rules);
    let limit = 16 * model.cells.len() + 64;
    while !model.sets_done() {
        if !model.advance() && !model.detour() || model.changes.len() > limit {
            return Err(model.stuck());
        }
    }
    model.close();
    if model.flags_done() { Ok(model.changes) } else { Err(model.stuck()) }
}

/// The tree on its way.
pub(crate) struct Model {
    cells: Vec<Cell>,
    children: Vec<Vec<usize>>,
    rules: Rules,
    changes: Vec<Change>,
}

impl Model {
    pub(crate) fn new(cells: Vec<Cell>, rules: Rules) -> Model {
        let mut children = vec![Vec::new(); cells.len()];
        for (index, cell) in cells.iter().enumerate() {
            cell.parent.into_iter().for_each(|parent| children[parent].push(index));
        }
        Model { cells, children, rules, changes: Vec::new() }
    }

    fn goal(&self, cell: usize) -> Option<&CpuSet> {
        self.cells[cell].goal.as_ref().filter(|goal| **goal != self.cells[cell].now)
    }

    /// The flag to reach, if it is not reached; an invalid one is taken back first.
    fn goal_flag(&self, cell: usize) -> Option<Flag> {
        let cell = &self.cells[cell];
        cell.goal_flag.filter(|goal| *goal != cell.flag)
    }

    fn sets_done(&self) -> bool {
        let to_open = |cell: usize| self.goal_flag(cell).is_some() && self.must_open(cell);
        (0..self.cells.len()).all(|cell| self.goal(cell).is_none() && !to_open(cell))
    }

    fn flags_done(&self) -> bool {
        (0..self.cells.len()).all(|cell| self.goal_flag(cell).is_none())
    }

    fn stuck(&self) -> Stuck {
        let open = |cell: &usize| self.goal(*cell).is_some() || self.goal_flag(*cell).is_some();
        Stuck((0..self.cells.len()).filter(open).collect())
    }

    /// Must the flag go off, whatever it is to be later?
    fn must_open(&self, cell: usize) -> bool {
        let cell = &self.cells[cell];
        cell.flag == Flag::Invalid || (cell.goal_flag == Some(Flag::Off) && cell.flag != Flag::Off)
    }

    fn siblings(&self, cell: usize) -> impl Iterator<Item = usize> + '_ {
        let beside = self.cells[cell].parent.map_or(&[][..], |parent| &self.children[parent][..]);
        beside.iter().copied().filter(move |other| *other != cell)
    }

    fn apply(&mut self, cell: usize, to: To, why: Why) {
        match &to {
            To::Set(set) => self.cells[cell].now.clone_from(set),
            To::Flag(flag) => self.cells[cell].flag = *flag,
        }
        self.changes.push(Change { cell, to, why });
    }

    /// Everything that can be brought to its goal right away: downwards for those that grow, upwards for those that
    /// shrink. Did anything change?
    fn advance(&mut self) -> bool {
        let before = self.changes.len();
        for cell in (0..self.cells.len()).rev() {
            if self.must_open(cell) && self.may_open(cell) {
                self.apply(cell, To::Flag(Flag::Off), Why::Wanted);
            }
        }
        let down = 0..self.cells.len();
        for cell in down.clone().chain(down.rev()) {
            let goal = self.goal(cell).filter(|goal| self.may_set(cell, goal)).cloned();
            if let Some(goal) = goal {
                self.apply(cell, To::Set(goal), Why::Wanted);
            }
        }
        self.changes.len() > before
    }

    /// One change that is not wanted for itself, but lets others go on. Was there one?
    fn detour(&mut self) -> bool {
        let cells = 0..self.cells.len();
        let widened = cells.clone().find_map(|cell| Some((cell, self.widened(cell)?)));
        if let Some((cell, set)) = widened {
            self.apply(cell, To::Set(set), Why::Widened);
            return true;
        }
        // children first: their parent can't give up what they have
        let released = cells.clone().rev().find_map(|cell| Some((cell, self.released(cell)?)));
        if let Some((cell, set)) = released {
            self.apply(cell, To::Set(set), Why::Released);
            return true;
        }
        if let Some(cell) = self.opened() {
            self.apply(cell, To::Flag(Flag::Off), Why::Opened);
            return true;
        }
        self.rules.relax()
    }

    /// Old and new together, for a parent whose children wait for that.
    fn widened(&self, cell: usize) -> Option<CpuSet> {
        let goal = self.goal(cell)?;
        let now = &self.cells[cell].now;
        let waits = |child: &&usize| self.goal(**child).is_some_and(|goal| !goal.is_subset(now));
        self.children[cell].iter().find(waits)?;
        // as much as nobody else has: the rest follows
        let taken = self.taken_beside(cell);
        let more = goal.difference(&taken);
        let wide = now.union(&more);
        (wide != *now && self.may_set(cell, &wide)).then_some(wide)
    }

    /// What others beside it keep it from.
    fn taken_beside(&self, cell: usize) -> CpuSet {
        let own = self.cells[cell].flag.holds();
        let others = self.siblings(cell).filter(|other| own || self.cells[*other].flag.holds());
        others.fold(CpuSet::new(), |all, other| all.union(&self.cells[other].now))
    }

    /// What it keeps of what it has, where others wait for the rest.
    fn released(&self, cell: usize) -> Option<CpuSet> {
        let goal = self.goal(cell)?;
        let now = &self.cells[cell].now;
        let remaining = now.intersection(goal);
        let given_up = now.difference(goal);
        let useful =
            !remaining.is_empty() && remaining != *now && !given_up.is_disjoint(&self.wanted_of(cell));
        (useful && self.may_set(cell, &remaining)).then_some(remaining)
    }

    /// What others, beside it or beside a group above it, wait for.
    fn wanted_of(&self, cell: usize) -> CpuSet {
        let upward = std::iter::successors(Some(cell), |cell| self.cells[*cell].parent);
        let waiting = upward.flat_map(|above| self.siblings(above)).filter_map(|other| self.goal(other));
        waiting.fold(CpuSet::new(), |all, goal| all.union(goal))
    }

    /// An exclusive group that is in others' way, or has others in its way: the lowest first, since a parent can't
    /// open before its children.
    fn opened(&self) -> Option<usize> {
        let mut involved = vec![false; self.cells.len()];
        for cell in 0..self.cells.len() {
            let Some(goal) = self.goal(cell) else { continue };
            for other in self.siblings(cell) {
                let exclusive = self.cells[cell].flag.holds() || self.cells[other].flag.holds();
                if exclusive && !self.cells[other].now.is_disjoint(goal) {
                    involved[cell] = true;
                    involved[other] = true;
                }
            }
        }
        for cell in 0..self.cells.len() {
            involved[cell] |= self.cells[cell].parent.is_some_and(|parent| involved[parent]);
        }
        // what is not ours stays as it is
        let ours = |cell: &usize| self.cells[*cell].goal_flag.is_some() && self.cells[*cell].parent.is_some();
        let open = |cell: &usize| {
            involved[*cell] && self.cells[*cell].flag.holds() && ours(cell) && self.may_open(*cell)
        };
        (0..self.cells.len()).rev().find(open)
    }

    /// Flags that are to be on, from the top down.
    fn close(&mut self) {
        for cell in 0..self.cells.len() {
            if let Some(flag) = self.goal_flag(cell).filter(|_| self.may_close(cell)) {
                self.apply(cell, To::Flag(flag), Why::Closed);
            }
        }
    }
}
