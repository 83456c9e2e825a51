//! Targets for the gateway and their results. Reported, never enforced, as in `protocol`.

use super::gateways::Gateway;
use super::round::GatewayStats;
use super::{GatewayRounds, find_measured};
use crate::protocol::median;
use crate::report::three_digits;
use crate::targets::{TargetResult, at_most};

/// Typical cost of a stream in vllm-router, used if it was not measured.
const VLLM_ROUTER_STREAM_US: f64 = 227.0;

pub(super) fn evaluate_targets(rows: &[GatewayRounds]) -> Vec<TargetResult> {
    let mut verdicts = Vec::new();
    // A peer with incorrect streams is excluded.
    let peer = find_measured(rows, Gateway::VllmRouter)
        .filter(|peer| peer.rounds.iter().all(|figures| figures.wrong.is_none()));
    if let Some(row) = find_measured(rows, Gateway::CorbiePassthrough) {
        let added = row.added(rows, |figures| figures.p50_us);
        verdicts.push(match peer.map(|peer| peer.added(rows, |figures| figures.p50_us)) {
            Some(theirs) => beside_peer("same protocol: added p50", added, theirs, 110.0),
            None => TargetResult {
                floor: "-".into(),
                floor_met: true,
                ..at_most("same protocol: added p50", added, "µs", 110.0, 110.0)
            },
        });
    }
    if let Some(row) = find_measured(rows, Gateway::CorbieAuto) {
        verdicts.push(at_most("`auto`: added p50", row.added(rows, |figures| figures.p50_us), "µs", 300.0, 180.0));
    }
    if let Some(row) = find_measured(rows, Gateway::CorbiePassthrough) {
        let cpu = row.median(|figures| figures.cpu_us);
        verdicts.push(at_most("same protocol: CPU per request", cpu, "µs", 90.0, 60.0));
        let what = "same protocol: CPU per stream of 23 events";
        let cpu = row.median(|figures| figures.burst.cpu_us);
        verdicts.push(match peer.map(|peer| peer.median(|figures| figures.burst.cpu_us)) {
            Some(theirs) => beside_peer(what, cpu, theirs, 80.0),
            None => at_most(what, cpu, "µs", VLLM_ROUTER_STREAM_US, 80.0),
        });
        let resident = row.median(|figures| figures.resident_mb);
        verdicts.push(at_most("same protocol: RSS after load", resident, "MB", 40.0, 25.0));
        let first = row.median(|figures| figures.first_200_ms);
        verdicts.push(at_most("same protocol: start to the first 200", first, "ms", 200.0, 100.0));
    }
    verdicts
}

/// One-line summary: corbie compared with the peers.
pub(super) fn summary(rows: &[GatewayRounds]) -> String {
    let mut parts = Vec::new();
    if let Some(corbie) = find_measured(rows, Gateway::CorbiePassthrough) {
        parts.push(format!("adds {} µs", three_digits(corbie.added(rows, |figures| figures.p50_us))));
        for peer in [Gateway::VllmRouter, Gateway::Nginx, Gateway::Portkey, Gateway::LiteLlm] {
            let Some(peer) = find_measured(rows, peer) else { continue };
            let more = |figure: fn(&GatewayStats) -> f64| {
                three_digits(median(
                    corbie.rounds.iter().zip(&peer.rounds).map(|(own, peer)| figure(peer) / figure(own)),
                ))
            };
            let added = peer.added(rows, |figures| figures.p50_us) / corbie.added(rows, |figures| figures.p50_us);
            parts.push(format!(
                "{} adds {}x the time, needs {}x the CPU for a request and {}x for a stream",
                peer.gateway.name(),
                three_digits(added),
                more(|figures| figures.cpu_us),
                more(|figures| figures.burst.cpu_us)
            ));
        }
    }
    if parts.is_empty() { "corbie was not measured".into() } else { format!("corbie {}", parts.join("; ")) }
}

/// The floor is the cost of vllm-router in the same run.
fn beside_peer(what: &'static str, measured: f64, theirs: f64, goal: f64) -> TargetResult {
    let verdict = at_most(what, measured, "µs", theirs, goal);
    TargetResult { floor: format!("<= {theirs:.2} µs, vllm-router's"), ..verdict }
}
