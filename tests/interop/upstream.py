"""The official Python SDKs of OpenAI, Anthropic and Google as clients of the fake upstream, in its three formats."""

import argparse
import traceback

import anthropic
import openai
from checks import Checks, raises, same
from google import genai
from google.genai import errors, types

KEY = "test-key"
SECONDS = 30
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
CALL = 'call weather {"place": "Lima"}'
ARGUMENTS = {"place": "Lima"}
MODELS = ["echo-large", "echo-small", "echo-thinking"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="where the upstream listens, such as http://127.0.0.1:4000")
    url = parser.parse_args().url
    checks = Checks()
    for ask in (ask_openai, ask_anthropic, ask_google):
        checks.prefix = ask.__name__.removeprefix("ask_")
        try:
            ask(checks, url)
        except Exception:
            checks.that(False, "the conversation ends without an exception", traceback.format_exc())
    checks.exit()


def ask_openai(checks: Checks, url: str) -> None:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0, timeout=SECONDS)
    user = [{"role": "user", "content": "hello to you"}]

    def create(model: str, **more):
        return client.chat.completions.create(model=model, messages=more.pop("messages", user), **more)

    answer = create("echo-small")
    same(checks, "chat", answer.choices[0].message.content, "echo: hello to you")
    same(checks, "usage", (answer.usage.prompt_tokens, answer.usage.completion_tokens), (3, 4))

    chunks = list(create("echo-small", stream=True, stream_options={"include_usage": True}))
    texts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    same(checks, "stream", "".join(text or "" for text in texts), "echo: hello to you")
    same(checks, "stream usage", (len(chunks) > 4, chunks[-1].usage.total_tokens), (True, 7))

    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
    turns = [{"role": "user", "content": CALL}]
    message = create("echo-small", messages=turns, tools=tools).choices[0].message
    call = message.tool_calls[0]
    same(checks, "tool call", (call.function.name, call.function.arguments), ("weather", '{"place":"Lima"}'))
    turns += [message, {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
    same(checks, "tool result", create("echo-small", messages=turns, tools=tools).choices[0].message.content, "echo: rain")
    with client.chat.completions.stream(model="echo-small", messages=turns[:1], tools=tools) as stream:
        call = stream.get_final_completion().choices[0].message.tool_calls[0]
    same(checks, "streamed tool call", (call.function.name, call.function.arguments), ("weather", '{"place":"Lima"}'))

    shape = {"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA}}
    same(checks, "schema", create("echo-small", response_format=shape).choices[0].message.content, '{"place":""}')
    thought = create("echo-small", reasoning_effort="low")
    same(checks, "thinking", thought.choices[0].message.reasoning_content, "The user says: hello to you")
    same(checks, "thinking usage", thought.usage.completion_tokens_details.reasoning_tokens, 6)
    same(checks, "models", [model.id for model in client.models.list()], MODELS)

    error = raises(checks, openai.RateLimitError, lambda: create("status-429-after-2"))
    same(checks, "retry-after", error and error.response.headers["retry-after"], "2")
    error = raises(checks, openai.RateLimitError, lambda: create("quota"))
    same(checks, "quota code", error and error.code, "insufficient_quota")
    raises(checks, openai.NotFoundError, lambda: create("status-404"))
    raises(checks, openai.InternalServerError, lambda: create("status-503"))
    raises(checks, openai.APIConnectionError, lambda: create("reset"))
    raises(checks, openai.APIError, lambda: list(create("error-mid", stream=True)))
    wrong = client.with_options(api_key="bad-key")
    raises(checks, openai.AuthenticationError, lambda: wrong.models.list())


def ask_anthropic(checks: Checks, url: str) -> None:
    client = anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0, timeout=SECONDS)
    user = [{"role": "user", "content": "hello to you"}]

    def create(model: str, **more):
        return client.messages.create(model=model, max_tokens=2048, messages=more.pop("messages", user), **more)

    answer = create("echo-small")
    same(checks, "chat", (answer.content[0].text, answer.stop_reason), ("echo: hello to you", "end_turn"))
    same(checks, "usage", (answer.usage.input_tokens, answer.usage.output_tokens), (3, 4))

    with client.messages.stream(model="echo-small", max_tokens=2048, messages=user) as stream:
        texts = list(stream.text_stream)
        final = stream.get_final_message()
    same(checks, "stream", (len(texts) > 2, "".join(texts)), (True, "echo: hello to you"))
    same(checks, "stream usage", (final.usage.input_tokens, final.usage.output_tokens), (3, 4))

    tools = [{"name": "weather", "input_schema": SCHEMA}]
    turns = [{"role": "user", "content": CALL}]
    message = create("echo-small", messages=turns, tools=tools)
    call = message.content[0]
    same(checks, "tool call", (message.stop_reason, call.name, call.input), ("tool_use", "weather", ARGUMENTS))
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "rain"}
    turns += [{"role": "assistant", "content": message.content}, {"role": "user", "content": [result]}]
    same(checks, "tool result", create("echo-small", messages=turns, tools=tools).content[0].text, "echo: rain")
    with client.messages.stream(model="echo-small", max_tokens=2048, messages=turns[:1], tools=tools) as stream:
        call = stream.get_final_message().content[0]
    same(checks, "streamed tool call", (call.name, call.input), ("weather", ARGUMENTS))

    shape = {"format": {"type": "json_schema", "schema": SCHEMA}}
    same(checks, "schema", create("echo-small", output_config=shape).content[0].text, '{"place":""}')
    thinking = {"type": "enabled", "budget_tokens": 1024}
    with client.messages.stream(model="echo-small", max_tokens=2048, messages=user, thinking=thinking) as stream:
        blocks = stream.get_final_message().content
    same(checks, "thinking", [block.type for block in blocks], ["thinking", "text"])
    same(checks, "thinking text", blocks[0].thinking, "The user says: hello to you")
    same(checks, "models", [model.id for model in client.models.list()], MODELS)

    error = raises(checks, anthropic.RateLimitError, lambda: create("status-429-after-2"))
    same(checks, "retry-after", error and error.response.headers["retry-after"], "2")
    raises(checks, anthropic.BadRequestError, lambda: create("quota"))
    raises(checks, anthropic.NotFoundError, lambda: create("status-404"))
    raises(checks, anthropic.InternalServerError, lambda: create("status-529"))
    raises(checks, anthropic.APIConnectionError, lambda: create("reset"))
    raises(checks, anthropic.APIStatusError, lambda: list(create("error-mid", stream=True)))
    wrong = client.with_options(api_key="bad-key")
    raises(checks, anthropic.AuthenticationError, lambda: wrong.models.list())


def ask_google(checks: Checks, url: str) -> None:
    def connect(key: str) -> genai.Client:
        retry = types.HttpRetryOptions(attempts=1)
        options = types.HttpOptions(base_url=url, api_version="v1beta", timeout=SECONDS * 1000, retry_options=retry)
        return genai.Client(vertexai=False, api_key=key, http_options=options)

    # An unreferenced client is closed, even while its `models` is in use.
    client, wrong = connect(KEY), connect("bad-key")
    models = client.models

    def generate(model: str, contents="hello to you", **config):
        given = types.GenerateContentConfig(**config)
        return models.generate_content(model=model, contents=contents, config=given)

    answer = generate("echo-small")
    used = answer.usage_metadata
    same(checks, "chat", answer.text, "echo: hello to you")
    same(checks, "usage", (used.prompt_token_count, used.candidates_token_count, used.total_token_count), (3, 4, 7))

    chunks = list(models.generate_content_stream(model="echo-small", contents="hello to you"))
    same(checks, "stream", "".join(chunk.text or "" for chunk in chunks), "echo: hello to you")
    same(checks, "stream end", (len(chunks) > 2, chunks[-1].candidates[0].finish_reason), (True, types.FinishReason.STOP))

    tools = [{"function_declarations": [{"name": "weather", "parameters_json_schema": SCHEMA}]}]
    tools_config = {"tools": tools, "automatic_function_calling": {"disable": True}}
    called = generate("echo-small", CALL, **tools_config)
    call = called.function_calls[0]
    same(checks, "tool call", (call.name, call.args), ("weather", ARGUMENTS))
    turns = [
        types.UserContent(CALL),
        called.candidates[0].content,
        types.UserContent(types.Part.from_function_response(name="weather", response={"result": "rain"})),
    ]
    same(checks, "tool result", generate("echo-small", turns, **tools_config).text, "echo: rain")

    shape = {"response_mime_type": "application/json", "response_json_schema": SCHEMA}
    same(checks, "schema", generate("echo-small", **shape).text, '{"place":""}')
    parts = generate("echo-small", thinking_config={"include_thoughts": True}).candidates[0].content.parts
    same(checks, "thinking", [bool(part.thought) for part in parts], [True, False])
    same(checks, "thinking text", parts[0].text, "The user says: hello to you")
    same(checks, "models", [model.name for model in models.list()], [f"models/{name}" for name in MODELS])

    error = raises(checks, errors.ClientError, lambda: generate("status-429-retryinfo"))
    same(checks, "status", error and (error.code, error.status), (429, "RESOURCE_EXHAUSTED"))
    error = raises(checks, errors.ServerError, lambda: generate("status-503"))
    same(checks, "status", error and (error.code, error.status), (503, "UNAVAILABLE"))
    error = raises(checks, errors.ClientError, lambda: wrong.models.list())
    same(checks, "status", error and (error.code, error.status), (401, "UNAUTHENTICATED"))
    raises(checks, errors.APIError, lambda: list(models.generate_content_stream(model="error-mid", contents="hello")))


if __name__ == "__main__":
    main()
