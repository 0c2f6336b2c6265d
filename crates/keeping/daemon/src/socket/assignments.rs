//! The body that names settings with their values, `{"memory.max": "8G", "pids.max": 100}`. A setting that is named twice
//! is an error: neither value may silently win.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Visitor},
};

/// More than any group has.
const MOST: usize = 256;

/// Settings and values in the body's order.
#[derive(Debug, Clone, PartialEq, Eq, schemars::JsonSchema)]
#[schemars(with = "std::collections::BTreeMap<String, String>")]
pub struct Assignments(pub Vec<(String, String)>);

impl Serialize for Assignments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(setting, value)| (setting, value)))
    }
}

impl<'de> Deserialize<'de> for Assignments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Assignments, D::Error> {
        deserializer.deserialize_map(Read)
    }
}

struct Read;

#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Word(String),
    Number(serde_json::Number),
}

impl<'de> Visitor<'de> for Read {
    type Value = Assignments;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of settings with their values as strings or numbers")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Assignments, M::Error> {
        let mut read: Vec<(String, String)> = Vec::new();
        while let Some((setting, value)) = map.next_entry::<String, Text>()? {
            if read.iter().any(|(known, _)| *known == setting) {
                return Err(M::Error::custom(format!("'{}' is named twice", setting.escape_debug())));
            }
            if read.len() == MOST {
                return Err(M::Error::custom(format!("more than {MOST} settings")));
            }
            read.push((
                setting,
                match value {
                    Text::Word(word) => word,
                    Text::Number(number) => number.to_string(),
                },
            ));
        }
        Ok(Assignments(read))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_strings_or_numbers_and_no_setting_is_named_twice() {
        let read = |text: &str| serde_json::from_str::<Assignments>(text).map(|read| read.0);
        let two = vec![("pids.max".to_owned(), "100".to_owned()), ("memory.max".to_owned(), "8G".to_owned())];
        assert_eq!(read(r#"{"pids.max": 100, "memory.max": "8G"}"#).unwrap(), two);
        assert_eq!(read(&serde_json::to_string(&Assignments(two.clone())).unwrap()).unwrap(), two);
        for wrong in
            [r#"{"a":"1","a":"2"}"#, r#"{"a":null}"#, r#"{"a":[1]}"#, "[]", "{", r#"{"a":true}"#, "\"x\""]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let many: Vec<String> = (0..257).map(|n| format!("\"s{n}\":1")).collect();
        assert!(read(&format!("{{{}}}", many.join(","))).is_err());
    }
}
