//! The layouts that conditions of an experiment name.

use std::{collections::BTreeMap, path::Path};

use experiment::{Experiment, Note, Places};
use layout::{Diagnostic, Source};
use system::files::{self, Trust};
use topology::Machine;

/// What is read of them.
pub struct Layouts {
    /// The experiment's file, then theirs: to show places in.
    pub sources: Vec<Source>,
    /// Text by the path in the experiment's file.
    pub texts: BTreeMap<String, String>,
    /// What a reader of the results must know.
    pub notes: Vec<Note>,
    /// Those of an experiment that is resumed, as they were then.
    recorded: Option<BTreeMap<String, String>>,
}

impl Layouts {
    pub fn from(experiment: &Source, recorded: Option<BTreeMap<String, String>>) -> Layouts {
        Layouts { sources: vec![experiment.clone()], texts: BTreeMap::new(), notes: Vec::new(), recorded }
    }

    /// Puts what they plan on this machine into their conditions. Returns what is wrong.
    pub fn add(
        &mut self,
        experiment: &mut Experiment,
        places: &Places,
        machine: &Machine,
    ) -> Vec<Diagnostic> {
        let named: Vec<(usize, String)> =
            experiment::layouts(experiment).map(|(index, path)| (index, path.to_owned())).collect();
        let mut wrong = Vec::new();
        for (index, path) in named {
            let read = self.read(&path);
            let errors = match read {
                Ok(source) => self.add_one(experiment, index, &path, source, machine),
                Err(error) => {
                    let place = places.value(&format!("condition.{index}.layout"));
                    vec![error.at(self.sources[0].origin(place))]
                }
            };
            wrong.extend(errors);
        }
        wrong
    }

    fn read(&self, path: &str) -> Result<Source, Diagnostic> {
        if let Some(recorded) = &self.recorded {
            let text = recorded.get(path);
            let lost = || Diagnostic::error(format!("the layout {path} is not with the results"));
            return text.map(|text| Source::new(path, text)).ok_or_else(lost);
        }
        let from = Path::new(&*self.sources[0].name).parent().unwrap_or(Path::new(""));
        let loaded = files::load(&[from.join(path)], Trust::of_this_process());
        match loaded.diagnostics.into_iter().next() {
            Some(error) => Err(error),
            None => loaded.sources.into_iter().next().ok_or_else(|| Diagnostic::error("there is no layout")),
        }
    }

    fn add_one(
        &mut self,
        experiment: &mut Experiment,
        index: usize,
        path: &str,
        source: Source,
        machine: &Machine,
    ) -> Vec<Diagnostic> {
        let reading = layout::read(std::slice::from_ref(&source));
        self.texts.insert(path.to_owned(), source.text.to_string());
        self.sources.push(source);
        let Some(desired) = reading.desired else { return reading.diagnostics };
        match experiment::add_layout(experiment, index, &desired, machine, &system::Live) {
            Ok(note) => {
                self.notes.extend(note);
                Vec::new()
            }
            Err(problems) => problems,
        }
    }
}
