//! Which records of a file were told already, in bounded memory.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Records that are remembered, the newest. About 3 MB when full.
const REMEMBERED: usize = 65_536;

#[derive(Default)]
pub(super) struct Seen {
    known: HashSet<u128>,
    order: VecDeque<u128>,
    restarted: bool,
}

impl Seen {
    /// From now on lines may come again.
    pub fn restarted(&mut self) {
        self.restarted = true;
    }

    /// Whether this one is new. A record is known by its id; one without an id by its line, and only
    /// once the file was begun anew: two equal lines of one file are two records.
    pub fn insert(&mut self, uuid: Option<&str>, line: &[u8]) -> bool {
        let new = self.remember(key(uuid, line));
        new || (uuid.is_none() && !self.restarted)
    }

    fn remember(&mut self, key: u128) -> bool {
        if !self.known.insert(key) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

fn key(uuid: Option<&str>, line: &[u8]) -> u128 {
    if let Some(id) = uuid.and_then(|uuid| uuid::Uuid::parse_str(uuid).ok()) {
        return id.as_u128();
    }
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        salt.hash(&mut hasher);
        match uuid {
            Some(uuid) => uuid.hash(&mut hasher),
            None => line.hash(&mut hasher),
        }
        u128::from(hasher.finish())
    };
    half(0) << 64 | half(1)
}
