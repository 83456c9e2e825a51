"""The official Python SDK of OpenAI as a client of corbie, with providers of three wire formats behind it."""

import argparse
import base64
import struct
import time
import traceback
from typing import Any

import openai
from checks import Checks, fails, same
from pydantic import BaseModel

SECONDS = 30
FORMATS = ["openai", "anthropic", "google"]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
        },
    }
]
CALL = 'call weather {"place": "Lima"}'
PICTURE = "data:image/png;base64,iVBORw0KGgo="
DIMENSIONS = 384


class Place(BaseModel):
    place: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="where corbie listens, such as http://127.0.0.1:3000")
    parser.add_argument("--token", required=True, help="what it wants from its callers")
    given = parser.parse_args()
    # Default retries: corbie itself must signal to the SDK that they are useless.
    client = openai.OpenAI(base_url=f"{given.url}/v1", api_key=given.token, timeout=SECONDS)
    checks = Checks()
    parts = [(f"openai-python {name}", lambda name=name: ask(checks, client, name)) for name in FORMATS]
    parts += [("openai-python", lambda: ask_for_the_rest(checks, client))]
    for prefix, part in parts:
        checks.prefix = prefix
        try:
            part()
        except Exception:
            checks.that(False, "the conversation ends without an exception", traceback.format_exc())
    checks.exit()


def ask(checks: Checks, client: openai.OpenAI, provider: str) -> None:
    model = f"{provider}/echo-small"
    user = [{"role": "user", "content": "hello to you"}]

    def create(model: str = model, **more):
        return client.chat.completions.create(model=model, messages=more.pop("messages", user), **more)

    answer = create()
    choice = answer.choices[0]
    same(checks, "chat", (choice.message.content, choice.finish_reason), ("echo: hello to you", "stop"))
    same(checks, "usage", (answer.usage.prompt_tokens, answer.usage.completion_tokens), (3, 4))
    raw = client.chat.completions.with_raw_response.create(model=model, messages=user)
    same(checks, "headers", (raw.headers["x-corbie-provider"], raw.headers["x-corbie-model"]), (provider, "echo-small"))

    chunks = list(create(stream=True))
    same(checks, "stream", "".join(chunk.choices[0].delta.content or "" for chunk in chunks), "echo: hello to you")
    same(checks, "stream without usage", [chunk.usage for chunk in chunks if chunk.usage], [])
    chunks = list(create(stream=True, stream_options={"include_usage": True}))
    same(checks, "stream usage", [chunk.usage.total_tokens for chunk in chunks if chunk.usage], [7])

    turns = [{"role": "user", "content": CALL}]
    message = create(messages=turns, tools=TOOLS).choices[0].message
    call = message.tool_calls[0]
    same(checks, "tool call", (call.function.name, call.function.arguments), ("weather", '{"place":"Lima"}'))
    turns += [message, {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
    same(checks, "tool result", create(messages=turns, tools=TOOLS).choices[0].message.content, "echo: rain")
    with client.chat.completions.stream(model=model, messages=turns[:1], tools=TOOLS) as stream:
        final = stream.get_final_completion().choices[0]
    call = final.message.tool_calls[0]
    same(checks, "streamed tool call", (call.function.name, call.function.arguments), ("weather", '{"place":"Lima"}'))
    same(checks, "streamed tool call ends", final.finish_reason, "tool_calls")

    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PICTURE}}]
    said = create(messages=[{"role": "user", "content": parts}]).choices[0].message.content
    checks.that("[image]" in said, "vision", said)
    parsed = client.chat.completions.parse(model=model, messages=user, response_format=Place)
    same(checks, "structured output", parsed.choices[0].message.parsed, Place(place=""))
    with client.chat.completions.stream(model=model, messages=user, response_format=Place) as stream:
        parsed = stream.get_final_completion()
    same(checks, "streamed structured output", parsed.choices[0].message.parsed, Place(place=""))

    if provider != "openai":
        hand_back(checks, client, provider)

    if provider != "openai":
        error = fails(checks, openai.BadRequestError, lambda: create(n=2))
        same(checks, "several answers are refused by name", error and error.param, "n")
        parts = [{"type": "file", "file": {"file_id": "file-1"}}]
        error = fails(checks, openai.BadRequestError, lambda: create(messages=[{"role": "user", "content": parts}]))
        same(checks, "a file that is elsewhere is refused by name", error and error.param, "messages")
    fails(checks, openai.NotFoundError, lambda: create(f"{provider}/status-404"))
    fails(checks, openai.BadRequestError, lambda: create(f"{provider}/status-400"))
    error = fails(checks, openai.RateLimitError, lambda: create(f"{provider}/status-429-after-9"))
    same(checks, "retry-after", error and error.response.headers.get("retry-after"), "9")
    fails(checks, openai.RateLimitError, lambda: create(f"{provider}/status-429-after-9", stream=True))
    fails(checks, openai.InternalServerError, lambda: create(f"{provider}/status-503"))
    error = fails(checks, openai.InternalServerError, lambda: create(f"bad-{provider}/echo-small"))
    same(checks, "a refused key of ours is no refused key of theirs", error and error.status_code, 502)
    heard: list[str] = []
    fails(checks, openai.APIError, lambda: hear(create(f"{provider}/error-mid", stream=True), heard))
    checks.that(bool(heard), "what came before the error is heard")

    with create(f"{provider}/drip-500", stream=True) as stream:
        first = next(iter(stream))
        closing = time.monotonic()
    took = time.monotonic() - closing
    checks.that(first.object == "chat.completion.chunk" and took < 1, "a stream is left", f"{took} s")


def hand_back(checks: Checks, client: openai.OpenAI, provider: str) -> None:
    """What proves thinking to its provider comes back with the messages; marks for its cache get there."""
    settings = {"model": f"{provider}/marks", "tools": TOOLS, "reasoning_effort": "low"}
    completions = client.chat.completions

    def streamed(turns: list) -> Any:
        with completions.stream(messages=turns, **settings) as stream:
            return stream.get_final_completion()

    for how, create in [("whole", lambda turns: completions.create(messages=turns, **settings)), ("streamed", streamed)]:
        turns = [{"role": "user", "content": CALL}]
        message = create(turns).choices[0].message
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"}
        turns += [message.model_dump(), result]
        message = create(turns).choices[0].message
        same(checks, f"{how}: the signature of a call comes back", message.content, "1 signatures, 0 cache marks")
        turns += [message.model_dump(), {"role": "user", "content": "and now?"}]
        said = create(turns).choices[0].message.content
        same(checks, f"{how}: the signature of a text comes back", said, "2 signatures, 0 cache marks")

    mark = {"type": "ephemeral"}
    parts = [{"type": "text", "text": "a long book", "cache_control": mark}]
    turns = [{"role": "system", "content": parts}, {"role": "user", "content": parts}]
    tools = [{**TOOLS[0], "cache_control": mark}]
    said = completions.create(model=f"{provider}/marks", messages=turns, tools=tools).choices[0].message.content
    marks = 3 if provider == "anthropic" else 0
    same(checks, "marks for the cache", said, f"0 signatures, {marks} cache marks")


def ask_for_the_rest(checks: Checks, client: openai.OpenAI) -> None:
    user = [{"role": "user", "content": "hello to you"}]
    raw = client.chat.completions.with_raw_response.create(model="auto", messages=user)
    same(checks, "auto", raw.parse().choices[0].message.content, "echo: hello to you")
    checks.that(bool(raw.headers.get("x-corbie-category")), "auto is classified", str(dict(raw.headers)))

    texts = ["a cat", "the price of copper"]
    # By default, the SDK requests base64 and decodes it.
    decoded = client.embeddings.create(model="auto", input=texts).data
    listed = client.embeddings.create(model="auto", input=texts, encoding_format="float").data
    encoded = client.embeddings.create(model="auto", input=texts, encoding_format="base64").data
    single = [struct.unpack(f"<{DIMENSIONS}f", base64.b64decode(one.embedding)) for one in encoded]
    same(checks, "embeddings", [len(one.embedding) for one in decoded], [DIMENSIONS, DIMENSIONS])
    alike = all(abs(a - b) < 1e-6 for one, two in zip(decoded, listed) for a, b in zip(one.embedding, two.embedding))
    checks.that(alike, "embeddings as numbers and as base64 are the same")
    alike = all(abs(a - b) < 1e-6 for one, two in zip(single, listed) for a, b in zip(one, two.embedding))
    checks.that(alike, "embeddings in base64 are little-endian single precision")

    for provider in ["openai", "google"]:
        model = f"{provider}/vectors"
        raw = client.embeddings.with_raw_response.create(model=model, input=texts)
        same(checks, f"embeddings by {provider}", raw.headers["x-corbie-provider"], provider)
        decoded = raw.parse()
        listed = client.embeddings.create(model=model, input=texts, encoding_format="float")
        same(checks, f"vectors of {provider}", [one.embedding for one in decoded.data], [one.embedding for one in listed.data])
        same(checks, f"usage of {provider}", (decoded.usage.prompt_tokens, decoded.usage.total_tokens), (6, 6))
        short = client.embeddings.create(model=model, input="a cat", dimensions=3).data[0].embedding
        same(checks, f"dimensions of {provider}", short, listed.data[0].embedding[:3])
        limited = lambda: client.embeddings.create(model=f"{provider}/status-429-after-9", input="a cat")
        error = fails(checks, openai.RateLimitError, limited)
        same(checks, "retry-after", error and error.response.headers.get("retry-after"), "9")
    for model in ["no-such-model", "anthropic/vectors"]:
        error = fails(checks, openai.NotFoundError, lambda: client.embeddings.create(model=model, input="a cat"))
        same(checks, "code", error and (error.code, error.param), ("model_not_found", "model"))

    names = [model.id for model in client.models.list()]
    checks.that({"auto", "echo-small", "echo-large"} <= set(names), "models", str(names))
    same(checks, "model", client.models.retrieve("auto").id, "auto")

    error = fails(checks, openai.NotFoundError, lambda: client.models.retrieve("no-such-model"))
    same(checks, "code", error and error.code, "model_not_found")
    asked = lambda: client.chat.completions.create(model="no-such-model", messages=user)
    error = fails(checks, openai.NotFoundError, asked)
    same(checks, "code", error and (error.code, error.param, error.type), ("model_not_found", "model", "invalid_request_error"))
    error = fails(checks, openai.BadRequestError, lambda: client.chat.completions.create(model="auto", messages=[]))
    same(checks, "param", error and error.param, "messages")
    error = fails(checks, openai.BadRequestError, lambda: client.embeddings.create(model="auto", input=[]))
    same(checks, "param", error and error.param, "input")
    fails(checks, openai.NotFoundError, lambda: client.responses.create(model="auto", input="hello"))
    wrong = client.with_options(api_key="wrong")
    fails(checks, openai.AuthenticationError, lambda: wrong.models.list())
    fails(checks, openai.AuthenticationError, lambda: wrong.chat.completions.create(model="auto", messages=user))


def hear(stream: Any, heard: list[str]) -> None:
    for chunk in stream:
        heard += [choice.delta.content for choice in chunk.choices if choice.delta.content]


if __name__ == "__main__":
    main()
