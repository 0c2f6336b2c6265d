//! Records that were made to take memory.

use super::{
    frame::{self, Kind},
    numbers::{put, put_text},
    record::{Decoder, allowance},
};
use crate::sample::Sample;

/// A key record of two tables with columns of one field and rows without a name, and nothing in any cell.
fn bomb(columns: u64, rows: u64) -> Vec<u8> {
    let mut record = Vec::new();
    (0..6).for_each(|_| put(&mut record, 0));
    for (columns, rows) in [(columns, rows), (0, 0)] {
        put(&mut record, columns);
        for _ in 0..columns {
            put_text(&mut record, "x");
            put_text(&mut record, "");
            record.push(0);
        }
        put(&mut record, rows);
        (0..rows).for_each(|_| put_text(&mut record, ""));
        (0..2 * rows).for_each(|_| put(&mut record, 0));
        put(&mut record, columns * rows);
    }
    record
}

fn decoded(record: &[u8], file: usize) -> Option<()> {
    Decoder::default().decode((Kind::Key, file as u64), record, &mut Sample::default())
}

/// Attack finding 20: 12 kB of file became 1.8 GB of cells.
#[test]
fn a_small_record_can_not_ask_for_a_large_table() {
    for (columns, rows) in [(8_000, 8_000), (1, 20_000_000)] {
        let record = bomb(columns, rows);
        let mut framed = Vec::new();
        frame::put(Kind::Key, 1, &record, &mut framed).unwrap();
        assert!(framed.len() < 400_000, "{}", framed.len());
        assert_eq!(decoded(&record, framed.len()), None, "{columns} columns, {rows} rows");
    }
    // as large as real ones are
    assert_eq!(decoded(&bomb(400, 10_000), 60_000), Some(()));
    assert!(allowance(60_000) < 200 << 20);
}

/// A head that promises more than LZ4 can unpack is none: space is made before it is unpacked.
#[test]
fn a_frame_can_not_promise_more_than_its_bytes_can_hold() {
    let mut framed = Vec::new();
    frame::put(Kind::Key, 1, &[7; 100], &mut framed).unwrap();
    let head = |framed: &[u8]| frame::parse(framed[..frame::HEAD].try_into().unwrap()).is_some();
    assert!(head(&framed));
    framed[17..21].copy_from_slice(&(60u32 << 20).to_le_bytes());
    assert!(!head(&framed));
}
