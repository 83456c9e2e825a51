"""The snippets of docs/clients, run as they are written: only the address in them becomes that of the server here."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from checks import Checks

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
TOOLS = ROOT / ".tools"
SECONDS = 90
ADDRESS = "http://localhost:8090"

# The Python environment of each page, and the file with its pinned packages.
PYTHON = {
    "openai-api.md": ("venv", "upstream-requirements.txt"),
    "openai-sdk.md": ("venv", "upstream-requirements.txt"),
    "langchain.md": ("clients", "clients-requirements.txt"),
    "llamaindex.md": ("clients", "clients-requirements.txt"),
    "aider.md": ("aider", "aider-requirements.txt"),
}
# The mock upstream calls a tool only on a special prompt that no reader would write; langchain_api.py does.
MOCK_ONLY = "tool_choice="
# Replaces interactive prompts at a terminal. The files and commands stay unchanged.
AIDER = {"AIDER_YES_ALWAYS": "true", "AIDER_GIT": "false", "AIDER_CHECK_UPDATE": "false", "AIDER_ANALYTICS_DISABLE": "true"}
# Replaces Open WebUI, which is too large for a test: sends the same requests with the same variables.
OPEN_WEBUI = """#!{python}
import json, os, urllib.request
def ask(path, body=None):
    headers = {{"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}}
    url = os.environ["OPENAI_API_BASE_URL"] + path
    return json.load(urllib.request.urlopen(urllib.request.Request(url, body and json.dumps(body).encode(), headers)))
models = [model["id"] for model in ask("/models")["data"]]
assert "auto" in models and os.environ["RAG_EMBEDDING_MODEL"] in models, models
said = ask("/chat/completions", {{"model": "auto", "messages": [{{"role": "user", "content": "Why did Rome fall?"}}]}})
vectors = ask("/embeddings", {{"model": os.environ["RAG_EMBEDDING_MODEL"], "input": ["a cat"]}})
print(said["choices"][0]["message"]["content"], len(vectors["data"]))
"""


class LockedChecks(Checks):
    """Several threads print, and no line may come in the middle of another."""

    lock = Lock()

    def that(self, holds: bool, what: str, otherwise: str = "") -> None:
        with self.lock:
            super().that(holds, what, otherwise)


@dataclass
class Block:
    page: str
    line: int
    language: str
    text: str
    # The expected output: the `text` block that follows.
    printed: str | None = None

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line} {self.language}"

    @property
    def only_embeds(self) -> bool:
        """No provider is asked: the model inside does it."""
        return self.language != "sh" and "auto" not in self.text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upstream", required=True, help="where the fake upstream listens, such as http://127.0.0.1:4000")
    parser.add_argument("corbie", help="the program")
    given = parser.parse_args()
    providers = {"mock": {}} | {
        "openai": {"base_url": f"{given.upstream}/v1", "api_key": "test-key"},
        "anthropic": {"base_url": given.upstream, "api_key": "test-key"},
        "google": {"base_url": given.upstream, "api_key": "test-key"},
    }
    # Clients spend most of their time starting: with one server per provider, four run at a time.
    with ThreadPoolExecutor(len(providers)) as threads:
        all_checks = list(threads.map(lambda one: try_provider(given.corbie, *one), providers.items()))
    sys.exit(1 if any(checks.failed for checks in all_checks) else 0)


def try_provider(corbie: str, provider: str, settings: dict[str, str]) -> Checks:
    checks = LockedChecks(prefix=f"snippets {provider}")
    # The output of `corbie connect` for MCP clients is tested by tests/cli/connect.rs.
    pages = sorted(page for page in (ROOT / "docs/clients").glob("*.md") if page.name != "mcp-clients.md")
    if provider == "mock":
        check_list(checks, pages)
    try:
        with serving(corbie, provider, settings) as url:
            for page in [ROOT / "docs/openai-api.md", *pages]:
                with tempfile.TemporaryDirectory() as folder:
                    Snippets(checks, corbie, provider, url, Path(folder)).run(page)
    except Exception:
        checks.that(False, "the pages end without an exception", traceback.format_exc())
    return checks


def check_list(checks: Checks, pages: list[Path]) -> None:
    listed = (ROOT / "docs/clients/README.md").read_text(encoding="utf-8")
    missing = [page.name for page in pages if page.name != "README.md" and f"]({page.name})" not in listed]
    checks.that(len(pages) > 1 and not missing, "every page is in the list", str(missing))
    lost = []
    for page in pages:
        for link in re.findall(r"\]\(([^):]+)\)", page.read_text(encoding="utf-8")):
            file, _, heading = link.partition("#")
            target = page.parent / file
            if not target.is_file() or heading and heading not in headings(target):
                lost.append(f"{page.name} to {link}")
    checks.that(not lost, "every link leads somewhere", str(lost))


def headings(page: Path) -> list[str]:
    """As they are named in links."""
    lines = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines]


@contextmanager
def serving(corbie: str, provider: str, settings: dict[str, str]) -> Iterator[str]:
    """Where a corbie listens that a newcomer could have started: without a token, and with one provider."""
    model = "mock" if provider == "mock" else "echo-small"
    config = {
        "providers": {"detect_ports": [], provider: {"type": provider} | settings},
        "defaults": {"model": f"{provider}/{model}"},
    }
    with tempfile.TemporaryDirectory() as folder:
        file, log = Path(folder, "corbie.json"), Path(folder, "log")
        file.write_text(json.dumps(config), encoding="utf-8")
        with log.open("w") as written:
            command = [corbie, "--config", str(file), "serve", "--port", "0"]
            server = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=written, stderr=written)
        try:
            until = time.monotonic() + SECONDS
            while not (found := re.search(r"listening url=(\S+)/mcp", log.read_text(encoding="utf-8"))):
                if server.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"corbie does not listen: {log.read_text(encoding='utf-8')}")
                time.sleep(0.05)
            yield found[1]
        finally:
            server.terminate()
            server.wait(SECONDS)


class Snippets:
    """Those of one page, in a folder of their own."""

    def __init__(self, checks: Checks, corbie: str, provider: str, url: str, folder: Path) -> None:
        self.checks = checks
        self.corbie = corbie
        self.provider = provider
        self.url = url
        self.folder = folder
        # Module resolution starts at the script's own folder.
        (folder / "node_modules").symlink_to(TOOLS / "npm/node_modules")
        commands = folder / ".commands"
        commands.mkdir()
        (commands / "aider").symlink_to(TOOLS / "aider/bin/aider")
        (commands / "open-webui").write_text(OPEN_WEBUI.format(python=sys.executable), encoding="utf-8")
        (commands / "open-webui").chmod(0o755)
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
        # A separate home each: concurrent programs must not write to the same files.
        self.environment = inherited | AIDER | {"PATH": f"{commands}:{os.environ['PATH']}", "HOME": str(folder)}

    def run(self, page: Path) -> None:
        for block in blocks(page):
            text = block.text.replace(ADDRESS, self.url)
            if block.language == "python":
                self.try_out(block, [str(TOOLS / PYTHON[page.name][0] / "bin/python"), "-c", text])
            elif block.language == "js":
                (self.folder / "snippet.mjs").write_text(text, encoding="utf-8")
                self.try_out(block, ["node", "snippet.mjs"])
            elif block.language == "sh" and re.match(r"(pip|npm) install ", text):
                if self.provider == "mock":
                    self.check_pins(block)
            elif block.language == "sh":
                self.try_out(block, ["bash", "-euc", text])
            elif block.language == "yaml" and (named := re.match(r"# (\S+)\n", text)):
                (self.folder / named[1]).write_text(text, encoding="utf-8")
                if named[1] == "corbie.yaml" and self.provider == "mock":
                    done = self.start([self.corbie, "--config", "corbie.yaml", "config", "validate"])
                    self.checks.that(done.returncode == 0, f"{block.name} is taken", done.stdout + done.stderr)
            # That page is about corbie; only its first steps are for a client.
            elif page.name != "openai-api.md":
                self.checks.that(False, f"{block.name} can be tried", "the witness does not know how")

    def try_out(self, block: Block, command: list[str]) -> None:
        if self.provider != "mock" and (MOCK_ONLY in block.text or block.only_embeds):
            return
        before = self.answered()
        done = self.start(command)
        found = done.stdout.strip()
        otherwise = f"status {done.returncode}, {found[-1500:]!r}, {done.stderr[-1500:]!r}"
        if block.printed is None:
            self.checks.that(done.returncode == 0 and found != "", f"{block.name} works", otherwise)
        else:
            # Terminal programs print more than the model's answer.
            wanted = block.printed if self.provider == "mock" else block.printed.replace("You said: ", "echo: ")
            holds = wanted.strip() in found if block.language == "sh" else wanted.strip() == found
            self.checks.that(done.returncode == 0 and holds, f"{block.name} prints what the page says", otherwise)
        if not block.only_embeds:
            self.checks.that(self.answered() > before, f"{block.name} is answered by corbie", otherwise)

    def start(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )

    def check_pins(self, block: Block) -> None:
        """What a reader is told to install is what is tried here."""
        tool, _, *names = block.text.split()
        if tool == "npm":
            pinned = set(json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"])
        else:
            lines = (HERE / PYTHON[block.page][1]).read_text(encoding="utf-8").splitlines()
            pinned = {line.split("==")[0] for line in lines if "==" in line}
        self.checks.that(bool(names) and set(names) <= pinned, f"{block.name} names what is tried here", str(names))

    def answered(self) -> int:
        """How many prompts corbie has had answered so far."""
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=SECONDS) as answer:
            lines = answer.read().decode().splitlines()
        answered = [line for line in lines if re.match(r'corbie_route_decisions_total\{.*outcome="answered"', line)]
        return sum(int(line.rsplit(" ", 1)[1]) for line in answered)


def blocks(page: Path) -> list[Block]:
    found: list[Block] = []
    fence = re.compile(r"^( *)```(\w+)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
    content = page.read_text(encoding="utf-8")
    for match in fence.finditer(content):
        indent, language, text = match.groups()
        text = re.sub(f"^{indent}", "", text, flags=re.MULTILINE)
        if language == "text" and found:
            found[-1].printed = text
        else:
            found.append(Block(page.name, content.count("\n", 0, match.start()) + 1, language, text))
    return found


if __name__ == "__main__":
    main()
