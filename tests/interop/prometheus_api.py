"""Prometheus' own client library reads `/metrics` of a corbie that was used, in both forms it can be written in."""

import argparse
import json
import re
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable

from checks import Checks, same
from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open
from prometheus_client.parser import text_string_to_metric_families as read_plain

SECONDS = 30
MOST_SAMPLES = 20_000
# Required metrics with their types.
WANTED = {
    "corbie_requests": "counter",
    "corbie_request_seconds": "histogram",
    "corbie_request_errors": "counter",
    "corbie_tool_seconds": "histogram",
    "corbie_tool_errors": "counter",
    "corbie_route_attempts": "counter",
    "corbie_route_latency_seconds": "histogram",
    "corbie_route_tokens": "counter",
    "corbie_provider_circuit_open": "gauge",
    "corbie_classification_confidence": "histogram",
    "corbie_classification_entropy": "histogram",
    "corbie_classification_seconds": "histogram",
    "corbie_inference_batch_seconds": "histogram",
    "corbie_inference_texts_waiting": "gauge",
    "corbie_knowledge_documents": "gauge",
    "corbie_knowledge_store_bytes": "gauge",
    "corbie_knowledge_tasks": "gauge",
    "corbie_audit_lost": "counter",
    "corbie_uptime_seconds": "gauge",
    "process_resident_memory_bytes": "gauge",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="where corbie listens, such as http://127.0.0.1:3000")
    parser.add_argument("--token", required=True, help="what it wants from its callers")
    given = parser.parse_args()
    corbie, checks = Corbie(given.url, given.token), Checks(prefix="prometheus")
    try:
        use(corbie)
        scrape(checks, corbie, "openmetrics", None, read_open)
        scrape(checks, corbie, "plain text", "text/plain;version=0.0.4", read_plain)
    except Exception:
        checks.that(False, "the conversation ends without an exception", traceback.format_exc())
    checks.exit()


class Corbie:
    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token
        # A proxy from the environment must not be used for a server on loopback.
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def send(self, path: str, body: dict | None = None, accept: str | None = None) -> tuple[str, str]:
        """What came, and what kind of text it is."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if accept:
            headers["Accept"] = accept
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, headers=headers)
        with self.opener.open(request, timeout=SECONDS) as response:
            return response.read().decode(), response.headers["Content-Type"]

    def call(self, tool: str, arguments: dict) -> None:
        try:
            self.send("/mcp/tools/call", {"name": tool, "arguments": arguments})
        except urllib.error.HTTPError:
            # Failures are counted too.
            pass


def use(corbie: Corbie) -> None:
    """Everything that is counted happens at least once, some of it with odd names."""
    corbie.call("classify_text", {"text": "what is the derivative of x squared"})
    corbie.call("classify_text", {"text": 7})
    corbie.call("chat_completion", {"prompt": "hi"})
    corbie.call("knowledge-status", {})
    corbie.call('no "such"\\tool\n', {})


def scrape(
    checks: Checks, corbie: Corbie, form: str, accept: str | None, read: Callable[[str], Iterable[Metric]]
) -> None:
    text, kind = corbie.send("/metrics", accept=accept)
    checks.that(kind.startswith("text/plain" if accept else "application/openmetrics-text"), f"{form}: it says so", kind)
    metrics = {metric.name: metric for metric in read(text)}
    found = {name: metrics[name].type for name in WANTED if name in metrics}
    same(checks, f"{form}: every metric is there, with its kind", found, WANTED)
    samples = [sample for metric in metrics.values() for sample in metric.samples]
    checks.that(len(samples) < MOST_SAMPLES, f"{form}: labels are few", f"{len(samples)} samples")
    seen = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
    same(checks, f"{form}: no sample is there twice", len(set(seen)), len(seen))
    undescribed = [name for name, metric in metrics.items() if not metric.documentation]
    same(checks, f"{form}: every metric is described", undescribed, [])
    odd = [name for name in metrics if not re.fullmatch(r"(corbie|process)_[a-z_]+", name)]
    same(checks, f"{form}: names are conventional", odd, [])


if __name__ == "__main__":
    main()
