//! The `pgstrata` program: parse, call, print the error, exit code.

use std::process::ExitCode;

/// Of the thread that does everything: the default of Linux. What the caller's `ulimit -s` leaves to the first thread may be too little.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    let program = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(pgstrata::cli::main);
    match program.map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        // It has said why.
        Ok(Err(_)) => ExitCode::from(101),
        Err(_) => pgstrata::cli::main(),
    }
}
