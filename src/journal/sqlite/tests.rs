//! Inside of the journal: what cannot be seen from outside.
