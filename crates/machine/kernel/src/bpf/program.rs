//! The instructions of the BPF program that stands for a group's device rules on cgroup v2. Pure: made here,
//! loaded elsewhere, and run by an interpreter in the tests.
//!
//! The kernel calls the program for every open of a device and every mknod(2) by a task of the group or of one
//! below it, with `struct bpf_cgroup_dev_ctx`: the kind of access and of device in one word, major and minor number.
//! It answers 1 to allow. Where several groups of a path have programs, all must allow.

use settings::{DeviceClass, DeviceRule};

use settings::devices::{Behavior, DeviceAccess, bits};

/// One instruction, as the kernel's `struct bpf_insn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    code: u8,
    dst: u8,
    src: u8,
    off: i16,
    imm: i32,
}

// BPF_LDX | BPF_MEM | BPF_W, and so on: include/uapi/linux/bpf.h and bpf_common.h
const LOAD_WORD: u8 = 0x61;
const AND: u8 = 0x54; // of the lower 32 bits, as the next two
const SHIFT_RIGHT: u8 = 0x74;
const SET: u8 = 0xb7;
const JUMP_IF_EQUAL: u8 = 0x15;
const JUMP_IF_NOT: u8 = 0x55;
const EXIT: u8 = 0x95;

/// r0, which holds the answer at the end and is free before; r1 comes with the context.
const VALUE: u8 = 0;
const CONTEXT: u8 = 1;

/// Where the context has what is requested: the class of the device with the access above it, and the numbers.
const CLASS_AND_ACCESS: i16 = 0;
const MAJOR: i16 = 4;
const MINOR: i16 = 8;

/// `BPF_DEVCG_DEV_BLOCK` and `BPF_DEVCG_DEV_CHAR`.
const BLOCK: i32 = 1;
const CHARACTER: i32 = 2;
const EVERY_ACCESS: u32 = 7;

impl Instruction {
    /// With r0 and a constant.
    const fn of(code: u8, imm: i32) -> Instruction {
        Instruction { code, dst: VALUE, src: 0, off: 0, imm }
    }

    /// A word of the context into r0.
    const fn load(off: i16) -> Instruction {
        Instruction { code: LOAD_WORD, dst: VALUE, src: CONTEXT, off, imm: 0 }
    }

    /// As it lies in memory.
    pub(crate) fn to_bytes(self) -> [u8; 8] {
        let registers =
            if cfg!(target_endian = "little") { self.src << 4 | self.dst } else { self.dst << 4 | self.src };
        let ([a, b], [c, d, e, f]) = (self.off.to_ne_bytes(), self.imm.to_ne_bytes());
        [self.code, registers, a, b, c, d, e, f]
    }
}

/// The program that permits what [`DeviceAccess::permits`] does: a block for each exception, then the rest's answer.
pub(crate) fn instructions(access: &DeviceAccess) -> Vec<Instruction> {
    let otherwise = match access.behavior() {
        Behavior::DefaultAllow => 1,
        Behavior::DefaultDeny => 0,
    };
    let mut program: Vec<Instruction> =
        access.exceptions().iter().flat_map(|rule| exception(rule, access.behavior())).collect();
    program.extend([Instruction::of(SET, otherwise), Instruction::of(EXIT, 0)]);
    program
}

/// Returns the answer, or falls through to the next block. No register lives from block to block: the kernel's verifier
/// then sees the same state wherever a block was left, and its time grows with the number of blocks only.
fn exception(rule: &DeviceRule, behavior: Behavior) -> Vec<Instruction> {
    let class = if rule.class == DeviceClass::Block { BLOCK } else { CHARACTER };
    let mut block = vec![
        Instruction::load(CLASS_AND_ACCESS),
        Instruction::of(AND, 0xffff),
        Instruction::of(JUMP_IF_NOT, class),
    ];
    for (at, number) in [(MAJOR, rule.major), (MINOR, rule.minor)] {
        let Some(number) = number else { continue };
        // a number above i32::MAX is no device's: as a negative it is not equal to any either
        block.extend([Instruction::load(at), Instruction::of(JUMP_IF_NOT, number as i32)]);
    }
    block.extend([Instruction::load(CLASS_AND_ACCESS), Instruction::of(SHIFT_RIGHT, 16)]);
    block.extend(match behavior {
        // forbidden as soon as a part of what is requested is
        Behavior::DefaultAllow => [
            Instruction::of(AND, bits(rule) as i32),
            Instruction::of(JUMP_IF_EQUAL, 0),
            Instruction::of(SET, 0),
        ],
        // allowed only if one exception allows all of it
        Behavior::DefaultDeny => [
            Instruction::of(AND, (EVERY_ACCESS & !bits(rule)) as i32),
            Instruction::of(JUMP_IF_NOT, 0),
            Instruction::of(SET, 1),
        ],
    });
    block.push(Instruction::of(EXIT, 0));
    let end = block.len();
    for (index, instruction) in block.iter_mut().enumerate() {
        if matches!(instruction.code, JUMP_IF_EQUAL | JUMP_IF_NOT) {
            instruction.off = (end - index - 1) as i16; // a block has at most 12
        }
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::devices::{MKNOD, READ, Verb, WRITE, rule};

    /// Runs a program on a context as the kernel would; only the instructions that are used are known.
    fn run(program: &[Instruction], access: u32, class: i32, major: u32, minor: u32) -> u64 {
        let context = [access << 16 | class as u32, major, minor];
        let mut registers = [0u64; 11];
        let mut at = 0usize;
        loop {
            let Instruction { code, dst, src, off, imm } = program[at];
            let dst = dst as usize;
            assert!(code != LOAD_WORD || src == CONTEXT);
            at += 1;
            match code {
                LOAD_WORD => registers[dst] = u64::from(context[off as usize / 4]),
                AND => registers[dst] = u64::from(registers[dst] as u32 & imm as u32),
                SHIFT_RIGHT => registers[dst] = u64::from(registers[dst] as u32 >> imm),
                SET => registers[dst] = imm as i64 as u64,
                JUMP_IF_EQUAL if registers[dst] == imm as i64 as u64 => at += off as usize,
                JUMP_IF_NOT if registers[dst] != imm as i64 as u64 => at += off as usize,
                JUMP_IF_EQUAL | JUMP_IF_NOT => {}
                EXIT => return registers[0],
                _ => panic!("unknown instruction {code:#x}"),
            }
        }
    }

    #[test]
    fn a_program_answers_as_the_rules_say_for_every_access_to_every_device() {
        let texts = [
            "c 1:3 r",
            "c 1:3 wm",
            "c 1:* w",
            "c *:3 m",
            "c *:* r",
            "b 8:0 rwm",
            "b 8:* r",
            "b *:* wm",
            "c 1:5 rwm",
            "c 4294967295:4294967295 rwm",
        ];
        let mut checked = 0;
        for start in [None, Some("a")] {
            for picked in 0u32..1 << texts.len() {
                let mut access = DeviceAccess::all();
                let verb = if start.is_some() { Verb::Allow } else { Verb::Deny };
                let first = start.map(|text| (Verb::Deny, text));
                let rest = texts.iter().enumerate().filter(|(index, _)| picked >> index & 1 == 1);
                for (verb, text) in first.into_iter().chain(rest.map(|(_, text)| (verb, *text))) {
                    access.change(verb, &rule(text).unwrap(), None, false).unwrap();
                }
                let program = instructions(&access);
                for (class, number) in [(DeviceClass::Block, BLOCK), (DeviceClass::Character, CHARACTER)] {
                    for (major, minor) in [(1, 3), (1, 5), (8, 0), (8, 3), (4095, 1_048_575)] {
                        for requested in 0..=READ | WRITE | MKNOD {
                            let expected = u64::from(access.permits(class, major, minor, requested));
                            let answer = run(&program, requested, number, major, minor);
                            assert_eq!(answer, expected, "{access:?} {class:?} {major}:{minor} {requested}");
                            checked += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(checked, 2 * 1024 * 2 * 5 * 8);
    }

    #[test]
    fn an_instruction_lies_in_memory_as_the_kernel_reads_it() {
        // `r5 = *(u32 *)(r1 + 8)` and `if r4 != 259 goto +3`, as clang assembles them
        let little = cfg!(target_endian = "little");
        let load = if little { [0x61, 0x15, 8, 0, 0, 0, 0, 0] } else { [0x61, 0x51, 0, 8, 0, 0, 0, 0] };
        let jump = if little { [0x55, 0x04, 3, 0, 3, 1, 0, 0] } else { [0x55, 0x40, 0, 3, 0, 0, 1, 3] };
        assert_eq!(Instruction { dst: 5, ..Instruction::load(MINOR) }.to_bytes(), load);
        assert_eq!(Instruction { dst: 4, off: 3, ..Instruction::of(JUMP_IF_NOT, 259) }.to_bytes(), jump);
    }
}
