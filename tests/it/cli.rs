//! The command line: exit codes, texts, files.
