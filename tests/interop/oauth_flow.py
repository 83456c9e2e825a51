"""The official SDKs get a token for corbie by themselves: 401, resource metadata, the metadata of a certified OpenID
provider, registration, a code, a token; and call tools with it."""

import subprocess
import sys
import time
import traceback
from pathlib import Path
from urllib.parse import parse_qs, urljoin, urlsplit

import anyio
import httpx2
from checks import Checks
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp.shared.exceptions import MCPError
from oauth_corbie import OPENER, Corbie, free_port

ISSUER = Path(__file__).with_name("oauth_issuer.mjs")
TYPESCRIPT = Path(__file__).with_name("oauth_client.mjs")
# No server listens there: the test reads the redirect location instead.
CALLBACK = "http://127.0.0.1:1/callback"
SCOPES = {"corbie:read": "untrusted", "corbie:write": "verified", "corbie:admin": "trusted"}
SECONDS_TO_START = 60
SECONDS_FOR_TYPESCRIPT = 120
MOST_REDIRECTS = 20


class Memory:
    """Keeps what the SDK learns."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """Goes wherever the provider sends it, until that is back to the client."""

    def __init__(self) -> None:
        self.asked_for: list[str] = []

    async def open(self, url: str) -> None:
        self.asked_for += parse_qs(urlsplit(url).query).get("scope", [""])[0].split()
        async with httpx2.AsyncClient(follow_redirects=False, trust_env=False) as client:
            for _ in range(MOST_REDIRECTS):
                if url.startswith(CALLBACK):
                    self.query = parse_qs(urlsplit(url).query)
                    return
                answer = await client.get(url)
                url = urljoin(url, answer.headers["location"])
        raise RuntimeError("the provider does not send the browser back")

    async def result(self) -> AuthorizationCodeResult:
        said = {name: self.query.get(name, [None])[0] for name in ("code", "state", "iss")}
        return AuthorizationCodeResult(**said)


def wait_until_up(url: str) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while True:
        try:
            OPENER.open(url, timeout=5).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


async def converse(checks: Checks, corbie: Corbie) -> None:
    memory, browser = Memory(), Browser()
    about = OAuthClientMetadata(client_name="witness", redirect_uris=[CALLBACK])
    auth = OAuthClientProvider(corbie.url, about, memory, browser.open, browser.result)
    async with httpx2.AsyncClient(auth=auth, trust_env=False, timeout=30) as http:
        async with Client(streamable_http_client(corbie.url, http_client=http)) as client:
            checks.that(memory.client is not None, "the client registers")
            wanted = set(SCOPES) <= set(browser.asked_for)
            checks.that(wanted, "the client asks for the scopes that corbie names", str(browser.asked_for))
            checks.that(memory.tokens is not None, "the client gets a token")
            told = await client.call_tool("inspect_server", {})
            trust = (told.structured_content or {}).get("trust")
            checks.that(trust == "VERIFIED", "its scopes make the caller verified", str(trust))
            answer = await client.call_tool("chat_completion", {"messages": [{"role": "user", "content": "hello"}]})
            checks.that(not answer.is_error, "it may spend money", str(answer.content)[:300])
            try:
                await client.call_tool("knowledge-clear", {"confirm": True})
                checks.that(False, "it may not destroy", "nothing is raised")
            except MCPError as error:
                checks.that("trusted" in str(error), "it may not destroy", str(error))
    token = memory.tokens.access_token if memory.tokens else ""
    checks.that(corbie.status(token) == 200, "the token is good by itself")
    checks.that(corbie.status(token[:-4] + "AAAA") == 401, "a token that is changed is not")


def main() -> None:
    checks = Checks(prefix="oauth flow")
    port = free_port()
    issuer = subprocess.Popen(["node", str(ISSUER), str(port)], stdout=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until_up(f"{url}/.well-known/openid-configuration")
        own = free_port()
        oauth = {"issuer": url, "resource": f"http://127.0.0.1:{own}/mcp", "scopes": SCOPES}
        with Corbie(sys.argv[1], oauth, own) as corbie:
            anyio.run(converse, checks, corbie)
            # It prints its own lines.
            checks.failed += subprocess.run(["node", str(TYPESCRIPT), corbie.url], timeout=SECONDS_FOR_TYPESCRIPT).returncode
    except Exception:
        checks.that(False, "the conversation ends without an exception", traceback.format_exc())
    finally:
        issuer.terminate()
        issuer.wait(timeout=30)
    checks.exit()


if __name__ == "__main__":
    main()
