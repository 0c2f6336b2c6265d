//! A layout that is applied again and again with other values: the history stays small, the last generations can be undone one by one,
//! and those before them together, as exactly.

use std::fmt::Write as _;

use apply::{Failure, Generation, generations, undo};
use kernel::Kernel;

use crate::{run::meta, shared::Desk, world::Kind};

/// How many generations can be undone one by one.
const UNDOABLE: usize = 10;
const LAYOUTS: usize = 12 * UNDOABLE;

/// One of many: a group that was there, one that always is in the layout, and some that come and go.
fn layout(number: usize) -> String {
    let mut text = format!("[groups.there]\npids.max = {}\n", 100 + number);
    if number.is_multiple_of(3) {
        text.push_str("cpu.weight = 200\n");
    }
    let _ = writeln!(text, "[groups.always]\nmemory.max = \"{}M\"", 64 + number % 7);
    for group in 0..number % 4 {
        let _ = writeln!(text, "[groups.\"some/{group}\"]\npids.max = {}", 10 + number % 5);
    }
    text
}

#[test]
fn a_history_of_many_layouts_stays_small_and_is_undone_wholly() {
    for kind in [Kind::V1, Kind::V2] {
        let mut desk = Desk::new(kind);
        desk.undoable = UNDOABLE;
        for at in desk.fake.hierarchies().unwrap() {
            desk.fake.mkdir(&at, "there").unwrap();
        }
        let before = desk.fake.snapshot();
        let mut pictures = Vec::new();
        let mut sizes = Vec::new();
        for number in 0..LAYOUTS {
            pictures.push(desk.apply(&layout(number)).1);
            let names = std::fs::read_dir(desk.directory.path().join("generations")).unwrap();
            let lengths = names.map(|name| name.unwrap().metadata().unwrap().len());
            sizes.push(lengths.fold((0, 0), |(files, bytes), length| (files + 1, bytes + length)));
        }
        let (files, bytes): (Vec<usize>, Vec<u64>) = sizes.into_iter().unzip();
        assert!(files.iter().max().unwrap() <= &(2 * UNDOABLE), "{kind:?}: {files:?}");
        let (early, late) = bytes.split_at(LAYOUTS / 2);
        assert!(
            late.iter().max().unwrap() <= &(early.iter().max().unwrap() * 11 / 10),
            "{kind:?}: {bytes:?}"
        );

        let all = desk.command(|lock, _| generations(lock.state()).unwrap());
        let joined = all.iter().filter_map(Generation::head).find(|head| head.joins.is_some()).unwrap();
        assert!(joined.words().contains("layouts before it"), "{}", joined.words());
        for picture in pictures.iter().rev().skip(1).take(UNDOABLE) {
            desk.command(|lock, target| undo(lock, target, None, &meta("undo", None))).unwrap();
            assert_eq!(&desk.fake.snapshot(), picture, "{kind:?}");
        }
        let early = desk.command(|lock, target| undo(lock, target, Some(2), &meta("undo", None)));
        assert!(matches!(early, Err(Failure::NoGeneration { requested: 2, .. })), "{early:?}");
        let done = desk.command(|lock, target| undo(lock, target, Some(0), &meta("undo", None))).unwrap();
        assert_eq!(done.left, Vec::<String>::new());
        assert_eq!(desk.fake.snapshot(), before, "{kind:?}");
    }
}
