//! Synthetic trials for the tests of intervals: autoregressive seconds around a trial's own level. Seeded.

use super::autocorrelation::within;
use super::interval::TrialMean;
use super::moments;
use super::ratio::BlockMean;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Normal noise with a fixed algorithm and seed.
pub struct Noise(ChaCha8Rng);

impl Noise {
    pub fn seeded(seed: u64) -> Noise {
        Noise(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn rng(self) -> ChaCha8Rng {
        self.0
    }

    /// A standard normal value.
    pub fn normal(&mut self) -> f64 {
        super::noise::normal(&mut self.0)
    }
}

/// Number of runs to simulate, of `full` in the full suite.
pub fn runs(full: u32) -> u32 {
    full / if std::env::var_os("PGSTRATA_TEST_FULL").is_some() { 1 } else { 4 }
}

/// Trials of these rates in blocks numbered from 1, without their seconds.
pub fn numbered_blocks(means: &[f64]) -> Vec<BlockMean> {
    let trial = |mean: &f64| TrialMean { mean: *mean, within: None };
    (1u32..).zip(means.iter().map(trial)).map(|(block, trial)| BlockMean { block, trial }).collect()
}

/// `n` values around `mean` with standard deviation `deviation` and correlation `phi` between neighbours, stationary
/// from the first one.
pub fn autoregressive(noise: &mut Noise, mean: f64, deviation: f64, phi: f64, n: usize) -> Vec<f64> {
    let innovation = deviation * (1.0 - phi * phi).sqrt();
    let mut state = deviation * noise.normal();
    (0..n)
        .map(|_| {
            let value = mean + state;
            state = phi * state + innovation * noise.normal();
            value
        })
        .collect()
}

/// A case whose true values are known.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    /// Mean of a second.
    pub mean: f64,
    pub trials: usize,
    /// Seconds of a trial.
    pub seconds: usize,
    /// Correlation of neighbouring seconds.
    pub phi: f64,
    /// Standard deviation of a second over the mean.
    pub second_spread: f64,
    /// Standard deviation of a trial's level over the mean.
    pub trial_spread: f64,
    /// Standard deviation of the logarithm of a factor on a trial's level, of mean 1, for trials that differ by
    /// factors.
    pub factor_spread: f64,
}

impl Default for Scene {
    fn default() -> Scene {
        Scene {
            mean: 1000.0,
            trials: 3,
            seconds: 60,
            phi: 0.5,
            second_spread: 0.15,
            trial_spread: 0.0,
            factor_spread: 0.0,
        }
    }
}

impl Scene {
    /// The seconds of one trial.
    pub fn series(&self, noise: &mut Noise) -> Vec<f64> {
        let mut level = self.mean * (1.0 + self.trial_spread * noise.normal());
        if self.factor_spread > 0.0 {
            level *= (self.factor_spread * noise.normal() - self.factor_spread.powi(2) / 2.0).exp();
        }
        autoregressive(noise, level, level * self.second_spread, self.phi, self.seconds)
    }

    pub fn trials(&self, noise: &mut Noise) -> Vec<TrialMean> {
        (0..self.trials)
            .filter_map(|_| {
                let series = self.series(noise);
                Some(TrialMean { mean: moments::mean(&series)?, within: within(&series) })
            })
            .collect()
    }
}
