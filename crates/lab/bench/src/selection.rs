//! Which program is measured, and which rows: `bench [PROGRAM] [--before PROGRAM] [WORD…]`. A word is a part, or text
//! with which a word of a row's name begins: `daemon "1 ms" "16 at"`. With `--before`, the peer of each row is an earlier
//! build of Ringfence.

/// Rows that share their set-up.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Commands,
    Apply,
    Plan,
    Elastic,
    Daemon,
    Burst,
    Strict,
    Watch,
    Lab,
    Cyclic,
}

/// What the arguments ask for.
pub struct Selection {
    pub program: String,
    /// An earlier build, which takes the peers' place in the parts that can do so: commands, apply, elastic, daemon and watch.
    pub before: Option<String>,
    /// None: all.
    parts: Vec<Part>,
    /// Words of a row's name begin with each of them.
    texts: Vec<String>,
}

impl Part {
    pub const ALL: [Part; 10] = [
        Part::Commands,
        Part::Apply,
        Part::Plan,
        Part::Elastic,
        Part::Daemon,
        Part::Burst,
        Part::Strict,
        Part::Watch,
        Part::Lab,
        Part::Cyclic,
    ];

    fn name(self) -> &'static str {
        match self {
            Part::Commands => "commands",
            Part::Apply => "apply",
            Part::Plan => "plan",
            Part::Elastic => "elastic",
            Part::Daemon => "daemon",
            Part::Burst => "burst",
            Part::Strict => "strict",
            Part::Watch => "watch",
            Part::Lab => "lab",
            Part::Cyclic => "cyclic",
        }
    }

    fn named(word: &str) -> Option<Part> {
        Part::ALL.into_iter().find(|part| part.name() == word)
    }
}

impl Selection {
    /// Of the words after the program's name.
    ///
    /// # Errors
    /// Texts without a part; `--before` without a program, or with a part whose peer is no command.
    pub fn of(words: impl Iterator<Item = String>) -> Result<Selection, String> {
        let mut words = words.peekable();
        let program = words.next_if(|word| Part::named(word).is_none() && word != "--before");
        let (mut parts, mut texts, mut before) = (Vec::new(), Vec::new(), None);
        while let Some(word) = words.next() {
            match Part::named(&word) {
                Some(part) => parts.push(part),
                None if word == "--before" => {
                    before = Some(words.next().ok_or("--before needs the path of a program")?);
                }
                None => texts.push(word),
            }
        }
        if before.is_some() {
            let able = [Part::Commands, Part::Apply, Part::Elastic, Part::Daemon, Part::Watch];
            if let Some(part) = parts.iter().find(|part| !able.contains(part)) {
                return Err(format!("the rows of {} have no earlier build as their peer", part.name()));
            }
            if parts.is_empty() {
                parts.extend(able);
            }
        }
        if parts.is_empty() && !texts.is_empty() {
            let names = Part::ALL.map(Part::name).join(", ");
            return Err(format!("which part is meant?\nhint: name one of {names} before '{}'", texts[0]));
        }
        let program = program.unwrap_or_else(|| "target/release/ringfence".to_owned());
        Ok(Selection { program, before, parts, texts })
    }

    pub fn holds(&self, part: Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    /// Whether a row of a part that it holds is wanted.
    pub fn wants(&self, row: &str) -> bool {
        let begins =
            |text: &String| row.match_indices(text).any(|(at, _)| at == 0 || row[..at].ends_with(' '));
        self.texts.iter().all(begins)
    }
}
