"""The contestants of `bench/run knowledge` that are written in Python, each on one thread.

    python knowledge.py search chroma|lancedb FOLDER COUNT STORE
    python knowledge.py words tantivy|fts5 FOLDER COUNT STORE
    python knowledge.py ingest FILES ONNX TOKENIZER STORE

`search` puts the first COUNT vectors of FOLDER into a fresh store and asks for neighbours, with and without a filter;
`words` does so with the texts. `ingest` is the usual design: read the files, cut them, embed them with onnxruntime, put them into Chroma. What they
tell is one line of JSON; see `bench/src/knowledge/`.
"""

import os

os.environ |= {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "LANCE_CPU_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "ANONYMIZED_TELEMETRY": "False",
}

import json
import re
import resource
import shutil
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy

DIMENSION = 384
TOP = 10
ADDED_AT_ONCE = 2000
MAX_TOKENS = 256
CHUNK, OVERLAP = 500, 50


def cpu() -> float:
    """Of this process with all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def disk_mb(folder: str) -> float:
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file()) / 1e6


def vectors_of(file: Path, count: int) -> numpy.ndarray:
    return numpy.fromfile(file, dtype=numpy.float32, count=count * DIMENSION).reshape(-1, DIMENSION)


class Chroma:
    def __init__(self, store: str):
        import chromadb

        client = chromadb.PersistentClient(store)
        self.chunks = client.create_collection("chunks", metadata={"hnsw:space": "cosine"}, embedding_function=None)

    def add(self, first: int, vectors: numpy.ndarray, texts: list[str], tags: list[str]) -> None:
        ids = [str(first + at) for at in range(len(vectors))]
        self.chunks.add(ids=ids, embeddings=vectors, documents=texts, metadatas=[{"tag": tag} for tag in tags])

    def query(self, vector: numpy.ndarray, tag: str | None) -> list[int]:
        where = {"tag": tag} if tag else None
        found = self.chunks.query(query_embeddings=[vector], n_results=TOP, where=where, include=["documents", "distances"])
        return [int(chunk) for chunk in found["ids"][0]]


class LanceDb:
    def __init__(self, store: str):
        import lancedb

        self.database = lancedb.connect(store)
        self.table = None

    def add(self, first: int, vectors: numpy.ndarray, texts: list[str], tags: list[str]) -> None:
        import pyarrow

        column = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(vectors.ravel()), DIMENSION)
        numbers = list(range(first, first + len(vectors)))
        rows = pyarrow.table({"id": numbers, "vector": column, "text": texts, "tag": tags})
        if self.table is None:
            self.table = self.database.create_table("chunks", rows)
        else:
            self.table.add(rows)

    def query(self, vector: numpy.ndarray, tag: str | None) -> list[int]:
        query = self.table.search(vector).distance_type("cosine").limit(TOP).select(["id", "text", "_distance"])
        if tag:
            query = query.where(f"tag = '{tag}'", prefilter=True)
        return query.to_arrow()["id"].to_pylist()


def search(name: str, folder: Path, count: int, store: str) -> dict:
    before = resident_mb()
    vectors = vectors_of(folder / "vectors.f32", count)
    queries = vectors_of(folder / "queries.f32", -1)
    with (folder / "chunks.jsonl").open() as file:
        chunks = [json.loads(line) for _, line in zip(range(count), file)]
    texts, tags = [chunk["text"] for chunk in chunks], [chunk["tag"] for chunk in chunks]
    held = resident_mb() - before
    shutil.rmtree(store, ignore_errors=True)
    peer = {"chroma": Chroma, "lancedb": LanceDb}[name](store)
    started = cpu()
    for first in range(0, count, ADDED_AT_ONCE):
        last = first + ADDED_AT_ONCE
        peer.add(first, vectors[first:last], texts[first:last], tags[first:last])
    told = {"add_cpu_s": cpu() - started}
    is_of_tag = numpy.array(tags) == tags[0]
    for kind, tag in (("plain", None), ("filtered", tags[0])):
        for query in queries[:5]:
            peer.query(query, tag)
        found, walls, began = [], [], cpu()
        for query in queries:
            at = time.perf_counter()
            found.append(peer.query(query, tag))
            walls.append((time.perf_counter() - at) * 1e3)
        spent = (cpu() - began) * 1e3 / len(queries)
        shares = []
        for query, ids in zip(queries, found):
            scores = vectors @ query
            if tag:
                scores = numpy.where(is_of_tag, scores, -2)
            exact = numpy.argpartition(-scores, TOP - 1)[:TOP]
            shares.append(len(set(exact.tolist()) & set(ids)) / TOP)
        told[kind] = {"cpu_ms": spent, "p50_ms": sorted(walls)[len(walls) // 2], "recall": sum(shares) / len(shares)}
    # What was read here to be put in is not the store's.
    return told | {"rss_mb": resident_mb() - held, "disk_mb": disk_mb(store)}


class Tantivy:
    """Stemmed English, one thread, one segment: as fast as it gets."""

    def __init__(self, store: str):
        import tantivy

        Path(store).mkdir(parents=True)
        builder = tantivy.SchemaBuilder()
        builder.add_integer_field("id", stored=True, fast=True)
        builder.add_text_field("text", tokenizer_name="en_stem")
        builder.add_text_field("tag", tokenizer_name="raw")
        self.tantivy, self.schema = tantivy, builder.build()
        self.index = tantivy.Index(self.schema, path=store)
        self.writer = self.index.writer(100_000_000, 1)

    def add(self, texts: list[str], tags: list[str]) -> None:
        for at, (text, tag) in enumerate(zip(texts, tags)):
            self.writer.add_document(self.tantivy.Document(id=at, text=text, tag=tag))
        self.writer.commit()
        self.writer.wait_merging_threads()
        self.index.reload()
        self.searcher = self.index.searcher()

    def query(self, words: list[str], tag: str | None) -> list[int]:
        query = self.index.parse_query(" ".join(words), ["text"])
        if tag:
            must, tagged = self.tantivy.Occur.Must, self.tantivy.Query.term_query(self.schema, "tag", tag)
            query = self.tantivy.Query.boolean_query([(must, query), (must, tagged)])
        found = self.searcher.search(query, TOP, count=False).hits
        return [self.searcher.doc(place)["id"][0] for _, place in found]


class Fts5:
    def __init__(self, store: str):
        import sqlite3

        Path(store).mkdir(parents=True)
        self.database = sqlite3.connect(f"{store}/words.db")
        self.database.execute("CREATE VIRTUAL TABLE chunks USING fts5 (text, tag UNINDEXED, tokenize='porter unicode61')")

    def add(self, texts: list[str], tags: list[str]) -> None:
        with self.database:
            self.database.executemany("INSERT INTO chunks (text, tag) VALUES (?, ?)", zip(texts, tags))
            self.database.execute("INSERT INTO chunks (chunks) VALUES ('optimize')")

    def query(self, words: list[str], tag: str | None) -> list[int]:
        query = " OR ".join(f'"{word}"' for word in words)
        narrowed = "AND tag = ?" if tag else ""
        rows = self.database.execute(
            f"SELECT rowid FROM chunks WHERE chunks MATCH ? {narrowed} ORDER BY rank LIMIT {TOP}",
            (query, tag) if tag else (query,),
        )
        return [row for (row,) in rows]


def words(name: str, folder: Path, count: int, store: str) -> dict:
    shutil.rmtree(store, ignore_errors=True)
    with (folder / "chunks.jsonl").open() as file:
        chunks = [json.loads(line) for _, line in zip(range(count), file)]
    with (folder / "queries.jsonl").open() as file:
        # Letters and digits alone: whatever else stands there means something to one or the other.
        queries = [re.findall(r"\w+", json.loads(line)["text"]) for line in file]
    texts, tags = [chunk["text"] for chunk in chunks], [chunk["tag"] for chunk in chunks]
    peer = {"tantivy": Tantivy, "fts5": Fts5}[name](store)
    started = cpu()
    peer.add(texts, tags)
    told = {"add_cpu_s": cpu() - started}
    for kind, tag in (("plain", None), ("filtered", tags[0])):
        for query in queries[:5]:
            peer.query(query, tag)
        walls, found, began = [], 0, cpu()
        for query in queries:
            at = time.perf_counter()
            found += len(peer.query(query, tag))
            walls.append((time.perf_counter() - at) * 1e3)
        assert found, "nothing was found"
        told[kind] = {"cpu_ms": (cpu() - began) * 1e3 / len(queries), "p50_ms": sorted(walls)[len(walls) // 2]}
    return told


class Words(HTMLParser):
    """The text of a page, without scripts and styles."""

    def __init__(self):
        super().__init__()
        self.parts, self.hidden = [], 0

    def handle_starttag(self, tag, attrs):
        self.hidden += tag in ("script", "style")

    def handle_endtag(self, tag):
        self.hidden -= tag in ("script", "style") and self.hidden > 0

    def handle_data(self, data):
        if not self.hidden and data.strip():
            self.parts.append(data.strip())


def text_of(file: Path) -> str:
    text = file.read_text()
    if file.suffix == ".html":
        page = Words()
        page.feed(text)
        return "\n".join(page.parts)
    return text


def embedder(onnx: Path, vocabulary: str):
    import onnxruntime
    from tokenizers import Tokenizer

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(onnx), options, providers=["CPUExecutionProvider"])
    wanted = {value.name for value in session.get_inputs()}
    whole = Tokenizer.from_file(vocabulary)
    whole.no_truncation()
    whole.no_padding()
    cut = Tokenizer.from_file(vocabulary)
    cut.enable_truncation(MAX_TOKENS)
    cut.enable_padding()

    def embed(texts):
        encoded = cut.encode_batch(texts)
        ids = numpy.array([text.ids for text in encoded], dtype=numpy.int64)
        mask = numpy.array([text.attention_mask for text in encoded], dtype=numpy.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        (hidden,) = session.run(None, {name: values for name, values in inputs.items() if name in wanted})
        weights = mask[:, :, None].astype(numpy.float32)
        pooled = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        return pooled / numpy.linalg.norm(pooled, axis=1, keepdims=True)

    def pieces(text):
        offsets = whole.encode(text, add_special_tokens=False).offsets
        for first in range(0, len(offsets), CHUNK - OVERLAP):
            last = min(first + CHUNK, len(offsets))
            yield text[offsets[first][0] : offsets[last - 1][1]]
            if last == len(offsets):
                break

    def windows(chunk):
        offsets = whole.encode(chunk, add_special_tokens=False).offsets
        room = MAX_TOKENS - 2
        return [chunk[offsets[at][0] : offsets[min(at + room, len(offsets)) - 1][1]] for at in range(0, len(offsets), room)]

    return embed, pieces, windows


def ingest(folder: Path, onnx: Path, vocabulary: str, store: str) -> dict:
    shutil.rmtree(store, ignore_errors=True)
    embed, pieces, windows = embedder(onnx, vocabulary)
    peer = Chroma(store)
    embed(["ready"])
    began, wall, count = cpu(), time.perf_counter(), 0
    for file in sorted(folder.iterdir()):
        chunks = [chunk for chunk in pieces(text_of(file)) if chunk.strip()]
        for first in range(0, len(chunks), 32):
            some = chunks[first : first + 32]
            # Every token is embedded here too: a chunk has the mean of its windows.
            split = [windows(chunk) for chunk in some]
            flat = embed([window for parts in split for window in parts])
            vectors, at = [], 0
            for parts in split:
                mean = flat[at : at + len(parts)].mean(axis=0)
                vectors.append(mean / numpy.linalg.norm(mean))
                at += len(parts)
            peer.add(count, numpy.array(vectors), some, [file.suffix[1:]] * len(some))
            count += len(some)
    return {"chunks": count, "cpu_s": cpu() - began, "wall_s": time.perf_counter() - wall, "rss_mb": resident_mb()}


def main() -> None:
    what, *rest = sys.argv[1:]
    if what == "search":
        told = search(rest[0], Path(rest[1]), int(rest[2]), rest[3])
    elif what == "words":
        told = words(rest[0], Path(rest[1]), int(rest[2]), rest[3])
    else:
        told = ingest(Path(rest[0]), Path(rest[1]), rest[2], rest[3])
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
