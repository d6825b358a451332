//! A picture's way through decoder, functions and encoder, on a thread that may wait.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::clients::Client;
use crate::codec::{Codec, Pass, Way};
use crate::failure::Failure;
use crate::input::Input;
use crate::metrics::Metrics;
use crate::output::Output;
use crate::request::Wanted;
use crate::turns::{Turn, Turns};

/// What all requests share.
pub(crate) struct Workshop {
    pub codec: Codec,
    pub turns: Arc<Turns>,
    pub metrics: Metrics,
}

/// What the stages took.
#[derive(Default)]
struct Times(Vec<(&'static str, Duration)>);

impl Times {
    /// Runs a stage.
    fn stage<T>(&mut self, name: &'static str, f: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = f();
        self.0.push((name, begin.elapsed()));
        result
    }

    /// As the header `Server-Timing` has it.
    fn header(&self) -> String {
        let mut text = String::new();
        for (name, time) in &self.0 {
            let comma = if text.is_empty() { "" } else { ", " };
            let _ = write!(text, "{comma}{name};dur={:.3}", time.as_secs_f64() * 1e3);
        }
        text
    }
}

impl Workshop {
    /// Makes a picture; whoever waits for it gets it, or what went wrong, from `output`.
    pub fn make(&self, client: &Client, input: Input, output: Output, wanted: &Wanted) {
        let turn = Turn::take(&self.turns, client.number());
        let pass = match self.codec.pass(Way::new(input, output, turn)) {
            Ok(pass) => pass,
            Err(refused) => {
                let (way, failure) = *refused;
                return way.output.fail(failure);
            }
        };
        let mut times = Times::default();
        let made = self.stages(&pass, client, wanted, &mut times);
        for (stage, time) in &times.0 {
            self.metrics.stage(stage, *time);
        }
        let way = pass.end();
        self.metrics.bytes(way.input.taken, way.output.given);
        match made {
            Ok(()) => way.output.finish(&times.header()),
            Err(failure) => way.output.fail(failure),
        }
    }

    fn stages(
        &self,
        pass: &Pass<'_>,
        client: &Client,
        wanted: &Wanted,
        times: &mut Times,
    ) -> Result<(), Failure> {
        let came = times.stage("decode", || pass.decode(wanted.width, wanted.height))?;
        if !wanted.through.is_empty() {
            times.stage("function", || {
                if !self.codec.takes_text() {
                    return wanted.through.iter().try_for_each(|step| pass.apply(step));
                }
                let picture = client.apply(&wanted.through, pass.picture()?)?;
                pass.put(&picture)
            })?;
        }
        let format = wanted.format.unwrap_or(came);
        pass.with_way(|way| way.output.begin(format, &times.header()));
        times.stage("encode", || pass.encode(format, wanted.quality()))
    }
}
