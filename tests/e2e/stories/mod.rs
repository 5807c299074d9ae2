//! Whole stories on the real program: a real terminal, real HTTP, real files. Each test is named
//! after what it shows.

mod backends;
mod claude;
mod commands;
mod composing;
mod context;
mod demo;
mod doctor;
mod errors;
mod leaving;
mod pool;
mod reading;
mod safety;
mod sessions;
mod streaming;
mod thinking;
mod tools;
mod typing;
mod without_screen;
mod worker_pane;
