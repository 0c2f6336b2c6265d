//! Weighted shares in whole units.

/// What somebody wants of a total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// At least this, in any case.
    pub min: usize,
    /// No more than this; counts as `min` where below.
    pub want: usize,
    /// The share of the rest.
    pub weight: u32,
}

/// Deals out a total: each gets its `min`, and as its weight says up to what it wants. The first get what rounding leaves.
/// The sum is the total, or what is wanted where that is less; the `min` of all must fit the total.
pub fn divide(total: usize, claims: &[Claim]) -> Vec<usize> {
    let wanted: usize = claims.iter().map(|claim| claim.want.max(claim.min)).sum();
    if wanted <= total {
        return claims.iter().map(|claim| claim.want.max(claim.min)).collect();
    }
    // as much for each unit of weight as still fits
    let at = |level: f64| -> Vec<usize> {
        let share = |claim: &Claim| (level * f64::from(claim.weight)) as usize;
        claims.iter().map(|claim| share(claim).min(claim.want).max(claim.min)).collect()
    };
    let (mut low, mut high) = (0.0, total as f64);
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        if at(middle).iter().sum::<usize>() <= total { low = middle } else { high = middle }
    }
    let mut got = at(low);
    let mut rest = total.saturating_sub(got.iter().sum());
    while rest > 0 {
        let before = rest;
        for (got, claim) in got.iter_mut().zip(claims) {
            if rest > 0 && *got < claim.want {
                *got += 1;
                rest -= 1;
            }
        }
        if rest == before {
            break;
        }
    }
    got
}
