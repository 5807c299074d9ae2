//! How a worker's hooks reach us: the settings that register them, the small program that the CLI
//! runs for each event, the socket that it speaks to, and the records that come out.
//!
//! A hook tells; only a permission request waits for an answer. Everything here fails closed: where
//! there is any doubt nothing is printed, and the CLI's own dialog stands.
//!
//! Who can do what. Another user reaches neither the folder, nor the socket, nor the token. Another
//! program of the same user can read the token and tell us things in a worker's name, as it could
//! read our memory; it cannot *answer* a request, since answers only ever travel from us to the
//! hook that asked. The same holds for the worker's own tool commands: nothing in their environment
//! leads to the token, and having it would not help them to an answer.

pub mod record;
pub mod relay;
pub mod server;
pub mod settings;

/// Name of the socket in a worker's private folder.
pub const SOCKET: &str = "hooks.sock";
/// Name of the file with the token, which a hook presents first.
pub const TOKEN: &str = "token";
/// Name of the settings file.
pub const SETTINGS: &str = "settings.json";
/// A record may have this many bytes.
pub const MOST_BYTES: usize = 16 * 1024 * 1024;
/// The one event whose hook waits for an answer.
pub const PERMISSION_REQUEST: &str = "PermissionRequest";
