//! Aggregates transactions of several streams (one per pgbench thread) into seconds and totals.
//!
//! Only open seconds are held: a second is reported as soon as every stream has passed it. Reports go through a
//! channel, so that neither a pipe reader nor pgbench ever waits for a listener.

use super::due::{DueTally, DueTracker};
use super::idle::{IdleSpan, Marks};
use super::options::Settings;
use super::quota::Quota;
use super::unsent::{FixedRate, LastOnes};
use crate::error::{Error, Result};
use crate::parse::pgbench_log::{Transaction, TransactionOutcome};
use crate::record::counts::Unsent;
use crate::record::latency::LatencyInterval;
use crate::workload::{ClientSecond, LoadEvent, empty_histogram};
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::Sender;

const SECOND_US: u64 = 1_000_000;

/// A last second counts as whole if at most this much of it is missing: pgbench's own duration includes connection
/// set-up, so the time from the first transaction to the last is a little shorter than planned.
const MISSING_US: u64 = SECOND_US / 100;

/// Most transactions held back until every stream has reported its first, which determines where second 1 begins.
const HELD: usize = 100_000;

/// A completion time this far beyond the seconds seen so far is a broken line, not a stall.
const LONGEST_STALL_S: u64 = 86_400;

/// Totals of a measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadTally {
    /// Wall clock at the first transaction's start, microseconds; `None` without transactions.
    pub began_us: Option<u64>,
    /// Wall clock at the last transaction's end, microseconds.
    pub last_us: u64,
    /// Transactions whose second was already reported (the clock was set back); counted in the first open second.
    pub out_of_order: u64,
    /// One per script.
    pub scripts: Vec<ScriptTally>,
    /// Counts for transactions with a scheduled start time; only with a fixed rate and a limit.
    pub due: DueTally,
    /// Transactions that fell due and were never sent; only with a fixed rate.
    pub unsent: Vec<Unsent>,
    /// All transactions that fell due, if only a sample is logged: subtracting those sent gives those that were not.
    pub all_due: Option<Unsent>,
    /// For a number of transactions: microseconds in which all clients were at work, and the share of all
    /// transactions that ended in them.
    pub all_at_work: Option<(u64, f64)>,
}

/// Totals of one script.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ScriptTally {
    pub done: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Slower than the limit.
    pub late: u64,
    /// Sum of the latencies of completed transactions, microseconds.
    pub latency_us_sum: u64,
}

/// Collects the transactions of all readers.
#[derive(Debug)]
pub struct Collector {
    state: Mutex<OpenSeconds>,
}

impl Collector {
    /// A collector for a pgbench with these settings, each of whose threads is a stream. `has_quota`: it ends after a number
    /// of transactions.
    pub fn new(settings: &Settings, has_quota: bool, events: Sender<Result<LoadEvent>>) -> Collector {
        let scripts: Vec<String> = settings.scripts.iter().map(|script| script.name.clone()).collect();
        let limit_us = settings.latency_limit.map(|limit| limit.0);
        Collector {
            state: Mutex::new(OpenSeconds {
                streams: vec![LogStream::default(); settings.jobs as usize],
                limit_us,
                log_sample: settings.log_sample.unwrap_or(1.0),
                events,
                held: Vec::new(),
                open: VecDeque::new(),
                first_open: 0,
                idle: IdleSpan::default(),
                tally: LoadTally { scripts: vec![ScriptTally::default(); scripts.len()], ..LoadTally::default() },
                scripts,
                due: limit_us.map(DueTracker::new),
                last: LastOnes::default(),
                quota: has_quota.then(Quota::default),
            }),
        }
    }

    /// Takes the next transactions of a stream, in stream order.
    pub fn take(&self, stream: usize, transactions: &[Transaction]) -> Result<()> {
        self.with(|state| state.take(stream, transactions))
    }

    /// Marks the end of a stream.
    pub fn end(&self, stream: usize) -> Result<()> {
        self.with(|state| state.end(stream))
    }

    /// Reports the remaining seconds and returns the totals. All streams must have ended. `load` is set for a fixed
    /// rate.
    pub fn finish(self, load: Option<FixedRate>) -> Result<LoadTally> {
        let mut state = self.state.into_inner().map_err(|_| Error::bug("a reader of pgbench's log panicked"))?;
        state.finish()?;
        state.tally.all_at_work = state.quota.as_ref().and_then(Quota::all_at_work);
        if let Some((load, began_us)) = load.zip(state.tally.began_us) {
            match load.is_sampled {
                true => state.tally.all_due = Some(load.all_due(began_us)),
                false => state.tally.unsent = state.last.unsent(load, began_us),
            }
        }
        Ok(state.tally)
    }

    /// Wall clock at the first transaction's start, microseconds. All streams must have ended.
    pub fn began_us(&self) -> Option<u64> {
        self.state.lock().ok().and_then(|state| state.tally.began_us)
    }

    /// Transactions of a quota that are known to be done; pgbench's log arrives in pieces of some hundred.
    pub fn done(&self) -> u64 {
        let state = self.state.lock().ok();
        state.map_or(0, |state| (state.quota.as_ref().map_or(0, Quota::done) as f64 / state.log_sample) as u64)
    }

    fn with<T>(&self, act: impl FnOnce(&mut OpenSeconds) -> Result<T>) -> Result<T> {
        let mut state = self.state.lock().map_err(|_| Error::bug("a reader of pgbench's log panicked"))?;
        act(&mut state)
    }
}

#[derive(Debug, Clone, Default)]
struct LogStream {
    has_begun: bool,
    has_ended: bool,
    /// The latest second seen, from 0.
    passed: u64,
}

#[derive(Debug, Default)]
struct Bin {
    /// Latencies by script; may be shorter than the list of scripts if the later ones have none.
    latencies: Vec<Option<Histogram<u64>>>,
    failed: u64,
    skipped: u64,
    late: u64,
    /// Completion times of transactions.
    marks: Marks,
}

#[derive(Debug)]
struct OpenSeconds {
    streams: Vec<LogStream>,
    limit_us: Option<u64>,
    log_sample: f64,
    events: Sender<Result<LoadEvent>>,
    /// Transactions held until the start of second 1 is known, with their stream.
    held: Vec<(usize, Transaction)>,
    open: VecDeque<Bin>,
    /// Second, from 0, of the first open bin.
    first_open: u64,
    idle: IdleSpan,
    tally: LoadTally,
    scripts: Vec<String>,
    /// Set if there is a limit.
    due: Option<DueTracker>,
    last: LastOnes,
    quota: Option<Quota>,
}

impl OpenSeconds {
    fn take(&mut self, stream: usize, transactions: &[Transaction]) -> Result<()> {
        let Some(last) = transactions.last() else { return Ok(()) };
        self.streams[stream].has_begun = true;
        for transaction in transactions {
            self.last.take(stream, transaction);
            self.quota.iter_mut().for_each(|quota| quota.take(transaction));
        }
        match self.tally.began_us {
            Some(began_us) => {
                for transaction in transactions {
                    self.count(began_us, transaction)?;
                }
                self.pass(stream, began_us, last);
            }
            None => {
                self.held.extend(transactions.iter().map(|transaction| (stream, *transaction)));
                self.begin_when_known(self.held.len() >= HELD)?;
            }
        }
        self.report_complete()
    }

    fn end(&mut self, stream: usize) -> Result<()> {
        self.streams[stream].has_ended = true;
        self.begin_when_known(false)?;
        self.report_complete()
    }

    /// Second 1 begins when the earliest of the streams' first transactions began.
    fn begin_when_known(&mut self, at_once: bool) -> Result<()> {
        let known = self.streams.iter().all(|stream| stream.has_begun || stream.has_ended);
        if self.tally.began_us.is_some() || !(known || at_once) {
            return Ok(());
        }
        let starts = self.held.iter().map(|(_, transaction)| match transaction.ended {
            TransactionOutcome::Done(latency_us) => transaction.at_us.saturating_sub(latency_us),
            TransactionOutcome::Skipped | TransactionOutcome::Failed(_) => transaction.at_us,
        });
        let Some(began_us) = starts.min() else { return Ok(()) };
        self.tally.began_us = Some(began_us);
        self.report(LoadEvent::Began(began_us));
        for (stream, transaction) in std::mem::take(&mut self.held) {
            self.count(began_us, &transaction)?;
            self.pass(stream, began_us, &transaction);
        }
        Ok(())
    }

    fn pass(&mut self, stream: usize, began_us: u64, transaction: &Transaction) {
        let second = transaction.at_us.saturating_sub(began_us) / SECOND_US;
        let passed = &mut self.streams[stream].passed;
        *passed = second.max(*passed);
    }

    fn count(&mut self, began_us: u64, transaction: &Transaction) -> Result<()> {
        let second = transaction.at_us.saturating_sub(began_us) / SECOND_US;
        if second < self.first_open {
            self.tally.out_of_order += 1;
        }
        // The second has been reported already: count the transaction in the first open one.
        let counted = second.max(self.first_open);
        let index = counted - self.first_open;
        if index > self.open.len() as u64 + LONGEST_STALL_S {
            return Err(Error::tool(format!(
                "pgbench's transaction log: a transaction ends {index} s after the one before it"
            )));
        }
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        while self.open.len() <= index {
            self.open.push_back(Bin::default());
        }
        let script = transaction.script as usize;
        let Some(tally) = self.tally.scripts.get_mut(script) else {
            return Err(Error::tool(format!("pgbench's transaction log: there is no script {script}")));
        };
        if let Some(due) = &mut self.due {
            due.take(began_us, transaction);
        }
        let bin = &mut self.open[index];
        self.tally.last_us = self.tally.last_us.max(transaction.at_us);
        match transaction.ended {
            TransactionOutcome::Done(latency_us) => {
                tally.done += 1;
                tally.latency_us_sum += latency_us;
                let late = u64::from(self.limit_us.is_some_and(|limit_us| latency_us > limit_us));
                tally.late += late;
                bin.late += late;
                bin.marks.mark(transaction.at_us.saturating_sub(began_us + counted * SECOND_US));
                bin.record(script, latency_us)?;
            }
            TransactionOutcome::Failed(_) => {
                tally.failed += 1;
                bin.failed += 1;
            }
            TransactionOutcome::Skipped => {
                tally.skipped += 1;
                bin.skipped += 1;
            }
        }
        Ok(())
    }

    /// Reports every second that all streams have passed.
    fn report_complete(&mut self) -> Result<()> {
        if self.tally.began_us.is_none() {
            return Ok(());
        }
        let alive = self.streams.iter().filter(|stream| !stream.has_ended);
        let Some(passed) = alive.map(|stream| stream.passed).min() else { return Ok(()) };
        self.report_up_to(passed)
    }

    fn report_up_to(&mut self, seconds: u64) -> Result<()> {
        while self.first_open < seconds {
            let bin = self.open.pop_front().unwrap_or_default();
            let second = self.close(bin, SECOND_US)?;
            self.first_open += 1;
            self.report(LoadEvent::Second(second));
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let Some(began_us) = self.tally.began_us else { return Ok(()) };
        let whole = (self.tally.last_us.saturating_sub(began_us) + MISSING_US) / SECOND_US;
        self.tally.due = self.due.as_ref().map(|due| due.tally(whole)).unwrap_or_default();
        self.report_up_to(whole)?;
        // The rest belongs to a partial second, which gets no row.
        let rest_us = self.tally.last_us.saturating_sub(began_us + self.first_open * SECOND_US);
        let Some(bin) = self.open.pop_front() else { return Ok(()) };
        self.close(bin, rest_us).map(drop)
    }

    /// Reports the latencies of the first open bin, `length_us` long, and turns it into a second.
    fn close(&mut self, bin: Bin, length_us: u64) -> Result<ClientSecond> {
        let mut all = empty_histogram()?;
        let begun_us = self.tally.began_us.unwrap_or(0) + self.first_open * SECOND_US;
        // The last second may be slightly short: the missing end is not a stall.
        let idle_us =
            self.idle.of_second(&bin.marks, self.tally.last_us.saturating_sub(begun_us).saturating_add(1_000));
        for (script, latencies) in self.scripts.iter().zip(bin.latencies) {
            let Some(latencies) = latencies else { continue };
            all.add(&latencies).map_err(|e| Error::bug(format!("cannot add latencies: {e}")))?;
            if self.scripts.len() > 1 {
                self.report_latencies(script, length_us, latencies);
            }
        }
        if !all.is_empty() {
            self.report_latencies(TRANSACTIONS, length_us, all.clone());
        }
        Ok(ClientSecond {
            second: self.first_open + 1,
            done: all_of(all.len(), self.log_sample),
            failed: all_of(bin.failed, self.log_sample),
            skipped: all_of(bin.skipped, self.log_sample),
            late: all_of(bin.late, self.log_sample),
            idle_us: Some(idle_us),
            latencies: all,
        })
    }

    fn report_latencies(&self, measure: &str, length_us: u64, latencies: Histogram<u64>) {
        let start_us = self.first_open * SECOND_US;
        let measure = measure.to_owned();
        self.report(LoadEvent::Latencies(LatencyInterval { measure, start_us, length_us, latencies }));
    }

    fn report(&self, event: LoadEvent) {
        // The receiver is dropped only when the measurement has already failed.
        drop(self.events.send(Ok(event)));
    }
}

/// Estimated total, given the number logged and the share that is logged.
pub fn all_of(logged: u64, log_sample: f64) -> u64 {
    (logged as f64 / log_sample).round() as u64
}

impl Bin {
    fn record(&mut self, script: usize, latency_us: u64) -> Result<()> {
        if self.latencies.len() <= script {
            self.latencies.resize(script + 1, None);
        }
        let latencies = match &mut self.latencies[script] {
            Some(latencies) => latencies,
            none => none.insert(empty_histogram()?),
        };
        latencies.record(latency_us).map_err(|e| Error::bug(format!("cannot record a latency of {latency_us} us: {e}")))
    }
}

/// Name of the measure for all scripts together.
pub const TRANSACTIONS: &str = "transactions";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::pgbench_log::FailureKind;
    use crate::record::options::{OptionValue, Options};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
    use std::sync::mpsc::{Receiver, channel};

    const START: u64 = 1_000_000_000_000_000;

    fn done(at_us: u64, latency_us: u64) -> Transaction {
        Transaction {
            client: 0,
            ended: TransactionOutcome::Done(latency_us),
            script: 0,
            at_us: START + at_us,
            lag_us: None,
            retries: None,
        }
    }

    fn collector(streams: usize) -> (Collector, Receiver<Result<LoadEvent>>) {
        let (events, heard) = channel();
        let scripts = ["select-only", "own.sql"].map(|script| OptionValue::Text(script.to_owned()));
        let mut options = Options::default();
        options.set("script", OptionValue::List(scripts.into()));
        for key in ["scale", "clients", "jobs"] {
            options.set(key, OptionValue::Integer(streams as i64));
        }
        options.set("latency_limit", OptionValue::Text("1ms".to_owned()));
        (Collector::new(&Settings::from(&options).unwrap(), false, events), heard)
    }

    fn seconds(heard: &Receiver<Result<LoadEvent>>) -> Vec<(u64, u64)> {
        let events = heard.try_iter().flatten();
        events
            .filter_map(|event| if let LoadEvent::Second(s) = event { Some((s.second, s.done)) } else { None })
            .collect()
    }

    #[test]
    fn a_second_is_emitted_once_every_stream_has_passed_it() {
        let (collector, heard) = collector(2);
        collector.take(0, &[done(500, 400), done(900_000, 10)]).unwrap();
        assert!(heard.try_recv().is_err(), "the other stream may have begun earlier");
        collector.take(1, &[done(600, 550)]).unwrap();
        assert!(matches!(heard.try_recv().unwrap(), Ok(LoadEvent::Began(us)) if us == START + 50));
        collector.take(0, &[done(1_000_049, 5), done(1_000_050, 5), done(3_500_000, 5)]).unwrap();
        assert!(seconds(&heard).is_empty());
        collector.take(1, &[done(2_100_000, 5)]).unwrap();
        assert_eq!(seconds(&heard), [(1, 4), (2, 1)]);
        collector.end(0).unwrap();
        collector.end(1).unwrap();
        let tally = collector.finish(None).unwrap();
        assert_eq!(seconds(&heard), [(3, 1)], "the fourth is cut off");
        assert_eq!((tally.scripts[0].done, tally.last_us), (7, START + 3_500_000));
        assert_eq!(tally.scripts[0].latency_us_sum, 400 + 10 + 550 + 20);
    }

    #[test]
    fn a_stall_is_seconds_with_nothing_done() {
        let (collector, heard) = collector(1);
        collector.take(0, &[done(100, 100), done(4_000_200, 4_000_100)]).unwrap();
        collector.end(0).unwrap();
        let tally = collector.finish(None).unwrap();
        assert_eq!(seconds(&heard), [(1, 1), (2, 0), (3, 0), (4, 0)]);
        assert_eq!(tally.scripts[0].late, 1);
    }

    #[test]
    fn idle_time_is_measured_over_all_streams() {
        let (collector, heard) = collector(2);
        let every_ms = |from: u64, to: u64| (from..to).map(|ms| done(ms * 1000, 10)).collect::<Vec<_>>();
        collector.take(0, &[vec![done(10, 10)], every_ms(1, 400)].concat()).unwrap();
        collector.take(1, &[vec![done(10, 10)], every_ms(700, 1_995)].concat()).unwrap();
        collector.end(0).unwrap();
        collector.end(1).unwrap();
        collector.finish(None).unwrap();
        let idle_us = heard
            .try_iter()
            .flatten()
            .filter_map(|event| if let LoadEvent::Second(s) = event { s.idle_us } else { None });
        assert_eq!(idle_us.collect::<Vec<_>>(), [301_000, 0], "both stood still for 300 ms; the last 5 ms are missing");
    }

    #[test]
    fn a_last_second_that_lacks_milliseconds_is_whole() {
        let (collector, heard) = collector(1);
        collector.take(0, &[done(100, 100), done(1_995_000, 10)]).unwrap();
        collector.end(0).unwrap();
        collector.finish(None).unwrap();
        assert_eq!(seconds(&heard), [(1, 1), (2, 1)]);
    }

    #[test]
    fn an_ended_stream_without_transactions_delays_no_other_stream() {
        let (collector, heard) = collector(2);
        collector.take(0, &[done(100, 100), done(2_000_200, 5)]).unwrap();
        assert!(seconds(&heard).is_empty());
        collector.end(1).unwrap();
        assert_eq!(seconds(&heard), [(1, 1), (2, 0)]);
    }

    #[test]
    fn failures_skips_and_scripts_are_told_apart() {
        let (collector, heard) = collector(1);
        let of = |ended, script| Transaction { ended, script, ..done(1_100_000, 0) };
        let ends = [
            of(TransactionOutcome::Failed(FailureKind::Untold), 0),
            of(TransactionOutcome::Skipped, 1),
            of(TransactionOutcome::Done(7), 1),
            of(TransactionOutcome::Done(9_000), 0),
        ];
        collector.take(0, &[done(1, 1)]).unwrap();
        collector.take(0, &ends).unwrap();
        assert!(
            collector
                .take(0, &[of(TransactionOutcome::Failed(FailureKind::Untold), 2)])
                .unwrap_err()
                .to_string()
                .contains("no script 2")
        );
        collector.take(0, &[done(2_000_001, 1)]).unwrap();
        collector.end(0).unwrap();
        let tally = collector.finish(None).unwrap();
        assert_eq!((tally.scripts[1].done, tally.scripts[1].skipped), (1, 1));
        let (mut seconds, mut latencies) = (Vec::new(), Vec::new());
        for event in heard.try_iter().flatten() {
            match event {
                LoadEvent::Second(s) => seconds.push((s.second, s.done, s.failed, s.skipped, s.late)),
                LoadEvent::Latencies(i) => latencies.push((i.measure, i.start_us, i.length_us, i.latencies.len())),
                LoadEvent::Began(_) => {}
            }
        }
        assert_eq!(seconds, [(1, 1, 0, 0, 0), (2, 2, 1, 1, 1)]);
        let latency = |measure: &str, start, length, count| (measure.to_owned(), start, length, count);
        let expected = [
            latency("select-only", 0, SECOND_US, 1),
            latency("transactions", 0, SECOND_US, 1),
            latency("select-only", SECOND_US, SECOND_US, 1),
            latency("own", SECOND_US, SECOND_US, 1),
            latency("transactions", SECOND_US, SECOND_US, 2),
            latency("select-only", 2 * SECOND_US, 1, 1),
            latency("transactions", 2 * SECOND_US, 1, 1),
        ];
        assert_eq!(latencies, expected);
    }

    #[test]
    fn a_late_transaction_counts_in_the_next_second() {
        let (collector, heard) = collector(1);
        collector.take(0, &[done(1, 1), done(1_500_000, 1), done(900_000, 1)]).unwrap();
        collector.take(0, &[done(800_000, 1), done(2_000_001, 1)]).unwrap();
        assert_eq!(seconds(&heard), [(1, 2), (2, 2)]);
        assert_eq!(collector.finish(None).unwrap().out_of_order, 1);
    }

    #[test]
    fn an_absurd_timestamp_is_an_error() {
        let (collector, _heard) = collector(1);
        collector.take(0, &[done(1, 1)]).unwrap();
        assert!(collector.take(0, &[done(86_400_000_000 * 400, 1)]).is_err());
    }

    proptest! {
        #[test]
        fn nothing_is_lost_whatever_the_order_of_the_streams(
            steps in proptest::collection::vec((0usize..3, 0u64..700_000, 1u64..50_000), 1..200)
        ) {
            let (collector, heard) = collector(3);
            let mut at = [60_000u64; 3];
            for (stream, step, latency) in &steps {
                at[*stream] += step;
                collector.take(*stream, &[done(at[*stream], *latency)]).unwrap();
            }
            for stream in 0..3 {
                collector.end(stream).unwrap();
            }
            let tally = collector.finish(None).unwrap();
            let (mut reported, mut merged, mut ends) = (Vec::new(), empty_histogram().unwrap(), 0);
            for it in heard.try_iter().flatten() {
                match it {
                    LoadEvent::Second(second) => reported.push((second.second, second.done)),
                    LoadEvent::Latencies(interval) if interval.measure == TRANSACTIONS => {
                        prop_assert!(interval.start_us >= ends, "intervals overlap");
                        ends = interval.start_us + interval.length_us;
                        merged.add(&interval.latencies).unwrap();
                    }
                    _ => {}
                }
            }
            let mut whole = empty_histogram().unwrap();
            for (_, _, latency) in &steps {
                whole.record(*latency).unwrap();
            }
            prop_assert_eq!(merged, whole);
            prop_assert_eq!(tally.scripts[0].done, steps.len() as u64);
            prop_assert!(reported.iter().enumerate().all(|(i, (second, _))| *second == i as u64 + 1));
            prop_assert!(reported.iter().map(|(_, done)| done).sum::<u64>() <= steps.len() as u64);
            prop_assert_eq!(tally.out_of_order, 0);
        }
    }
}
