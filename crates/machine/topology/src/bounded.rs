//! Lists of our JSON that may not be longer than Linux's own bounds: each of their elements may hold a set of
//! CPUs, and a short text could ask for gigabytes of them.

use std::{fmt, marker::PhantomData};

use serde::{Deserialize, Deserializer, de};

/// A list of at most `MOST` elements.
pub(crate) fn list<'de, D, T, const MOST: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    from.deserialize_seq(Elements::<T, MOST>(PhantomData))
}

/// A list of at most `MOST` elements that may be absent.
pub(crate) fn some_list<'de, D, T, const MOST: usize>(from: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    list::<D, T, MOST>(from).map(Some)
}

struct Elements<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> de::Visitor<'de> for Elements<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST}")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            if list.len() == MOST {
                return Err(de::Error::invalid_length(MOST + 1, &self));
            }
            list.push(element);
        }
        Ok(list)
    }
}
