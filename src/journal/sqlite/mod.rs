//! A journal in a SQLite file.
