"""A collector on OpenTelemetry's own messages: what corbie sends is decoded by them, and looked at.

Run by hand:

    python3 -m venv .tools/otlp && .tools/otlp/bin/pip install -r tests/interop/otlp-requirements.txt
    .tools/otlp/bin/python tests/interop/otlp.py -- target/debug/corbie stdio
"""

import argparse
import json
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from checks import Checks
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

SECONDS = 60
PROMPT = "my-diary-of-may-the-fourth"


class Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[tuple[str, str, bytes]] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, self.headers["content-type"], body))
        self.send_response(200)
        self.send_header("content-type", "application/x-protobuf")
        self.end_headers()
        self.wfile.write(ExportTraceServiceResponse().SerializeToString())

    def log_message(self, *_: Any) -> None:
        pass


def said(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [said(member) for member in value.array_value.values]
    return getattr(value, kind) if kind else None


def attributes(span: Span) -> dict[str, Any]:
    return {attribute.key: said(attribute.value) for attribute in span.attributes}


def run(command: list[str], port: int) -> str:
    """Asks two questions and ends the program, which sends the last spans then; gives what it logged."""
    settings = {
        "CORBIE_TELEMETRY__OTLP__ENDPOINT": f"http://127.0.0.1:{port}",
        "CORBIE_PROVIDERS__MOCK__TYPE": "mock",
        "CORBIE_PROVIDERS__DETECT_PORTS": "[]",
        "CORBIE_KNOWLEDGE__ENABLED": "false",
    }
    models = ["mock", "mock/mock-error-authentication"]
    call = lambda model: {"name": "chat_completion", "arguments": {"prompt": PROMPT, "model": model}}
    asked = [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call(model)}
        for number, model in enumerate(models)
    ]
    text = "".join(json.dumps(message) + "\n" for message in asked)
    ended = subprocess.run(
        command, input=text, capture_output=True, encoding="utf-8", env={**os.environ, **settings}, timeout=SECONDS
    )
    return ended.stderr


def look(checks: Checks, collector: Collector) -> None:
    spans: list[Span] = []
    for path, kind, body in collector.requests:
        checks.that(path == "/v1/traces" and kind == "application/x-protobuf", "a request is OTLP over HTTP", f"{path} {kind}")
        checks.that(PROMPT.encode() not in body, "nothing of what was asked is in it")
        request = ExportTraceServiceRequest.FromString(body)
        request.DiscardUnknownFields()
        checks.that(request.SerializeToString() == body, "every field of it is known")
        for told in request.resource_spans:
            service = {attribute.key: said(attribute.value) for attribute in told.resource.attributes}
            checks.that(service.get("service.name") == "corbie", "the service is named", str(service))
            spans += [span for scope in told.scope_spans for span in scope.spans]
    named = {span.name: span for span in spans}
    for name in ["chat mock", "chat mock-error-authentication", "route"]:
        checks.that(name in named, f"there is a span `{name}`", str(sorted(named)))
    if checks.failed:
        return
    good, bad = named["chat mock"], named["chat mock-error-authentication"]
    checks.that(good.kind == Span.SPAN_KIND_CLIENT, "a call of a provider is a client's span")
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "mock",
        "gen_ai.request.model": "mock",
        "gen_ai.response.model": "mock",
        "gen_ai.response.finish_reasons": ["stop"],
    }
    for key, value in expected.items():
        checks.that(attributes(good).get(key) == value, f"{key} is {value}", str(attributes(good)))
    for key in ["gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"]:
        checks.that(attributes(good).get(key, 0) > 0, f"{key} is told", str(attributes(good)))
    checks.that(attributes(bad).get("error.type") == "authentication", "a failure has its kind", str(attributes(bad)))
    checks.that(bad.status.code == Status.STATUS_CODE_ERROR, "a failure has its status")
    checks.that(good.status.code == Status.STATUS_CODE_UNSET, "a success has none")
    ids = {(span.trace_id, span.span_id) for span in spans}
    for span in spans:
        fits = len(span.trace_id) == 16 and len(span.span_id) == 8
        known = not span.parent_span_id or (span.trace_id, span.parent_span_id) in ids
        checks.that(fits and known, f"`{span.name}` has its place", repr(span))
        checks.that(0 < span.start_time_unix_nano <= span.end_time_unix_nano, f"`{span.name}` has its time")
    checks.that(good.trace_id != bad.trace_id, "two calls are two traces")


def main() -> None:
    parser = argparse.ArgumentParser(description="What corbie tells a collector.")
    parser.add_argument("command", nargs="+", help="command line of corbie on stdio")
    command = parser.parse_args().command
    checks = Checks(prefix="otlp")
    collector = Collector()
    logged = run(command, collector.server_port)
    checks.that(bool(collector.requests), "spans came", logged)
    look(checks, collector)
    checks.exit()


if __name__ == "__main__":
    main()
