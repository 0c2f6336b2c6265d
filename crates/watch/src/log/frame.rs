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

/// Whether a record stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Key = 1,
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

/// Frames a record at the end of `to`; `None` if it is too long.
pub(super) fn put(kind: Kind, milliseconds: u64, record: &[u8], to: &mut Vec<u8>) -> Option<()> {
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
    let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let kind = match bytes[8] {
        1 => Kind::Key,
        2 => Kind::Change,
        _ => return Ok(None),
    };
    let low_high = |at| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let length = (word(0) as usize).checked_sub(CHECKED_HEAD).filter(|length| *length <= LONGEST);
    let Some(length) = length else { return Ok(None) };
    let (checksum, raw, milliseconds) = (word(4), word(17), low_high(9));
    let mut head = Head { kind, milliseconds, raw, checksum, length, bytes: [0; CHECKED_HEAD] };
    head.bytes.copy_from_slice(&bytes[8..]);
    Ok(Some(head))
}

impl Head {
    /// The record behind this head; `None`: cut off, or not what was written.
    pub(super) fn record(&self, from: &mut impl Read, packed: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        packed.clear();
        from.take(self.length as u64).read_to_end(packed)?;
        let mut checksum = crc32fast::Hasher::new();
        checksum.update(&self.bytes);
        checksum.update(packed);
        let raw = self.raw as usize;
        if packed.len() != self.length || checksum.finalize() != self.checksum || raw > LONGEST {
            return Ok(None);
        }
        Ok(lz4_flex::block::decompress(packed, raw).ok().filter(|record| record.len() == raw))
    }
}
