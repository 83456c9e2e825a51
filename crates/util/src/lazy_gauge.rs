//! Gauges that are computed at scrape time.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

/// A value and its labels.
pub type Sample = (Vec<(&'static str, String)>, u64);

struct LazyGauge<Look> {
    name: &'static str,
    help: &'static str,
    read: Look,
}

/// Registers a gauge; `look` must be fast and return few labels.
pub fn register(
    registry: &mut Registry,
    name: &'static str,
    help: &'static str,
    look: impl Fn() -> Vec<Sample> + Send + Sync + 'static,
) {
    registry.register_collector(Box::new(LazyGauge { name, help, read: look }));
}

/// A value without labels.
pub fn single(value: usize) -> Vec<Sample> {
    vec![(Vec::new(), value as u64)]
}

impl<Look: Fn() -> Vec<Sample> + Send + Sync + 'static> Collector for LazyGauge<Look> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        // The registry appends a full stop to the help of ordinary metrics, but not to that of collectors.
        let help = format!("{}.", self.help);
        let mut metric = encoder.encode_descriptor(self.name, &help, None, MetricType::Gauge)?;
        for (labels, value) in (self.read)() {
            let value = ConstGauge::new(value);
            match labels.is_empty() {
                true => return value.encode(metric),
                false => value.encode(metric.encode_family(&labels)?)?,
            }
        }
        Ok(())
    }
}

impl<Look> fmt::Debug for LazyGauge<Look> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Looked").field("name", &self.name).finish_non_exhaustive()
    }
}
