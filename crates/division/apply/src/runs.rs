//! Numbers of generations in a record, with runs of them as two numbers: `[[1, 200], 205]`. Each record has those in effect, of which
//! there may be hundreds.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// No history has more: another user's record may say anything.
const LONGEST: u32 = 1 << 20;

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Run {
    One(u32),
    FromTo(u32, u32),
}

pub fn serialize<S: Serializer>(numbers: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
    let runs = numbers.chunk_by(|one, next| one.checked_add(1) == Some(*next));
    serializer.collect_seq(runs.flat_map(|run| match run {
        [first, .., last] if run.len() > 2 => vec![Run::FromTo(*first, *last)],
        run => run.iter().map(|number| Run::One(*number)).collect(),
    }))
}

pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    let mut numbers = Vec::new();
    for run in Vec::<Run>::deserialize(deserializer)? {
        match run {
            Run::One(number) => numbers.push(number),
            Run::FromTo(first, last) if last.checked_sub(first).is_some_and(|length| length < LONGEST) => {
                numbers.extend(first..=last);
            }
            Run::FromTo(first, last) => {
                return Err(D::Error::custom(format_args!("no run of generations: {first} to {last}")));
            }
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct List(#[serde(with = "super")] Vec<u32>);

    #[test]
    fn runs_are_two_numbers_and_older_lists_are_read() {
        for (numbers, text) in [
            (vec![], "[]"),
            (vec![7], "[7]"),
            (vec![1, 2], "[1,2]"),
            (vec![1, 2, 3, 7, 9, 10, 11], "[[1,3],7,[9,11]]"),
            (vec![u32::MAX], "[4294967295]"),
        ] {
            assert_eq!(serde_json::to_string(&List(numbers.clone())).unwrap(), text);
            assert_eq!(serde_json::from_str::<List>(text).unwrap().0, numbers);
        }
        assert_eq!(serde_json::from_str::<List>("[1,2,3]").unwrap().0, [1, 2, 3]);
    }

    #[test]
    fn no_run_is_longer_than_a_history_or_goes_backwards() {
        for text in ["[[1,4294967295]]", "[[3,1]]", "[[1]]", "[\"1\"]"] {
            assert!(serde_json::from_str::<List>(text).is_err(), "{text}");
        }
    }
}
