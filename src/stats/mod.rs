//! Pure statistics on slices. Knows no unit, no record, does no I/O; a random seed is an argument.
