"""LangChain's client for OpenAI as a client of corbie, with providers of three wire formats behind it."""

import argparse
import asyncio
import re
import time
import traceback
import urllib.request
from collections.abc import Callable
from typing import Any

import openai
from checks import Checks, fails, same
from langchain_core.messages import AIMessageChunk, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel

SECONDS = 30
FORMATS = ["openai", "anthropic", "google"]
PICTURE = "iVBORw0KGgo="
DIMENSIONS = 384


class Place(BaseModel):
    """Where it is."""

    place: str


@tool
def weather(place: str) -> str:
    """What the sky does there."""
    return f"rain in {place}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="where corbie listens, such as http://127.0.0.1:3000")
    parser.add_argument("--token", required=True, help="what it wants from its callers")
    given = parser.parse_args()
    corbie = Corbie(given.url, given.token)
    checks = Checks()
    parts = [(f"langchain {name}", lambda name=name: ask(checks, corbie, name)) for name in FORMATS]
    parts += [("langchain", lambda: ask_for_the_rest(checks, corbie))]
    for prefix, part in parts:
        checks.prefix = prefix
        try:
            part()
        except Exception:
            checks.that(False, "the conversation ends without an exception", traceback.format_exc())
    checks.exit()


class Corbie:
    """Where it listens, and the clients that know it."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token

    def chat(self, model: str, **more: Any) -> ChatOpenAI:
        # Default retries: corbie itself must signal to the SDK that they are useless.
        given = {"base_url": f"{self.url}/v1", "api_key": self.token, "timeout": SECONDS} | more
        return ChatOpenAI(model=model, **given)

    def embeddings(self, **more: Any) -> OpenAIEmbeddings:
        given = {"base_url": f"{self.url}/v1", "api_key": self.token, "timeout": SECONDS} | more
        return OpenAIEmbeddings(model="all-MiniLM-L6-v2-int8", **given)

    def cancelled(self) -> int:
        """How many decisions ended because the caller hung up."""
        asked = urllib.request.Request(f"{self.url}/metrics", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
            lines = answer.read().decode().splitlines()
        counts = [line for line in lines if re.match(r'corbie_route_decisions_total\{.*outcome="cancelled"', line)]
        return sum(int(line.rsplit(" ", 1)[1]) for line in counts)


def ask(checks: Checks, corbie: Corbie, provider: str) -> None:
    llm = corbie.chat(f"{provider}/echo-small", include_response_headers=True)
    ask_in_words(checks, corbie, llm, provider)
    ask_with_tools(checks, llm)
    ask_with_pictures(checks, llm)
    ask_for_structure(checks, llm, provider)
    ask_for_failures(checks, corbie, provider)
    hang_up(checks, corbie, provider)


def ask_in_words(checks: Checks, corbie: Corbie, llm: ChatOpenAI, provider: str) -> None:
    answer = llm.invoke("hello to you")
    told = answer.response_metadata
    same(checks, "chat", (answer.content, told["finish_reason"]), ("echo: hello to you", "stop"))
    same(checks, "usage", tokens(answer), (3, 4, 7))
    headers = told["headers"]
    same(checks, "headers", (headers["x-corbie-provider"], headers["x-corbie-model"]), (provider, "echo-small"))
    turns = [SystemMessage("Be brief."), HumanMessage("one"), answer, HumanMessage("two")]
    same(checks, "turns", llm.invoke(turns).content, "echo: two")
    same(checks, "max_tokens", stopped(llm.invoke("a b c d e", max_tokens=2)), ("echo: a", "length"))
    same(checks, "stop", stopped(llm.invoke("one STOP two", stop=["STOP"])), ("echo: one", "stop"))
    chain = ChatPromptTemplate.from_messages([("user", "tell {what}")]) | llm | StrOutputParser()
    same(checks, "chain", chain.invoke({"what": "more"}), "echo: tell more")
    same(checks, "batch", chain.batch([{"what": "a"}, {"what": "b"}]), ["echo: tell a", "echo: tell b"])

    chunks = list(llm.stream("hello to you"))
    same(checks, "stream", ("".join(chunk.content for chunk in chunks), len(chunks) > 2), ("echo: hello to you", True))
    same(checks, "stream without usage", [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata], [])
    counted = corbie.chat(f"{provider}/echo-small", stream_usage=True)
    same(checks, "stream usage", tokens(joined(counted.stream("hello to you"))), (3, 4, 7))
    same(checks, "async", asyncio.run(llm.ainvoke("hello to you")).content, "echo: hello to you")
    same(checks, "async stream", asyncio.run(heard(llm)), "echo: hello to you")


def ask_with_tools(checks: Checks, llm: ChatOpenAI) -> None:
    able = llm.bind_tools([weather])
    turns: list[Any] = [HumanMessage('call weather {"place": "Lima"}')]
    answer = able.invoke(turns)
    same(checks, "tool call", called(answer), [("weather", {"place": "Lima"})])
    same(checks, "tool call ends", answer.response_metadata["finish_reason"], "tool_calls")
    turns += [answer, weather.invoke(answer.tool_calls[0])]
    same(checks, "tool result", able.invoke(turns).content, "echo: rain in Lima")

    turns = [HumanMessage('call weather {"place": "Lima"} call weather {"place": "Rome"}')]
    answer = able.invoke(turns)
    same(checks, "two tool calls", called(answer), [("weather", {"place": "Lima"}), ("weather", {"place": "Rome"})])
    checks.that(len({call["id"] for call in answer.tool_calls}) == 2, "calls have ids of their own", str(answer.tool_calls))
    turns += [answer, *(ToolMessage(call["args"]["place"], tool_call_id=call["id"]) for call in answer.tool_calls)]
    same(checks, "two tool results", able.invoke(turns).content, "echo: Lima\nRome")

    whole = joined(able.stream('call weather {"place": "Lima"}'))
    same(checks, "streamed tool call", called(whole), [("weather", {"place": "Lima"})])
    whole = joined(able.stream([HumanMessage('call weather {"place": "Lima"}'), whole, weather.invoke(whole.tool_calls[0])]))
    same(checks, "streamed tool result", whole.content, "echo: rain in Lima")
    same(checks, "tools that are not called", able.invoke("hello to you").content, "echo: hello to you")


def ask_with_pictures(checks: Checks, llm: ChatOpenAI) -> None:
    theirs = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}
    anyones = {"type": "image", "base64": PICTURE, "mime_type": "image/png"}
    for what, picture in (("OpenAI's", theirs), ("LangChain's", anyones)):
        said = llm.invoke([HumanMessage([{"type": "text", "text": "look"}, picture])]).content
        checks.that("look" in said and "[image]" in said, f"vision, in {what} words", said)


def ask_for_structure(checks: Checks, llm: ChatOpenAI, provider: str) -> None:
    # The mock upstream returns the smallest answer that matches a schema.
    same(checks, "structured output", llm.with_structured_output(Place).invoke("where?"), Place(place=""))
    schema = Place.model_json_schema()
    found = llm.with_structured_output(schema, method="json_schema").invoke("where?")
    same(checks, "structured output by a schema", found, {"place": ""})
    raw = llm.with_structured_output(Place, include_raw=True).invoke("where?")
    same(checks, "structured output and what it came from", (raw["parsed"], raw["parsing_error"]), (Place(place=""), None))
    streamed = list(llm.with_structured_output(Place).stream("where?"))
    same(checks, "streamed structured output", streamed[-1:], [Place(place="")])
    found = llm.with_structured_output(Place, method="function_calling").invoke('call Place {"place": "Lima"}')
    same(checks, "structured output by a tool", found, Place(place="Lima"))
    # Anthropic has no such mode: corbie requests JSON in the prompt, which the mock upstream ignores.
    if provider != "anthropic":
        same(checks, "JSON mode", llm.with_structured_output(None, method="json_mode").invoke("hi"), {"echo": "hi"})


def ask_for_failures(checks: Checks, corbie: Corbie, provider: str) -> None:
    def asked(model: str) -> Callable[[], Any]:
        return lambda: corbie.chat(f"{provider}/{model}").invoke("hello")

    fails(checks, openai.NotFoundError, asked("status-404"))
    fails(checks, openai.BadRequestError, asked("status-400"))
    error = fails(checks, openai.RateLimitError, asked("status-429-after-9"))
    same(checks, "retry-after", error and error.response.headers.get("retry-after"), "9")
    error = fails(checks, openai.RateLimitError, lambda: list(corbie.chat(f"{provider}/status-429-after-9").stream("hi")))
    same(checks, "retry-after of a stream", error and error.response.headers.get("retry-after"), "9")
    fails(checks, openai.InternalServerError, asked("status-503"))
    error = fails(checks, openai.InternalServerError, lambda: corbie.chat(f"bad-{provider}/echo-small").invoke("hello"))
    same(checks, "a refused key of ours is no refused key of theirs", error and error.status_code, 502)
    said: list[str] = []
    broken = corbie.chat(f"{provider}/error-mid")
    fails(checks, openai.APIError, lambda: said.extend(chunk.content for chunk in broken.stream("hello to you")))
    # `extend` keeps the items before the exception.
    checks.that(bool("".join(said)), "what came before the error is heard", repr(said))


def hang_up(checks: Checks, corbie: Corbie, provider: str) -> None:
    # Complete or streamed, the answer takes three seconds longer than the timeout here.
    slow = corbie.chat(f"{provider}/drip-1000")
    before = corbie.cancelled()
    stream = slow.stream("one two three four five six seven eight nine ten")
    next(stream)
    left(checks, corbie, before, "a stream is left", stream.close)

    async def cancel() -> None:
        task = asyncio.create_task(slow.ainvoke("one two three four five six seven eight nine ten"))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    before = corbie.cancelled()
    left(checks, corbie, before, "a cancelled call is left", lambda: asyncio.run(cancel()))


def ask_for_the_rest(checks: Checks, corbie: Corbie) -> None:
    auto = corbie.chat("auto", include_response_headers=True)
    answer = auto.invoke("Why did Rome fall?")
    headers = answer.response_metadata["headers"]
    same(checks, "auto", answer.content, "echo: Why did Rome fall?")
    same(checks, "auto is classified", headers.get("x-corbie-category"), "history")
    first = next(auto.stream("Why did Rome fall?"))
    same(checks, "headers of a stream", first.response_metadata["headers"].get("x-corbie-category"), "history")

    embeddings = corbie.embeddings(check_embedding_ctx_length=False)
    texts = ["a cat", "a kitten", "the price of copper"]
    vectors = embeddings.embed_documents(texts)
    same(checks, "embeddings", [len(vector) for vector in vectors], [DIMENSIONS] * 3)
    near, far = alike(vectors[0], vectors[1]), alike(vectors[0], vectors[2])
    checks.that(near > far, "what is alike is near", f"{near} and {far}")
    query = embeddings.embed_query("a cat")
    checks.that(alike(query, vectors[0]) > 0.999, "a query is embedded as a text is")
    same(checks, "async embeddings", len(asyncio.run(embeddings.aembed_query("a cat"))), DIMENSIONS)
    same(checks, "many embeddings", len(embeddings.embed_documents([f"text {number}" for number in range(300)])), 300)
    # LangChain's default input: token IDs of another model.
    error = fails(checks, openai.BadRequestError, lambda: embeddings.client.create(model="auto", input=[[9906, 1917]]))
    checks.that(bool(error) and "token IDs" in error.message, "token IDs are refused by name", str(error))

    error = fails(checks, openai.NotFoundError, lambda: corbie.chat("no-such-model").invoke("hello"))
    same(checks, "code", error and error.code, "model_not_found")
    fails(checks, openai.NotFoundError, lambda: list(corbie.chat("no-such-model").stream("hello")))
    fails(checks, openai.AuthenticationError, lambda: corbie.chat("auto", api_key="wrong").invoke("hello"))
    wrong = corbie.embeddings(check_embedding_ctx_length=False, api_key="wrong")
    fails(checks, openai.AuthenticationError, lambda: wrong.embed_query("a cat"))
    fails(checks, openai.NotFoundError, lambda: corbie.chat("auto", use_responses_api=True).invoke("hello"))


async def heard(llm: ChatOpenAI) -> str:
    return "".join([chunk.content async for chunk in llm.astream("hello to you")])


def joined(stream: Any) -> AIMessageChunk:
    whole = next(stream)
    for chunk in stream:
        whole += chunk
    return whole


def tokens(answer: Any) -> tuple[int, int, int] | None:
    used = answer.usage_metadata
    return used and (used["input_tokens"], used["output_tokens"], used["total_tokens"])


def stopped(answer: Any) -> tuple[str, str]:
    return answer.content.strip(), answer.response_metadata["finish_reason"]


def called(answer: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(call["name"], call["args"]) for call in answer.tool_calls]


def alike(one: list[float], two: list[float]) -> float:
    return sum(a * b for a, b in zip(one, two))


def left(checks: Checks, corbie: Corbie, before: int, what: str, leave: Callable[[], Any]) -> None:
    """Leaves, and waits until corbie has noticed."""
    leave()
    until = time.monotonic() + 2
    while corbie.cancelled() == before and time.monotonic() < until:
        time.sleep(0.05)
    same(checks, what, corbie.cancelled(), before + 1)


if __name__ == "__main__":
    main()
