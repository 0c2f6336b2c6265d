//! Amounts of memory and of time, read with their units (`8G`, `50ms`) and printed so that they read back to
//! the same amount.

use std::{fmt, str::FromStr};

/// An amount of memory or data in bytes. Units are powers of 1024 (`K M G T P`, also `KiB`, `kB`, `GB` as
/// every cgroup tool reads them).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub struct Bytes(pub u64);

/// A duration in microseconds, the unit of the kernel's cpu controller files.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub struct Micros(pub u64);

/// A duration in nanoseconds, the unit of v1's CPU time used.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Rounded down.
    pub fn to_micros(self) -> Micros {
        Micros(self.0 / 1000)
    }
}

/// Why an amount could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// No number at the start.
    #[error("'{text}' is not a number with a unit")]
    NotANumber {
        /// What was given.
        text: String,
    },
    /// A unit that is not of this kind.
    #[error("unknown unit '{unit}' in '{text}' (known: {known})")]
    UnknownUnit {
        /// What was given.
        text: String,
        /// The unit in it.
        unit: String,
        /// The units that are known.
        known: &'static str,
    },
    /// More than 64 bits hold.
    #[error("'{text}' is too large")]
    TooLarge {
        /// What was given.
        text: String,
    },
    /// A fraction of the smallest unit.
    #[error("'{text}' is not a whole number of {smallest}")]
    Fraction {
        /// What was given.
        text: String,
        /// The smallest unit.
        smallest: &'static str,
    },
}

const BYTE_UNITS: [(char, u64); 6] =
    [('E', 1 << 60), ('P', 1 << 50), ('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

impl FromStr for Bytes {
    type Err = UnitError;

    /// Reads `4096`, `0x1000`, `8G`, `8GiB`, `1.5g`, `512 MB`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text)?;
        let known = "K M G T P E, powers of 1024";
        let scale = match unit.to_ascii_uppercase().as_str() {
            "" | "B" => 1,
            unit => BYTE_UNITS
                .iter()
                .find(|(letter, _)| {
                    unit.strip_prefix(*letter).is_some_and(|rest| matches!(rest, "" | "B" | "IB"))
                })
                .map(|&(_, scale)| scale)
                .ok_or_else(|| unknown(text, unit, known))?,
        };
        scaled(text, number, scale, "bytes").map(Bytes)
    }
}

impl fmt::Display for Bytes {
    /// The largest unit that leaves a whole number: `8G`, `1536M`, `4097`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match BYTE_UNITS.iter().find(|&&(_, scale)| self.0 >= scale && self.0.is_multiple_of(scale)) {
            Some((letter, scale)) => write!(f, "{}{letter}", self.0 / scale),
            None => self.0.fmt(f),
        }
    }
}

impl Bytes {
    /// For reading: `4.6G`, `300M`, the largest unit with at most one decimal.
    pub fn rounded(self) -> String {
        let mut amount = self.0 as f64; // one decimal is printed: precise enough
        let mut unit = "";
        for larger in ["K", "M", "G", "T", "P", "E"] {
            if amount < 1023.95 {
                break;
            }
            amount /= 1024.0;
            unit = larger;
        }
        let text = format!("{amount:.1}");
        format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
    }
}

impl FromStr for Micros {
    type Err = UnitError;

    /// Reads `50000` (microseconds), `0xc350`, `50ms`, `1.5s`, `100us`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text)?;
        let scale = match unit {
            "" | "us" | "µs" => 1,
            "ms" => 1_000,
            "s" => 1_000_000,
            "min" => 60_000_000,
            _ => return Err(unknown(text, unit, "us ms s min")),
        };
        scaled(text, number, scale, "microseconds").map(Micros)
    }
}

impl fmt::Display for Micros {
    /// The largest unit that leaves a whole number: `1s`, `50ms`, `1500us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            us if us >= 1_000_000 && us.is_multiple_of(1_000_000) => write!(f, "{}s", us / 1_000_000),
            us if us >= 1_000 && us.is_multiple_of(1_000) => write!(f, "{}ms", us / 1_000),
            us => write!(f, "{us}us"),
        }
    }
}

/// A decimal number as its digits without the point, and how many of them stand behind it.
struct Decimal {
    digits: u128,
    behind: u32,
}

/// The number in hexadecimal digits behind `0x`, as the kernel's files take it too; `None` if the text is not that.
/// Digits after a leading `0` alone are no octal number here, as nobody means them so.
pub fn hexadecimal(text: &str) -> Option<Result<u64, UnitError>> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    let all_hexadecimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let too_large = |_| UnitError::TooLarge { text: text.to_owned() };
    all_hexadecimal.then(|| u64::from_str_radix(digits, 16).map_err(too_large))
}

fn split(text: &str) -> Result<(Decimal, &str), UnitError> {
    let trimmed = text.trim();
    if let Some(number) = hexadecimal(trimmed) {
        return Ok((Decimal { digits: u128::from(number?), behind: 0 }, ""));
    }
    let end = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let wrong = || UnitError::NotANumber { text: text.to_owned() };
    if whole.is_empty() || fraction.contains('.') || (number.ends_with('.')) {
        return Err(wrong());
    }
    if whole.len() + fraction.len() > 30 {
        return Err(UnitError::TooLarge { text: text.to_owned() });
    }
    let digits = format!("{whole}{fraction}").parse().map_err(|_| wrong())?;
    let behind = fraction.len() as u32; // at most 30
    Ok((Decimal { digits, behind }, unit.trim_start()))
}

fn scaled(text: &str, number: Decimal, scale: u64, smallest: &'static str) -> Result<u64, UnitError> {
    let too_large = || UnitError::TooLarge { text: text.to_owned() };
    let product = number.digits.checked_mul(u128::from(scale)).ok_or_else(too_large)?;
    let divisor = 10u128.pow(number.behind); // at most 10^30 < 2^127
    if !product.is_multiple_of(divisor) {
        return Err(UnitError::Fraction { text: text.to_owned(), smallest });
    }
    u64::try_from(product / divisor).map_err(|_| too_large())
}

fn unknown(text: &str, unit: &str, known: &'static str) -> UnitError {
    UnitError::UnknownUnit { text: text.to_owned(), unit: unit.to_owned(), known }
}
