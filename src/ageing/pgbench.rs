//! Ageing by a server under pgbench: the reference for page rewrite, and the only mechanism here that bloats the
//! database.

use super::AgeingSubject;
use crate::cluster::client::Client;
use crate::cluster::server::{self, CHECKPOINT_LIMIT, Server};
use crate::cluster::spec::ServerSpec;
use crate::error::Result;
use crate::host::command::Command;
use crate::host::time::{micros, now};
use crate::record::age::Bloat;

const CLIENTS: u64 = 4;

/// Runs tpcb-like transactions, with a checkpoint whenever about a batch of account pages is dirty, until the server
/// has written the data `times` over.
pub fn run(subject: &AgeingSubject<'_>, spec: &ServerSpec, times: u64, data_bytes: u64, batch: u64) -> Result<Bloat> {
    let begun = now();
    let server = Server::start(subject.host, spec.clone(), subject.interrupt)?;
    let mut client = server.connect_with_limit(CHECKPOINT_LIMIT)?;
    client.query("CHECKPOINT")?;
    let version = server.spec.install.major;
    let before = written_bytes(&mut client, version)?;
    let each = batch.div_ceil(CLIENTS);
    let mut done = Bloat::default();
    while done.written_bytes < data_bytes.saturating_mul(times) {
        subject.interrupt.check()?;
        let pgbench = Command::new(spec.install.bin.join("pgbench"))
            .args(["-n", "-b", "tpcb-like", "-c", &CLIENTS.to_string(), "-j", "2", "-t", &each.to_string()])
            .args(server.client_args()?)
            .arg(server::DATABASE)
            // Pages age the stack; commits need not wait.
            .env("PGOPTIONS", "-c synchronous_commit=off")
            .user(&spec.user);
        subject.host.run(&pgbench)?;
        client.query("CHECKPOINT")?;
        done.transactions += each * CLIENTS;
        done.checkpoints += 1;
        done.written_bytes = written_bytes(&mut client, version)?.saturating_sub(before);
    }
    drop(client);
    server.stop(subject.host)?;
    done.elapsed_us = micros(begun.elapsed());
    Ok(done)
}

/// Bytes of data pages written since the server started, by any process.
fn written_bytes(client: &mut Client, version: u32) -> Result<u64> {
    // Since PostgreSQL 18 the view counts bytes; since 17 one write may cover several pages.
    let sql = match version {
        18.. => "select coalesce(sum(write_bytes), 0)::bigint from pg_stat_io where object = 'relation'",
        17 => {
            "select current_setting('block_size')::bigint * (buffers_written + (select buffers_clean from pg_stat_bgwriter) + (select coalesce(sum(writes), 0)::bigint \
             from pg_stat_io where object = 'relation' and backend_type not in ('checkpointer', 'background writer'))) \
             from pg_stat_checkpointer"
        }
        _ => {
            "select current_setting('block_size')::bigint * (buffers_checkpoint + buffers_clean + buffers_backend) \
             from pg_stat_bgwriter"
        }
    };
    client.number(sql)
}
