//! Marks as the lines of a record are read.

use plan::{Affinity, Outsider};
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, Visitor, value::MapAccessDeserializer},
};

use crate::record::{Mark, Result as End};

/// The fields of every kind of mark that is no number alone.
#[derive(Deserialize)]
struct Fields {
    step: Option<usize>,
    affinity: Option<Affinity>,
    /// `held` in formats before 3.
    #[serde(alias = "held")]
    actual: Option<String>,
    was: Option<String>,
    hierarchy: Option<usize>,
    file: Option<String>,
    fresh: Option<String>,
    made: Option<u64>,
    moved: Option<Outsider>,
    result: Option<End>,
}

impl Fields {
    fn mark(self) -> Option<Mark> {
        let Some(step) = self.step else {
            return match self {
                Fields { hierarchy: Some(hierarchy), file: Some(file), fresh: Some(fresh), .. } => {
                    Some(Mark::Fresh { hierarchy, file, fresh })
                }
                Fields { result: Some(result), .. } => Some(Mark::End { result }),
                _ => None,
            };
        };
        match self {
            Fields { affinity: Some(affinity), .. } => Some(Mark::Thread { step, affinity }),
            Fields { actual: Some(actual), .. } => Some(Mark::ReadBack { step, actual }),
            Fields { was: Some(was), .. } => Some(Mark::Was { step, was }),
            Fields { made: Some(made), .. } => Some(Mark::Made { step, made }),
            Fields { moved: Some(moved), .. } => Some(Mark::Moved { step, moved }),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Mark {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Mark, D::Error> {
        struct Marks;

        impl<'de> Visitor<'de> for Marks {
            type Value = Mark;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("a mark")
            }

            fn visit_i64<E: Error>(self, step: i64) -> Result<Mark, E> {
                Ok(Mark::Step(step))
            }

            fn visit_u64<E: Error>(self, step: u64) -> Result<Mark, E> {
                i64::try_from(step).map(Mark::Step).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Mark, A::Error> {
                let fields = Fields::deserialize(MapAccessDeserializer::new(map))?;
                fields.mark().ok_or_else(|| A::Error::custom("it is no mark"))
            }
        }

        from.deserialize_any(Marks)
    }
}

#[cfg(test)]
mod tests {
    use units::CpuSet;

    use super::*;

    #[test]
    fn every_mark_is_read_as_it_was_written() {
        let word = || "a \"word\"\n".to_owned();
        let affinity = Affinity { thread: 7, started: 8, cpus: CpuSet::new(), instead: None };
        let marks = [
            Mark::Step(0),
            Mark::Step(i64::MAX),
            Mark::Step(i64::MIN),
            Mark::Thread { step: 1, affinity },
            Mark::ReadBack { step: 1, actual: word() },
            Mark::Was { step: 1, was: word() },
            Mark::Fresh { hierarchy: 1, file: word(), fresh: word() },
            Mark::Made { step: 1, made: u64::MAX },
            Mark::Moved { step: 1, moved: Outsider { thread: 7, started: 8, from: word() } },
        ];
        for mark in marks {
            let text = serde_json::to_string(&mark).unwrap();
            assert_eq!(serde_json::from_str::<Mark>(&text).unwrap(), mark, "{text}");
        }
        let before_3 = serde_json::from_str::<Mark>(r#"{"step":1,"held":"x"}"#).unwrap();
        assert_eq!(before_3, Mark::ReadBack { step: 1, actual: "x".to_owned() });
        for wrong in [r#"{"step":1}"#, r#"{"hierarchy":1,"file":"x"}"#, "{}", "18446744073709551615", "\"x\""]
        {
            assert!(serde_json::from_str::<Mark>(wrong).is_err(), "{wrong}");
        }
    }
}
