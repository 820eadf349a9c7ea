//! The whole program: real loop devices, real PostgreSQL, real kill -9.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

mod adaptive;
mod ageing;
mod bad_input;
mod capacity;
mod cycles;
mod drives;
mod durability;
mod environment;
mod follow;
mod full;
mod full_disk;
mod guests;
mod interrupt;
mod kill;
mod knobs;
mod machine;
mod mutations;
mod pull;
mod recovery;
mod repeats;
mod resume;
mod shipped;
mod slurm;
mod slurm_site;
mod snapshots;
mod spread;
mod stopped;
mod strays;
mod submit;
mod terminal;
mod verdicts;
mod volumes;
mod whole_run;
mod workshop;
mod wrong_input;
