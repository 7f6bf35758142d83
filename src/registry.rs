//! To come.
pub struct Registry;
