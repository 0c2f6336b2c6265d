//! Which colour each ink is by day and by night. The series are Okabe and Ito's for readers who see colours
//! differently (jfly.uni-koeln.de/color), darkened by day and lightened by night until each stands out from its paper
//! by 3:1 (WCAG 2.2, 1.4.11), which a test works out; text by 4.5:1.

use super::scene::Ink;

/// Red, green, blue.
pub type Colour = [u8; 3];

/// How many series differ.
pub const SERIES: usize = 7;

const DAY: [Colour; SERIES] = [
    [0x00, 0x6b, 0xb3], // blue
    [0xc9, 0x52, 0x00], // vermilion
    [0x00, 0x86, 0x65], // bluish green
    [0xa8, 0x4f, 0x88], // reddish purple
    [0x96, 0x72, 0x00], // yellow, dark
    [0x2d, 0x8f, 0xc4], // sky blue
    [0x5c, 0x5c, 0x5c], // grey
];
const NIGHT: [Colour; SERIES] = [
    [0x4c, 0xa6, 0xe8],
    [0xf0, 0x80, 0x3c],
    [0x2b, 0xbd, 0x95],
    [0xdb, 0x8f, 0xbe],
    [0xe0, 0xc0, 0x48],
    [0x8c, 0xd0, 0xf5],
    [0xad, 0xad, 0xad],
];
const RAMP_DAY: [Colour; Ink::STEPS] = [
    [0xee, 0xf4, 0xfa],
    [0xd3, 0xe4, 0xf3],
    [0xb0, 0xd0, 0xea],
    [0x83, 0xb6, 0xdd],
    [0x3f, 0x80, 0xb8],
    [0x1f, 0x62, 0x9c],
    [0x0b, 0x3c, 0x6b],
];
const RAMP_NIGHT: [Colour; Ink::STEPS] = [
    [0x1c, 0x26, 0x30],
    [0x1e, 0x34, 0x47],
    [0x1f, 0x45, 0x63],
    [0x22, 0x59, 0x83],
    [0x6d, 0xab, 0xdb],
    [0x96, 0xc6, 0xea],
    [0xc6, 0xe2, 0xf7],
];

/// The colour of an ink.
pub fn colour(ink: Ink, night: bool) -> Colour {
    let surface = if night { [0x16, 0x19, 0x1d] } else { [0xff, 0xff, 0xff] };
    let series = |index: usize| if night { NIGHT[index % SERIES] } else { DAY[index % SERIES] };
    let by = |day, at_night| if night { at_night } else { day };
    match ink {
        Ink::Text => by([0x1b, 0x1f, 0x24], [0xe8, 0xeb, 0xee]),
        Ink::Muted => by([0x56, 0x5f, 0x69], [0xa3, 0xad, 0xb8]),
        Ink::Grid => by([0xdd, 0xe1, 0xe6], [0x33, 0x3a, 0x42]),
        Ink::Surface => surface,
        Ink::Shade => by([0xf1, 0xf3, 0xf5], [0x22, 0x27, 0x2d]),
        Ink::Target => by([0x1b, 0x1f, 0x24], [0xe8, 0xeb, 0xee]),
        Ink::Rejected => by([0xb8, 0x1f, 0x3c], [0xff, 0x7a, 0x8c]),
        Ink::Series(index) => series(index),
        Ink::Body(index) => mix(series(index), surface, if night { 0.45 } else { 0.36 }),
        Ink::Ramp(step) => (if night { RAMP_NIGHT } else { RAMP_DAY })[step.min(Ink::STEPS - 1)],
        Ink::OnRamp(step) if step >= 4 => by([0xff, 0xff, 0xff], [0x0d, 0x14, 0x1b]),
        Ink::OnRamp(_) => colour(Ink::Text, night),
    }
}

/// As style sheets name it.
pub fn name(ink: Ink) -> String {
    match ink {
        Ink::Text => "text".to_owned(),
        Ink::Muted => "muted".to_owned(),
        Ink::Grid => "grid".to_owned(),
        Ink::Surface => "surface".to_owned(),
        Ink::Shade => "shade".to_owned(),
        Ink::Target => "target".to_owned(),
        Ink::Rejected => "rejected".to_owned(),
        Ink::Series(index) => format!("series{}", index % SERIES),
        Ink::Body(index) => format!("body{}", index % SERIES),
        Ink::Ramp(step) => format!("ramp{}", step.min(Ink::STEPS - 1)),
        Ink::OnRamp(step) => format!("onramp{}", step.min(Ink::STEPS - 1)),
    }
}

/// Each ink once.
pub fn all() -> impl Iterator<Item = Ink> {
    let fixed = [Ink::Text, Ink::Muted, Ink::Grid, Ink::Surface, Ink::Shade, Ink::Target, Ink::Rejected];
    let series = (0..SERIES).flat_map(|index| [Ink::Series(index), Ink::Body(index)]);
    let ramp = (0..Ink::STEPS).flat_map(|step| [Ink::Ramp(step), Ink::OnRamp(step)]);
    fixed.into_iter().chain(series).chain(ramp)
}

/// `#rrggbb`.
pub fn hex([red, green, blue]: Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The custom properties of a style sheet, by day or night.
pub fn properties(night: bool) -> String {
    all().map(|ink| format!("--{}:{};", name(ink), hex(colour(ink, night)))).collect()
}

fn mix(front: Colour, back: Colour, share: f64) -> Colour {
    let mixed = |index: usize| f64::from(front[index]) * share + f64::from(back[index]) * (1.0 - share);
    [0, 1, 2].map(|index| mixed(index).round() as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WCAG 2.2's contrast ratio.
    fn contrast(one: Colour, other: Colour) -> f64 {
        let luminance = |colour: Colour| {
            let linear = colour.map(|part| {
                let part = f64::from(part) / 255.0;
                if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
            });
            0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    #[test]
    fn marks_stand_out_by_3_and_text_by_4_and_a_half() {
        for night in [false, true] {
            let against = |ink, ground| contrast(colour(ink, night), colour(ground, night));
            for index in 0..SERIES {
                let seen = against(Ink::Series(index), Ink::Surface);
                assert!(seen >= 3.0, "series {index}, night {night}: {seen}");
            }
            for ink in [Ink::Text, Ink::Muted, Ink::Rejected] {
                assert!(
                    against(ink, Ink::Surface) >= 4.5 && against(ink, Ink::Shade) >= 4.5,
                    "{ink:?} {night}"
                );
            }
            for step in 0..Ink::STEPS {
                let seen = against(Ink::OnRamp(step), Ink::Ramp(step));
                assert!(seen >= 4.0, "step {step}, night {night}: {seen}");
            }
        }
    }
}
