//! Carries out what was planned: finds where each setting lives, writes, reads back, and on any refusal rolls back
//! what it had changed. It decides nothing: values and order come from `plan`.

mod error;
mod read_back;
mod reading;
mod request;

mod copy; // single settings
mod preview;

// a whole plan, in the order of its way
mod isolation;
mod leftovers;
mod machine_knobs;
mod new_units;
mod observe;
mod occupied;
mod planned;
mod read_only;
mod system;
mod target;
mod unit_files;
mod unsettled;

mod entry;
mod failure;
mod journal_file;
mod lasting;
mod lines;
mod marks;
mod record;
mod spot;
mod state;

mod attempt;
mod before;
mod carry_out;
mod directories;
mod drift;
mod elastic;
mod execute;
mod frequencies;
mod journal;
mod order;
mod originals;
mod outcome;
mod prune;

mod affinity;
mod already;
mod knob;
mod membership;
mod ownership;
mod partitions;
mod perform;
mod performer;
mod stays_in;

mod inside;
mod inverse;
mod join;
mod lift;
mod recover;
mod remainder;
mod rollback;
mod undo;

mod again;
mod change; // single settings once more: by the way of a whole plan
mod confirm;
mod generations;
mod in_effect;
mod line_log;
mod made;
mod pending;
mod ranges;
mod resizes;
mod runs;
mod scheduled;
mod status;
mod unavailable;

mod bound;

mod following;

pub use again::{Again, LAYOUT};
pub use bound::{Bound, BoundUnit, again, bound, bound_units, divided_services};
pub use change::{Change, follow, is_several, set, set_recorded};
pub use confirm::{Verdict, confirm, execute_unless_reverted, revert_unless_confirmed};
pub use copy::copies;
pub use directories::Presence;
pub use drift::{Drift, Split};
pub use elastic::{Bounds, cpus_of, end_saving, resize};
pub use entry::{Before, Entry};
pub use error::Error;
pub use execute::{execute, undo, undo_those};
pub use failure::Failure;
pub use following::{Following, following};
pub use frequencies::{Followed, Frequencies, idle_cpus};
pub use generations::{
    Generation, Unfinished, generations, generations_or_lost, in_effect, in_effect_now, is_gone, last_done,
    newest, unfinished,
};
pub use inside::{Divided, running_units};
pub use isolation::{KnobState, KnobStatus};
pub use journal_file::{JournalFile, begun};
pub use leftovers::Earlier;
pub use line_log::LineLog;
pub use lines::{Damage, Readable, append as append_line, readable};
pub use machine_knobs::{KnobFiles, MachineKnobs, NoKnobs};
pub use made::made;
pub use new_units::{NewUnit, new_units};
pub use observe::{hierarchies, observe};
pub use originals::Originals;
pub use outcome::{Difference, Meta, Outcome, Unmoved};
pub use pending::{Pending, pending};
pub use plan::CPUS;
pub use planned::{expansion, foreign, planned};
pub use preview::{Planned, inverse, preview};
pub use ranges::{RangeNumbers, RangeStatus};
pub use reading::{Reading, all, get, place};
pub use record::{Affinity, By, Ending, Head, Kind, Record, Result as End, RulesFile, Summary, absolute};
pub use recover::{Recovered, Recovery, is_undone, recover};
pub use remainder::Remainder;
pub use request::{InvalidSetting, SettingValue};
pub use resizes::{Controller, Ended, LeftAlone, Measured, Resize, Resizes, Resizing, Says, Subject};
pub use scheduled::{
    drop_undone, in_force, last_in_effect, record_schedules, scheduled, times, unschedulable,
};
pub use spot::Spot;
pub use state::{Lock, STATE, STATE_VARIABLE, State, UNDOABLE, Watch, history, state_directory};
pub use status::{
    GroupStatus, SettingStatus, Task, UnitStatus, isolated_cpus, layout_in_effect, status, unknown,
};
pub use stays_in::{StaysIn, stays_in};
pub use system::{Running, System};
pub use target::Target;
pub use unit_files::{NoUnits, UnitFiles};
pub use unsettled::unsettled;
