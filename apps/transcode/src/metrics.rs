//! What the server has done, in Prometheus's form.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answer {
    method: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Stage {
    stage: &'static str,
}

/// Counters, which all threads use.
pub(crate) struct Metrics {
    registry: Registry,
    answers: Family<Answer, Counter>,
    stages: Family<Stage, Histogram>,
    taken: Counter,
    given: Counter,
    waiting: Gauge,
    clients: Gauge,
    on_their_way: Gauge,
}

/// What is counted when somebody asks.
pub(crate) struct Now {
    pub waiting_domains: usize,
    pub clients: usize,
    pub on_their_way: usize,
}

/// The form's own media type.
pub(crate) const MEDIA: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

impl Metrics {
    pub fn new() -> Self {
        let mut registry = Registry::with_prefix("transcode");
        let answers = Family::<Answer, Counter>::default();
        // From 0.1 ms to 1.6 s.
        let stages = Family::<Stage, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(1e-4, 2.0, 15))
        });
        let (taken, given) = (Counter::default(), Counter::default());
        let (waiting, clients, on_their_way) = <(Gauge, Gauge, Gauge)>::default();
        registry.register("requests", "Answers, by method and status", answers.clone());
        registry.register(
            "stage_seconds",
            "What decoding, functions and encoding took",
            stages.clone(),
        );
        registry.register(
            "taken_bytes",
            "Bytes of pictures that were decoded",
            taken.clone(),
        );
        registry.register("given_bytes", "Bytes of pictures that were made", given.clone());
        registry.register(
            "waiting_domains",
            "Clean domains that wait for a picture",
            waiting.clone(),
        );
        registry.register("clients", "Clients with a key", clients.clone());
        registry.register(
            "on_their_way",
            "Pictures that are on their way",
            on_their_way.clone(),
        );
        Metrics {
            registry,
            answers,
            stages,
            taken,
            given,
            waiting,
            clients,
            on_their_way,
        }
    }

    /// A request was answered.
    pub fn answer(&self, method: &hyper::Method, status: u16) {
        // Whatever strangers make up is one.
        let method = match method.as_str() {
            "GET" => "GET",
            "HEAD" => "HEAD",
            "POST" => "POST",
            "PUT" => "PUT",
            "DELETE" => "DELETE",
            _ => "other",
        };
        self.answers.get_or_create(&Answer { method, status }).inc();
    }

    /// A stage of a picture's way has ended.
    pub fn stage(&self, stage: &'static str, time: Duration) {
        let histogram = self.stages.get_or_create(&Stage { stage });
        histogram.observe(time.as_secs_f64());
    }

    /// So many bytes came, and went.
    pub fn bytes(&self, taken: u64, given: u64) {
        self.taken.inc_by(taken);
        self.given.inc_by(given);
    }

    /// All of it, as text.
    pub fn text(&self, now: &Now) -> String {
        self.waiting.set(now.waiting_domains as i64);
        self.clients.set(now.clients as i64);
        self.on_their_way.set(now.on_their_way as i64);
        let mut text = String::new();
        // A string takes everything.
        encode(&mut text, &self.registry).expect("written to memory");
        text
    }
}
