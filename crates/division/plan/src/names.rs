//! How the kernel's names are written in JSON where their own types can't be read back: versions, controllers and
//! groups. For `serde(with)` only.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use settings::{Controller, Version};

/// `v1`, `v2`.
pub(crate) mod version {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(version: &Version, to: S) -> Result<S::Ok, S::Error> {
        version.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Version, D::Error> {
        // read for each of thousands of places: no string of its own
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Name {
            V1,
            V2,
        }
        Ok(match Name::deserialize(from)? {
            Name::V1 => Version::V1,
            Name::V2 => Version::V2,
        })
    }
}

/// `cpuset`, `io` (also for v1's blkio), `core`.
pub(crate) mod controllers {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(controllers: &[Controller], to: S) -> Result<S::Ok, S::Error> {
        controllers.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Controller>, D::Error> {
        let names = Vec::<String>::deserialize(from)?;
        let find = |name: String| match name.as_str() {
            "core" => Ok(Controller::Core),
            _ => Controller::from_name(&name)
                .ok_or_else(|| D::Error::custom(format!("'{name}' is no controller"))),
        };
        names.into_iter().map(find).collect()
    }
}

/// As the user writes it.
pub(crate) mod group {
    use settings::GroupName;

    use super::*;

    pub(crate) fn serialize<S: Serializer>(group: &GroupName, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(group)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<GroupName, D::Error> {
        let name = String::deserialize(from)?;
        // our groups' own place has the empty name, which users can't write
        if name.is_empty() { Ok(GroupName::base()) } else { GroupName::new(&name).map_err(D::Error::custom) }
    }
}
