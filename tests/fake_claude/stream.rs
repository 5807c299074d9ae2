//! placeholder
use crate::argv::Options;
use crate::quirks::Quirks;
use crate::version::Version;
pub async fn run(_v: Version, _o: Options, _q: Quirks) -> i32 {
    1
}
