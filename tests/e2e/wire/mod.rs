//! The HTTP clients against a server on a real socket that streams, stalls, cuts and refuses.

mod chat;
mod faults;
mod messages;
mod requests;
mod secrets;
mod splits;
mod stage;
