//! Invariants of the tables after recovery, whatever the power cut left.

use super::commits::ROWS;
use super::cutting::Finding;
use super::history::{History, PREPARED, link};
use super::server_check::is_of_the_machine;
use crate::cluster::client::Client;
use crate::cluster::server::Server;
use crate::error::{Error, Result};
use crate::recorder::Seq;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Longest time for a query on a recovered database.
const ANSWER: Duration = Duration::from_secs(60);

/// Says of a transaction that, by the history, no client can have sent it.
pub const NEVER_SENT: &str = "was never sent";

/// A transaction as found in the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FoundTransaction {
    rows: u64,
    links: [String; 2],
    /// The link in the second table; `None` if that row is missing.
    commit: Option<String>,
}

/// Keyed by client and number.
type Tables = BTreeMap<(u16, u64), FoundTransaction>;

/// Checks for every commit acknowledged before `at`. After a crash unlogged tables must be empty.
///
/// # Errors
/// If the server cannot be queried. Data that it refuses to read is [`Finding::Torn`].
pub fn look(server: &Server, history: &History, at: Seq, crashed: bool) -> Result<Finding> {
    asked(server, |client| Ok(judge(&tables(client, crashed)?, history, at)))
}

/// Checks that every transaction prepared before a checkpoint that ended before `at` is still prepared, or committed, and
/// committed if that was acknowledged before `at`: PostgreSQL waits for the flush of both, whatever `synchronous_commit` says.
///
/// # Errors
/// As for [`look`].
pub fn prepared(server: &Server, history: &History, at: Seq) -> Result<Finding> {
    let sql = format!(
        "SELECT gid, false FROM pg_prepared_xacts WHERE database = current_database() UNION ALL \
         SELECT '{PREPARED}' || -number, true FROM pgstrata_prepared WHERE number < 0"
    );
    asked(server, |client| {
        let there = client.query(&sql)?.into_iter().filter_map(|row| {
            let mut cells = row.into_iter().flatten();
            Some((cells.next()?, cells.next()? == "t"))
        });
        Ok(missing(history, at, &there.collect()).map_or(Finding::Whole, Finding::Torn))
    })
}

/// The first prepared transaction that is not `there` as it must be; by name, whether it is committed.
fn missing(history: &History, at: Seq, there: &BTreeMap<String, bool>) -> Option<String> {
    // Once the checkpoint after it is complete: where a cut ends one that has written the transaction's file, PostgreSQL
    // 18.6 removes that file as one of the future, and skips the WAL record for it.
    history.prepared.iter().filter(|one| one.checkpoint <= at).find_map(|one| {
        let name = format!("{PREPARED}{}", one.number);
        let wrong = match there.get(&name) {
            None => "missing",
            Some(false) if one.committed.is_some_and(|mark| mark <= at) => "not committed",
            Some(_) => return None,
        };
        Some(format!("the prepared transaction {name} is {wrong}"))
    })
}

fn asked(server: &Server, ask: impl FnOnce(&mut Client) -> Result<Finding>) -> Result<Finding> {
    let mut client = server.connect_with_limit(ANSWER)?;
    ask(&mut client).or_else(|e| if is_of_the_machine(&e) { Err(e) } else { Ok(Finding::Torn(e.to_string())) })
}

fn tables(client: &mut Client, crashed: bool) -> Result<Tables> {
    let rows = client.query(
        "SELECT client, number, count(r.part), min(r.link), max(r.link), min(c.link) FROM pgstrata_rows r \
         FULL JOIN pgstrata_commits c USING (client, number) GROUP BY 1, 2",
    )?;
    let by_index = "SET enable_seqscan = off; SELECT (SELECT count(*) FROM pgstrata_rows WHERE client >= 0), \
                    (SELECT count(*) FROM pgstrata_commits WHERE client >= 0)";
    let by_table = "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_indexonlyscan = off; \
                    SET enable_bitmapscan = off; SELECT (SELECT count(*) FROM pgstrata_rows WHERE client >= 0), \
                    (SELECT count(*) FROM pgstrata_commits WHERE client >= 0)";
    let (index, table) = (client.query(by_index)?, client.query(by_table)?);
    if index != table {
        let [by_index, in_tables] = [index, table].map(|rows| rows.concat().into_iter().flatten().collect::<Vec<_>>());
        let (by_index, in_tables) = (by_index.join(" and "), in_tables.join(" and "));
        return Err(Error::tool(format!("indexes find {by_index} rows of two tables that have {in_tables}")));
    }
    let unlogged = client.query("SELECT count(*) FROM pgstrata_unlogged")?;
    if crashed && unlogged != [vec![Some("0".to_owned())]] {
        return Err(Error::tool("an unlogged table was not emptied"));
    }
    let mut tables = Tables::new();
    for row in rows {
        let found = found_transaction(&row);
        tables.extend([found.ok_or_else(|| Error::bug(format!("an unexpected row of the clients' tables: {row:?}")))?]);
    }
    Ok(tables)
}

fn found_transaction(row: &[Option<String>]) -> Option<((u16, u64), FoundTransaction)> {
    let [client, number, rows, least, most, commit] = row else { return None };
    let links = [least.clone().unwrap_or_default(), most.clone().unwrap_or_default()];
    let rows = rows.as_ref()?.parse().ok()?;
    let key = (client.as_ref()?.parse().ok()?, number.as_ref()?.parse().ok()?);
    Some((key, FoundTransaction { rows, links, commit: commit.clone() }))
}

fn judge(tables: &Tables, history: &History, at: Seq) -> Finding {
    let acknowledged = history.acknowledged_at(at);
    let clients: BTreeSet<u16> = tables.keys().map(|(client, _)| *client).chain(acknowledged.keys().copied()).collect();
    for client in clients {
        let numbers: Vec<u64> =
            tables.range((client, 0)..=(client, u64::MAX)).map(|((_, number), _)| *number).collect();
        let most = acknowledged.get(&client).copied().unwrap_or(0) + 1;
        if let Some(wrong) = contradiction(tables, client, &numbers, most) {
            return Finding::Torn(wrong);
        }
    }
    let given = history.acknowledged.iter().filter(|one| one.mark <= at);
    let lost: Vec<_> = given.clone().filter(|one| !tables.contains_key(&(one.client, one.number))).collect();
    let cut_us = given.map(|one| one.at_us).max().unwrap_or_default();
    history.loss_of(&lost, at, cut_us).map_or(Finding::Whole, Finding::Lost)
}

/// Describes what is wrong with one client's transactions: a partial one, a gap, a broken chain, or one that was never
/// sent.
fn contradiction(tables: &Tables, client: u16, numbers: &[u64], most: u64) -> Option<String> {
    let mut chain = String::new();
    for (number, expected) in numbers.iter().zip(1..) {
        if *number != expected {
            return Some(format!("transaction {expected} of client {client} is missing, but {number} is there"));
        }
        if *number > most {
            return Some(format!("transaction {number} of client {client} is there, but {NEVER_SENT}"));
        }
        chain = link(&chain, client, *number);
        let shown = &tables[&(client, *number)];
        let whole = shown.rows == ROWS && shown.links == [chain.clone(), chain.clone()];
        if !whole || shown.commit.as_ref() != Some(&chain) {
            return Some(format!("only a part of transaction {number} of client {client} is there"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::history::Acknowledgement;
    use crate::cut::history::{Loss, Prepared};

    fn history(numbers: u64) -> History {
        let acknowledged = (1..=numbers).map(|number| Acknowledgement {
            client: 0,
            number,
            started: number * 10,
            mark: number * 10 + 5,
            at_us: number * 100,
            xid: 0,
            end: None,
            asynchronous: false,
        });
        History::of(acknowledged.collect())
    }

    fn tables_with(numbers: u64) -> Tables {
        let mut chain = String::new();
        let shown = (1..=numbers).map(|number| {
            chain = link(&chain, 0, number);
            (
                (0, number),
                FoundTransaction { rows: ROWS, links: [chain.clone(), chain.clone()], commit: Some(chain.clone()) },
            )
        });
        shown.collect()
    }

    #[test]
    fn an_acknowledged_commit_of_a_prepared_transaction_must_exist() {
        let one = |number, mark, committed| Prepared { number, mark, checkpoint: mark + 1, committed };
        let prepared = vec![one(1, 10, Some(20)), one(2, 25, None)];
        let history = History { prepared, ..History::default() };
        let found = |at, there: &[(u32, bool)]| {
            let named = there.iter().map(|(number, is_committed)| (format!("{PREPARED}{number}"), *is_committed));
            missing(&history, at, &named.collect())
        };
        assert_eq!((found(9, &[]), found(10, &[])), (None, None), "its checkpoint may be under way");
        assert_eq!(found(19, &[(1, false)]), None);
        assert_eq!(found(19, &[(1, true)]), None, "in flight");
        assert_eq!(found(19, &[]).unwrap(), "the prepared transaction pgstrata-kept-1 is missing");
        assert_eq!(found(20, &[(1, false)]).unwrap(), "the prepared transaction pgstrata-kept-1 is not committed");
        assert_eq!(found(30, &[(1, true), (2, false)]), None);
    }

    #[test]
    fn acknowledged_commits_must_exist_and_one_more_may() {
        let at = 35;
        assert_eq!(judge(&tables_with(3), &history(9), at), Finding::Whole);
        assert_eq!(judge(&tables_with(4), &history(9), at), Finding::Whole, "the one in flight");
        let lost = judge(&tables_with(1), &history(9), at);
        assert_eq!(lost, Finding::Lost(Loss { commits: 2, us: 100, is_expected: false }));
        assert!(matches!(judge(&tables_with(5), &history(9), at), Finding::Torn(what) if what.contains("never sent")));
        assert_eq!(judge(&Tables::new(), &history(9), 14), Finding::Whole, "nothing was acknowledged yet");
    }

    #[test]
    fn holes_parts_and_broken_chains_are_damage_not_loss() {
        let torn = |change: &dyn Fn(&mut Tables)| {
            let mut tables = tables_with(3);
            change(&mut tables);
            matches!(judge(&tables, &history(9), 35), Finding::Torn(_))
        };
        assert!(torn(&|tables| drop(tables.remove(&(0, 2)))));
        assert!(torn(&|tables| tables.get_mut(&(0, 2)).unwrap().rows = 2));
        assert!(torn(&|tables| tables.get_mut(&(0, 3)).unwrap().commit = None));
        assert!(torn(&|tables| tables.get_mut(&(0, 3)).unwrap().links[1] = "0".to_owned()));
        assert!(!torn(&|_| {}));
    }
}
