//! Which group a process belongs to: rules of a layout or of cgrules.conf against what is known of a process.
