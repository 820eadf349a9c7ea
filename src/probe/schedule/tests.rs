//! The schedule on simulated devices with simulated clocks: two probes of one device must agree.

use super::*;
use rand::Rng;

/// Latency behaviour of a device.
#[derive(Debug, Clone, Copy)]
enum Device {
    /// Constant, with 5 % noise.
    Constant,
    /// One sync in five takes eight times as long.
    Bimodal,
    /// The speed drifts by 10 %, keeping its direction for about a second.
    Drifting,
    /// Everything stalls for 80 ms once a second.
    Stalling,
}

const DEVICES: [Device; 4] = [Device::Constant, Device::Bimodal, Device::Drifting, Device::Stalling];

/// Rows of a probe on one device, each with its own mean latency.
struct Simulation {
    device: Device,
    noise: ChaCha8Rng,
    now_s: f64,
    /// Deviation of the drifting speed, and when it last changed.
    drift: f64,
    drift_at_s: f64,
    next_stall_s: f64,
    latency_s: Vec<f64>,
    work: Vec<Vec<(u64, f64)>>,
}

const ROWS: usize = 29;

impl Simulation {
    fn new(device: Device, seed: u64) -> Simulation {
        let mut noise = ChaCha8Rng::seed_from_u64(seed);
        Simulation {
            device,
            now_s: 0.0,
            drift: noise.random_range(-0.1..0.1),
            drift_at_s: 0.0,
            next_stall_s: noise.random_range(0.0..1.0),
            // From 50 us for a protected SSD to 4 ms for a slow journal.
            latency_s: (0..ROWS).map(|row| 50e-6 * 1.17f64.powi(i32::try_from(row).unwrap())).collect(),
            work: vec![Vec::new(); ROWS],
            noise,
        }
    }

    fn operation(&mut self, row: usize) -> f64 {
        let steady = self.latency_s[row] * (1.0 + self.noise.random_range(-0.05..0.05));
        let taken = match self.device {
            Device::Constant => steady,
            Device::Bimodal => steady * if self.noise.random_bool(0.2) { 8.0 } else { 1.0 },
            Device::Drifting => {
                let passed = self.now_s - self.drift_at_s;
                if passed > 0.01 {
                    let keep = (-passed / 1.0).exp();
                    let spread = 0.1 * (1.0 - keep * keep).sqrt();
                    // A sum of uniform numbers is close enough to normal.
                    let normal: f64 = (0..12).map(|_| self.noise.random_range(-0.5..0.5)).sum();
                    self.drift = self.drift * keep + spread * normal;
                    self.drift_at_s = self.now_s;
                }
                steady * (1.0 + self.drift).max(0.2)
            }
            Device::Stalling => {
                let stalls = self.now_s + steady > self.next_stall_s;
                if stalls {
                    self.next_stall_s += 1.0;
                }
                steady + if stalls { 0.08 } else { 0.0 }
            }
        };
        self.now_s += taken;
        taken
    }
}

impl Bench for Simulation {
    fn elapsed(&self) -> Duration {
        Duration::from_secs_f64(self.now_s)
    }

    fn slice(&mut self, row: usize, span: Duration) -> Result<Option<(u64, f64)>> {
        self.operation(row);
        let (mut operations, mut seconds) = (0, 0.0);
        while operations == 0 || seconds < span.as_secs_f64() {
            seconds += self.operation(row);
            operations += 1;
        }
        self.work[row].push((operations, seconds));
        Ok(Some((operations, seconds)))
    }
}

fn probed(device: Device, seed: u64, precision: f64) -> Simulation {
    let mut simulation = Simulation::new(device, seed);
    let goal = Goal { until: Duration::from_secs(9), precision, seed };
    run(&mut simulation, ROWS, goal, |_, _| {}).unwrap();
    simulation
}

#[test]
fn two_ten_second_probes_agree_in_95_percent_of_pairs() {
    for device in DEVICES {
        let (mut agree, mut pairs) = (0u32, 0u32);
        for seed in 0..40 {
            let (one, other) = (probed(device, 2 * seed, 0.05), probed(device, 2 * seed + 1, 0.05));
            for row in 0..ROWS {
                let ends = |simulation: &Simulation| slices::rate(&simulation.work[row]).and_then(|rate| rate.ends);
                let (Some(one), Some(other)) = (ends(&one), ends(&other)) else { panic!("{device:?} row {row}") };
                agree += u32::from(slices::overlap(one, other));
                pairs += 1;
            }
        }
        let share = f64::from(agree) / f64::from(pairs);
        println!("{device:?}: {:.1} % of {pairs} pairs of intervals overlap", 100.0 * share);
        assert!(share >= 0.95, "{device:?}: {share}");
    }
}

#[test]
fn intervals_are_narrow_enough_to_distinguish_a_threefold_rate() {
    for device in [Device::Constant, Device::Bimodal, Device::Drifting] {
        let simulation = probed(device, 7, 0.05);
        for row in 0..ROWS {
            let (low, high) = slices::rate(&simulation.work[row]).unwrap().ends.unwrap();
            assert!(high / low < 3.0, "{device:?} row {row}: {low} {high}");
        }
    }
}

#[test]
fn a_steady_device_is_measured_before_the_time_limit() {
    assert!(probed(Device::Constant, 1, 0.05).now_s < 9.0);
    assert!(probed(Device::Bimodal, 1, 0.001).now_s >= 9.0);
    assert!(probed(Device::Constant, 1, 0.0).now_s >= 9.0, "precision 0 asks for all the time");
}

#[test]
fn rows_alternate_in_an_order_set_by_the_seed_alone() {
    struct Turns {
        order: Vec<usize>,
    }
    impl Bench for Turns {
        fn elapsed(&self) -> Duration {
            Duration::from_millis(self.order.len() as u64)
        }
        fn slice(&mut self, row: usize, _: Duration) -> Result<Option<(u64, f64)>> {
            self.order.push(row);
            Ok((row != 3).then_some((1, 0.001)))
        }
    }
    let order = |seed| {
        let mut turns = Turns { order: Vec::new() };
        let goal = Goal { until: Duration::from_millis(40), precision: 0.0, seed };
        run(&mut turns, 5, goal, |_, _| {}).unwrap();
        turns.order
    };
    let one = order(1);
    assert_eq!(one, order(1));
    assert_ne!(one, order(2));
    assert_eq!(one.iter().filter(|row| **row == 3).count(), 1, "a row that has ended gets no further turn");
    let mut first: Vec<usize> = one[..5].to_vec();
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2, 3, 4], "each row once before any twice");
}

#[test]
fn slices_are_short_but_not_endlessly_so() {
    assert_eq!(span(Duration::from_secs(10), 29, 20).as_millis(), 17);
    assert_eq!(span(Duration::from_secs(3600), 29, 20), LONGEST);
    assert_eq!(span(Duration::ZERO, 29, 20), SHORTEST);
}
