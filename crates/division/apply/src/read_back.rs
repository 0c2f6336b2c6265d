//! Compares what the kernel has after a write with what was requested. Reads nothing itself.

use plan::SettingRequest;
use settings::{OutOfRange, ReadBack, Side, Value};

/// What the kernel rounded, clamped or left out.
pub(crate) fn difference(request: &SettingRequest, actual: &Value) -> Vec<String> {
    let (requested, now) = (request.found.show(&request.value), request.found.show(actual));
    let sentence = |reason| format!("{requested} was written, the kernel has {now}: {reason}");
    reason(request, actual).map(sentence).into_iter().collect()
}

/// Why it is not what was requested.
pub(crate) fn reason(request: &SettingRequest, actual: &Value) -> Option<String> {
    let exact = request.value == *actual;
    if exact || matches!(request.value, Value::Rules(_)) {
        return None;
    }
    let Side::Has(binding) = request.found.side(request.place.version) else { return None };
    let (requested, now) = (request.found.show(&request.value), request.found.show(actual));
    let reason = match (binding.read_back, binding.out_of_range) {
        (ReadBack::Rounded(how) | ReadBack::Rescaled(how), _)
            if request.found.satisfied(&request.value, actual) =>
        {
            how.to_owned()
        }
        _ if request.found.satisfied(&request.value, actual) => return None,
        (_, OutOfRange::Clamped) => "the kernel takes the nearest value in its range".to_owned(),
        (_, OutOfRange::Misread(how)) => how.to_owned(),
        _ => "the kernel has another value than was written".to_owned(),
    };
    (requested != now).then_some(reason)
}
