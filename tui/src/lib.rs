//! `claw-tui`: state, keys and pixels.
//!
//! [`run`] waits on one [`inbox`], hands what comes to [`app`], performs the effects that it orders
//! and draws when the [`frame`] clock says so. The [`transcript`], the [`composer`] and the
//! [`dialog`]s own their state; [`view`] lays them out.
//!
//! Deliberately missing: any pty, any worker, any file, any process, and any clock outside `run`.

pub mod app;
pub mod commands;
pub mod composer;
pub mod dialog;
pub mod frame;
pub mod inbox;
pub mod keymap;
pub mod link;
pub mod markdown;
mod numbers;
pub mod pane;
pub mod run;
pub mod sanitise;
pub mod status;
pub mod terminal;
pub mod theme;
pub mod transcript;
pub mod view;

#[cfg(test)]
mod testing;
