//! A record's frame: how long it is, its checksum, and what a reader must know to skip it. Little endian:
//! length of what follows the checksum (4 bytes), its CRC-32 (4), kind (1), time in milliseconds since 1970 (8),
//! length before compression (4), then the record, compressed.

use std::io::{self, Read};

/// Bytes before the compressed record.
pub(super) const HEAD: usize = 21;
/// The bytes behind the checksum that belong to the frame.
const CHECKED_HEAD: usize = HEAD - 8;
/// No record is longer, before or after compression.
pub(super) const LONGEST: usize = 64 << 20;

/// A byte that LZ4 wrote stands for no more than this many.
const LZ4_MOST: usize = 255;

/// Whether a record stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It does.
    Key = 1,
    /// It says what changed since the record before.
    Change = 2,
}

/// What is before the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub kind: Kind,
    pub milliseconds: u64,
    raw: u32,
    checksum: u32,
    /// How many bytes of compressed record follow.
    pub length: usize,
    bytes: [u8; CHECKED_HEAD],
}

/// Frames a record, taken at this number of milliseconds after 1970, at the end of `to`; `None` if it is too long.
pub fn put(kind: Kind, milliseconds: u64, record: &[u8], to: &mut Vec<u8>) -> Option<()> {
    if record.len() > LONGEST {
        return None;
    }
    let start = to.len();
    let most = lz4_flex::block::get_maximum_output_size(record.len());
    to.resize(start + HEAD + most, 0);
    let length = lz4_flex::block::compress_into(record, &mut to[start + HEAD..]).ok()?;
    to.truncate(start + HEAD + length);
    let frame = &mut to[start..];
    frame[0..4].copy_from_slice(&u32::try_from(CHECKED_HEAD + length).ok()?.to_le_bytes());
    frame[8] = kind as u8;
    frame[9..17].copy_from_slice(&milliseconds.to_le_bytes());
    frame[17..21].copy_from_slice(&u32::try_from(record.len()).ok()?.to_le_bytes());
    let checksum = crc32fast::hash(&frame[8..]);
    frame[4..8].copy_from_slice(&checksum.to_le_bytes());
    Some(())
}

/// The next frame's head. `Ok(None)`: it is cut off, or none.
pub(super) fn head(from: &mut impl Read) -> io::Result<Option<Head>> {
    let mut bytes = [0; HEAD];
    match from.read_exact(&mut bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    Ok(parse(&bytes))
}

/// The head in these bytes; `None` if they are none.
pub(super) fn parse(bytes: &[u8; HEAD]) -> Option<Head> {
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let kind = match bytes[8] {
        1 => Kind::Key,
        2 => Kind::Change,
        _ => return None,
    };
    let low_high = |at| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let length = (word(0) as usize).checked_sub(CHECKED_HEAD).filter(|length| *length <= LONGEST)?;
    let (checksum, raw, milliseconds) = (word(4), word(17), low_high(9));
    if raw as usize > LONGEST.min(length.saturating_mul(LZ4_MOST)) {
        return None;
    }
    let mut head = Head { kind, milliseconds, raw, checksum, length, bytes: [0; CHECKED_HEAD] };
    head.bytes.copy_from_slice(&bytes[8..]);
    Some(head)
}

impl Head {
    /// The record behind this head; `None`: cut off, or not what was written.
    pub(super) fn record(&self, from: &mut impl Read, packed: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        packed.clear();
        from.take(self.length as u64).read_to_end(packed)?;
        let raw = self.raw as usize;
        if !self.is_of(packed) {
            return Ok(None);
        }
        Ok(lz4_flex::block::decompress(packed, raw).ok().filter(|record| record.len() == raw))
    }
    /// Are these the bytes that the checksum was made of?
    pub(super) fn is_of(&self, packed: &[u8]) -> bool {
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&self.bytes);
        checksum.update(packed);
        packed.len() == self.length && checksum.finalize() == self.checksum
    }

    /// How long the whole frame is.
    pub(super) fn whole(&self) -> u64 {
        (HEAD + self.length) as u64
    }
}
