//! The machine in stories: a rig stands for the driver and answers every step at once.

mod ends;
mod interleavings;
mod recorded;
mod rig;
mod starting;
mod steering;
mod submitting;
mod whose;
