//! Numbers of as many bytes as they need (LEB128), small differences of either sign as small numbers (zigzag), and
//! texts behind their length. Reading never goes past the end and never trusts a length.

pub(super) fn put(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80); // the low seven bits
        number >>= 7;
    }
    to.push(number as u8);
}

/// `to - from`, wrapping: every pair of numbers has one.
pub(super) fn put_difference(into: &mut Vec<u8>, from: u64, to: u64) {
    let difference = to.wrapping_sub(from) as i64;
    put(into, ((difference << 1) ^ (difference >> 63)) as u64);
}

pub(super) fn put_text(to: &mut Vec<u8>, text: &str) {
    put(to, text.len() as u64);
    to.extend_from_slice(text.as_bytes());
}

/// What is left to be read. `None` everywhere: the bytes end, or are not what was to follow.
pub(super) struct Bytes<'b>(pub &'b [u8]);

impl<'b> Bytes<'b> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            number |= part << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(super) fn differing_from(&mut self, from: u64) -> Option<u64> {
        let zigzag = self.number()?;
        let difference = (zigzag >> 1) as i64 ^ -((zigzag & 1) as i64);
        Some(from.wrapping_add(difference as u64))
    }

    pub(super) fn text(&mut self) -> Option<&'b str> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    /// How many things follow that take at least a byte each.
    pub(super) fn count(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_differences_read_back() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX];
        for from in numbers {
            for to in numbers {
                let mut bytes = Vec::new();
                put(&mut bytes, to);
                put_difference(&mut bytes, from, to);
                let mut bytes = Bytes(&bytes);
                assert_eq!((bytes.number(), bytes.differing_from(from)), (Some(to), Some(to)));
                assert!(bytes.0.is_empty());
            }
        }
    }

    #[test]
    fn what_was_cut_off_or_is_too_long_is_no_number() {
        assert_eq!(Bytes(&[0x80]).number(), None);
        assert_eq!(Bytes(&[0xff; 11]).number(), None);
        assert_eq!(Bytes(&[5, b'a']).text(), None);
        assert_eq!(Bytes(&[200, 1, 0]).count(), None);
    }
}
