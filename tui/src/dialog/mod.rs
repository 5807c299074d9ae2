//! Questions in front of the conversation: the permission dialog and lists to choose from.
//!
//! Each is state, keys and drawing; time is passed in. Neither decides what an answer means: the
//! permission dialog hands the person's answer to the reply that came with the question, a picker
//! hands out the chosen value.

mod body;
mod choice;
mod edit;
mod frame;
mod permission;
mod permission_draw;
mod picker;

pub use permission::{Answer, DialogOutcome, PermissionDialog, QUIET, SETTLE};
pub use picker::{Picker, PickerOutcome, PickerRow, age, name_rows, session_rows, size};
