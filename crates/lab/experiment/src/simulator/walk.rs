//! Which units each group has had: a group that grows into other CPUs each time walks over the machine.

use policy::Dealer;

/// Of all groups.
pub struct Seen {
    ever: Vec<Vec<bool>>,
    most: Vec<usize>,
    width: usize,
}

impl Seen {
    /// With what they have at the start.
    pub fn new(division: &dyn Dealer) -> Seen {
        let pool = division.pool();
        let ever = vec![vec![false; pool.units().len()]; pool.groups()];
        let mut seen = Seen { ever, most: vec![0; pool.groups()], width: pool.units().width() };
        (0..pool.groups()).for_each(|group| seen.look(division, group));
        seen
    }

    /// Takes in a change of a group.
    pub fn look(&mut self, division: &dyn Dealer, group: usize) {
        let own = division.pool().own(group);
        own.iter().for_each(|unit| self.ever[group][*unit] = true);
        self.most[group] = self.most[group].max(own.len());
    }

    /// CPUs beyond the most at once.
    pub fn walk(&self) -> usize {
        let ever = self.ever.iter().map(|ever| ever.iter().filter(|had| **had).count());
        ever.zip(&self.most).map(|(ever, most)| ever - most).sum::<usize>() * self.width
    }
}
