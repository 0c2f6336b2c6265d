//! The groups that a command names, wherever it takes them.

use super::Command;

impl Command {
    /// As they were typed, for another name to be put in the place of one.
    pub fn groups(&mut self) -> Vec<&mut String> {
        match self {
            Command::Create(create) => vec![&mut create.group],
            Command::Delete(delete) => delete.groups.iter_mut().collect(),
            Command::List(list) => list.group.iter_mut().collect(),
            Command::Get(get) | Command::Stat(get) => vec![&mut get.group],
            Command::Set(set) => [&mut set.group].into_iter().chain(&mut set.from).collect(),
            Command::Run(run) => vec![&mut run.group],
            Command::Move(moving) => vec![&mut moving.group],
            Command::Freeze(wait) | Command::Thaw(wait) => vec![&mut wait.group],
            Command::Kill(kill) => vec![&mut kill.wait.group],
            Command::Perf(perf) => vec![&mut perf.group],
            Command::Watch(watch) => watch.pictures.groups.iter_mut().collect(),
            Command::Top(top) => top.pictures.groups.iter_mut().collect(),
            Command::Web(web) => web.groups.iter_mut().collect(),
            Command::Record(record) => record.groups.iter_mut().collect(),
            Command::Metrics(metrics) => metrics.groups.iter_mut().collect(),
            Command::Why(why) => vec![&mut why.group],
            Command::Where(places) => {
                places.of.iter_mut().filter(|one| one.parse::<u32>().is_err()).collect()
            }
            _ => Vec::new(),
        }
    }
}
