//! The `pgstrata` program: parse, call, print the error, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    pgstrata::cli::main()
}
