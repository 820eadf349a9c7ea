//! The server's activity: raw counters of its statistics views, in versions 12 to 18.
//!
//! One query per second on a connection of its own. Backends report their counts at the end of a transaction, but at
//! most once a second (`PGSTAT_MIN_INTERVAL`), so a row may lag by about that much; the WAL position
//! (`pg_wal_lsn_bytes`) is exact. The counts include pgstrata's own connections: one transaction per second here, ten
//! from [`super::waits`].
//!
//! A figure is absent if the version does not have it or settings disable it (times of WAL writes and syncs without
//! `track_wal_io_timing`).

mod statistics;

pub use statistics::statistics_sql;

use super::{Reading, SampledObjects, Sampler, connect, count};
use crate::cluster::client::{Client, ServerAddress, TextRow};
use crate::error::{Error, Result};
use crate::host::Host;
use crate::record::column::Column;
use crate::record::seconds::Row;
use statistics::STATISTICS;

pub struct Postgres;

impl Sampler for Postgres {
    fn about(&self) -> (&'static str, &'static str) {
        ("postgres", "What the server did, from its statistics views: raw counters, for versions 12 to 18.")
    }

    fn columns(&self, _target: &SampledObjects) -> Vec<Column> {
        STATISTICS.iter().map(|(column, _)| column.column()).collect()
    }

    fn open(&self, _host: &Host, target: &SampledObjects) -> Result<Reading> {
        let address = target.server.clone().ok_or_else(|| Error::host("the workload runs without a server"))?;
        // `None` after a failure: the next reading reconnects.
        let mut session = Some(begin(&address)?);
        Ok(Box::new(move || {
            let (mut client, sql) = session.take().map_or_else(|| begin(&address), Ok)?;
            let values = values(&client.query(&sql)?)?;
            session = Some((client, sql));
            Ok(values)
        }))
    }
}

/// Connects; the query is that for the server's version.
fn begin(address: &ServerAddress) -> Result<(Client, String)> {
    let mut client = connect(address)?;
    let sql = statistics_sql(client.number("SHOW server_version_num")?)?;
    Ok((client, sql))
}

/// The single row of [`statistics_sql`]: a whole number or none for each figure.
fn values(rows: &[TextRow]) -> Result<Row> {
    let [row] = rows else {
        return Err(Error::tool(format!("the server's statistics returned {} rows, expected 1", rows.len())));
    };
    if row.len() != STATISTICS.len() {
        let (got, wanted) = (row.len(), STATISTICS.len());
        return Err(Error::tool(format!("the server's statistics returned {got} columns, expected {wanted}")));
    }
    let numbers = STATISTICS.iter().zip(row).map(|((column, _), text)| {
        let number = text.as_deref().map(str::parse::<u64>).transpose();
        number.map(count).map_err(|_| {
            let text = text.as_deref().unwrap_or_default();
            let name = column.name;
            Error::tool(format!("the server's statistics: `{name}` is `{text}`, not a whole number (u64)"))
        })
    });
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_is_absent_and_numbers_are_counts() {
        let mut row: TextRow = vec![None; STATISTICS.len()];
        row[1] = Some("20447232".to_owned());
        let values = values(&[row]).unwrap();
        assert_eq!((values[0].clone(), values[1].clone()), (None, count(20_447_232)));
    }

    #[test]
    fn a_malformed_answer_is_an_error_that_names_the_item() {
        assert!(values(&[]).unwrap_err().to_string().contains("0 rows"));
        assert!(values(&[vec![None]]).unwrap_err().to_string().contains("1 columns"));
        let mut row: TextRow = vec![None; STATISTICS.len()];
        row[2] = Some("-1".to_owned());
        assert!(values(&[row]).unwrap_err().to_string().contains("`pg_wal_records` is `-1`"));
    }

    #[test]
    fn a_missing_server_is_reported_as_such() {
        let error = Postgres.open(&Host::this(), &SampledObjects::default()).err().unwrap();
        assert_eq!(error.to_string(), "the workload runs without a server");
        let server = ServerAddress {
            socket: "/nowhere/.s.PGSQL.5432".into(),
            data: "/nowhere".into(),
            database: "postgres".to_owned(),
            user: "postgres".to_owned(),
        };
        assert!(
            Postgres
                .open(&Host::this(), &SampledObjects { server: Some(server), ..SampledObjects::default() })
                .is_err()
        );
    }
}
