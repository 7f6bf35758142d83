//! Conditions on metrics: the grammar of `[[expect]]` and, later, of gates.
