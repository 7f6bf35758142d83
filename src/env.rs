//! What a strategy sees of the world.

/// One worker's handle on its world.
#[derive(Debug)]
pub struct Env {}
