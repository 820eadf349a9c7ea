//! Processes of the machine.
