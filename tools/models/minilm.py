"""Makes the int8 model of all-MiniLM-L6-v2 that `crates/infer` carries.

Every dense layer multiplies u8 activations by i8 weights (`MatMulInteger`). Three choices make the
result close to the original; README.md has the figures for each and for what was tried instead:

- **One scale per token**, not per tensor. A token's numbers then depend on nothing but its own text,
  so a text gets the same bits alone and in a batch of texts of its length.
- **Powers of two move the few loud channels into the weights.** A handful of the 384 channels are up
  to fifteen times louder than the rest and would cost the others three of their eight bits.
- **Neighbouring weights never sum past 128.** Processors without VNNI add two u8 x i8 products in 16
  bits; with that bound they cannot overflow, so every processor computes the same integers.

The graph holds standard operators only and has no attention mask: texts of different lengths are run
one after the other, which costs nothing on a CPU and needs no padding.

    python minilm.py --cache DIR --out ../../crates/infer/models/all-MiniLM-L6-v2
"""

import argparse
import hashlib
import json
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

import bert
import source

HERE = Path(__file__).parent
MAX_TOKENS = 256
DIMENSION = 384
DATA_FILE = "model.onnx.data"
ALIGNMENT = 64
"""Of each tensor in the data file, so that it can be used in place from a mapped or embedded file."""

GELU_FLOOR = 0.17
"""GELU is never below -0.16998. Adding this makes its output positive, which frees the sign's bit."""

LOUDNESS_SHARE = 0.7
"""How much of a channel's loudness moves into the weights, the rest stays in the activations."""


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--cache", type=Path, required=True, help="where the source package is kept")
    arguments.add_argument("--out", type=Path, required=True)
    arguments = arguments.parse_args()
    original = source.fetch(arguments.cache)
    check(original)

    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    Graph(original.weights, loudness(original)).write(out)
    (out / "tokenizer.json").write_text(tokenizer_json(original), encoding="utf-8")
    (out / "LICENSE-MODEL").write_bytes((HERE / "../../LICENSE").read_bytes())
    (out / "LICENSE-PACKAGE").write_bytes(original.wrapper_licence)
    (out / "MODEL.toml").write_text(manifest(out), encoding="utf-8")
    for file in sorted(out.iterdir()):
        print(hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_size, file.name)


def check(original: source.Source) -> None:
    """What we say about the model elsewhere is what its own files say."""
    parameters = sum(values.size for name, values in original.weights.items() if name != "embeddings.position_ids")
    assert parameters == 22_713_216, parameters
    assert original.weights["embeddings.word_embeddings.weight"].shape == (30522, DIMENSION)
    assert original.sentence_config["max_seq_length"] == MAX_TOKENS
    assert original.pooling["word_embedding_dimension"] == DIMENSION
    assert [mode for mode, on in original.pooling.items() if on is True] == ["pooling_mode_mean_tokens"]
    vocabulary = original.tokenizer["model"]["vocab"]
    assert vocabulary == {word: number for number, word in enumerate(original.vocabulary)}
    known = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103, "!": 999, "the": 1996, "hello": 7592}
    assert known.items() <= vocabulary.items()
    for text, values in PUBLISHED_VECTORS.items():
        vector = bert.embed(original.weights, tokenizer(original).encode(text).ids)
        assert numpy.abs(vector[: len(values)] - values).max() < 1e-6, text


PUBLISHED_VECTORS = {
    "This is an example sentence": [0.0676569, 0.0634959, 0.0487131, 0.0793050, 0.0374481, 0.0026527],
}
"""The sentence of the model card, with the numbers that users of the original print for it."""


def tokenizer(original: source.Source) -> Tokenizer:
    made = Tokenizer.from_str(tokenizer_json(original))
    made.enable_truncation(MAX_TOKENS)
    return made


def tokenizer_json(original: source.Source) -> str:
    """The published tokenizer without its truncation to 128 and padding to 128, which are not the model's."""
    stripped = original.tokenizer | {"truncation": None, "padding": None}
    return json.dumps(stripped, ensure_ascii=False, separators=(",", ":"))


def loudness(original: source.Source) -> dict[str, numpy.ndarray]:
    """The largest magnitude of every input channel of every dense layer over the calibration texts."""
    lines = (HERE / "calibration.txt").read_text(encoding="utf-8").splitlines()
    paragraphs = [" ".join(lines[start::7]) for start in range(7)]
    loudest: dict[str, numpy.ndarray] = {}

    def seen(name: str, values: numpy.ndarray) -> None:
        top = numpy.abs(values).max(axis=0)
        loudest[name] = numpy.maximum(loudest.get(name, 0), top)

    for text in lines + paragraphs:
        bert.token_states(original.weights, tokenizer(original).encode(text).ids, seen)
    return loudest


def channel_shift(loudest: numpy.ndarray, weight: numpy.ndarray) -> numpy.ndarray:
    """The power of two by which each input channel is divided, and its row of `weight` multiplied."""
    ratio = loudest**LOUDNESS_SHARE / numpy.abs(weight).max(axis=1) ** (1 - LOUDNESS_SHARE)
    exponent = numpy.log2(ratio / numpy.median(ratio))
    # Far from a tie, the last bits of somebody's matrix library cannot change the outcome.
    assert numpy.abs(exponent - numpy.floor(exponent) - 0.5).min() > 1e-9
    return 2.0 ** numpy.rint(exponent)


def quantize_columns(weight: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
    """i8 weights [inputs, outputs] and one scale per output, with neighbours bounded as told above."""
    pairs = weight.astype(numpy.float64).reshape(-1, 2, weight.shape[1])
    above = numpy.clip(pairs, 0, None).sum(axis=1).max(axis=0)
    below = numpy.clip(-pairs, 0, None).sum(axis=1).max(axis=0)
    scale = numpy.maximum(above, below) / 127
    quantized = numpy.rint(weight / scale)
    paired = quantized.reshape(pairs.shape)
    assert numpy.clip(paired, 0, None).sum(axis=1).max() <= 128
    assert numpy.clip(-paired, 0, None).sum(axis=1).max() <= 128
    return quantized.astype(numpy.int8), scale


class Graph:
    """The ONNX graph, built operator by operator."""

    def __init__(self, weights: dict[str, numpy.ndarray], loudest: dict[str, numpy.ndarray]):
        self.weights = weights
        self.loudest = loudest
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, numpy.ndarray] = {}
        x = self.layer_norm("embeddings.LayerNorm", self.embeddings())
        for layer in range(bert.LAYERS):
            x = self.layer(f"encoder.layer.{layer}", x)
        self.nodes[-1].output[0] = "last_hidden_state"

    def embeddings(self) -> str:
        words = self.weights["embeddings.word_embeddings.weight"].astype(numpy.float64)
        scale = numpy.abs(words).max(axis=1, keepdims=True) / 127
        quantized = numpy.rint(words / scale).astype(numpy.int8)
        found = self.op("Gather", self.constant("words", quantized), "input_ids", axis=0)
        scales = self.op("Gather", self.constant("words.scale", f32(scale)), "input_ids", axis=0)
        words = self.op("Mul", self.op("Cast", found, to=TensorProto.FLOAT), scales)

        # A single text is always "sentence A", so that row is part of the position.
        positions = self.weights["embeddings.position_embeddings.weight"][:MAX_TOKENS]
        positions = positions + self.weights["embeddings.token_type_embeddings.weight"][0]
        tokens = self.op("Shape", "input_ids", start=1, end=2)
        positions = self.op("Slice", self.constant("positions", positions), self.ints("zero", 0), tokens, self.ints("zero", 0))
        return self.op("Add", words, positions)

    def layer(self, at: str, x: str) -> str:
        attended = self.dense(f"{at}.attention.output.dense", self.attention(f"{at}.attention.self", x))
        x = self.layer_norm(f"{at}.attention.output.LayerNorm", self.op("Add", attended, x))
        hidden = self.op("Gelu", self.dense(f"{at}.intermediate.dense", x, shift=True))
        hidden = self.dense(f"{at}.output.dense", hidden, gelu=True)
        return self.layer_norm(f"{at}.output.LayerNorm", self.op("Add", hidden, x))

    def attention(self, at: str, x: str) -> str:
        """Query, key and value come from one multiplication; the 12 heads of 32 are then taken apart."""
        parts = [f"{at}.{part}" for part in ("query", "key", "value")]
        weight = numpy.concatenate([self.weights[f"{part}.weight"].T for part in parts], axis=1)
        bias = numpy.concatenate([self.weights[f"{part}.bias"] for part in parts])
        together = self.multiply(f"{at}.qkv", x, weight, bias, loudest=self.loudest[parts[0]])
        query, key, value = self.op("Split", together, self.ints("thirds", *[DIMENSION] * 3), axis=-1, outputs=3)

        heads = self.ints("heads", 0, 0, bert.HEADS, DIMENSION // bert.HEADS)
        query = self.op("Transpose", self.op("Reshape", query, heads), perm=[0, 2, 1, 3])
        key = self.op("Transpose", self.op("Reshape", key, heads), perm=[0, 2, 3, 1])
        value = self.op("Transpose", self.op("Reshape", value, heads), perm=[0, 2, 1, 3])
        scores = self.op("Mul", self.op("MatMul", query, key), self.number("head_scale", (DIMENSION // bert.HEADS) ** -0.5))
        context = self.op("MatMul", self.op("Softmax", scores, axis=-1), value)
        return self.op("Reshape", self.op("Transpose", context, perm=[0, 2, 1, 3]), self.ints("joined", 0, 0, DIMENSION))

    def dense(self, name: str, x: str, shift: bool = False, gelu: bool = False) -> str:
        weight, bias = self.weights[f"{name}.weight"].T, self.weights[f"{name}.bias"]
        return self.multiply(name, x, weight, bias, loudest=self.loudest[name] if shift else None, gelu=gelu)

    def multiply(self, name: str, x: str, weight, bias, loudest=None, gelu: bool = False) -> str:
        """`x @ weight + bias` in integers, with `x` quantized token by token."""
        if loudest is not None:
            shift = channel_shift(loudest, weight)
            weight = weight * shift[:, None]
            x = self.op("Mul", x, self.constant(f"{name}.shift", f32(1 / shift)))
        quantized, scale = quantize_columns(weight)
        if gelu:
            # What the added floor contributes to the product is a constant, taken off with the bias.
            levels, zero_point = 255, 0
            bias = bias - GELU_FLOOR * quantized.sum(axis=0, dtype=numpy.int64) * scale
            x = self.op("Add", x, self.number("gelu_floor", GELU_FLOOR))
            largest = self.op("ReduceMax", x, self.ints("last", -1), keepdims=1)
        else:
            levels, zero_point = 127, 128
            largest = self.op("ReduceMax", self.op("Abs", x), self.ints("last", -1), keepdims=1)
        largest = self.op("Max", largest, self.number("tiny", 1e-8))

        to_levels = self.op("Div", self.number(f"levels.{levels}", levels), largest)
        zero = self.constant(f"zero_point.{zero_point}", numpy.array(zero_point, numpy.uint8))
        x = self.op("QuantizeLinear", self.op("Mul", x, to_levels), self.number("one", 1), zero)
        weight = self.constant(f"{name}.weight", quantized)
        weight_zero = self.constant(f"zero_point.weight.{len(bias)}", numpy.zeros(len(bias), numpy.int8))
        y = self.op("Cast", self.op("MatMulInteger", x, weight, zero, weight_zero), to=TensorProto.FLOAT)
        y = self.op("Mul", y, self.constant(f"{name}.scale", f32(scale / levels)))
        return self.op("Add", self.op("Mul", y, largest), self.constant(f"{name}.bias", f32(bias)))

    def layer_norm(self, name: str, x: str) -> str:
        weight, bias = (self.constant(f"{name}.{part}", self.weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.op("LayerNormalization", x, weight, bias, axis=-1, epsilon=bert.NORM_EPSILON)

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes):
        name = f"{kind}.{len(self.nodes)}"
        names = [name] if outputs == 1 else [f"{name}.{part}" for part in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, name=name, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, name: str, values: numpy.ndarray) -> str:
        self.constants[name] = values
        return name

    def number(self, name: str, value: float) -> str:
        return self.constant(name, numpy.array(value, numpy.float32))

    def ints(self, name: str, *values: int) -> str:
        return self.constant(name, numpy.array(values, numpy.int64))

    def write(self, out: Path) -> None:
        data = bytearray()
        tensors = []
        for name, values in self.constants.items():
            tensor = numpy_helper.from_array(numpy.array(values, order="C"), name)
            if values.nbytes >= 1024:
                data.extend(bytes(-len(data) % ALIGNMENT))
                place = {"location": DATA_FILE, "offset": len(data), "length": values.nbytes}
                data.extend(tensor.raw_data)
                tensor.ClearField("raw_data")
                tensor.data_location = TensorProto.EXTERNAL
                for key, value in place.items():
                    tensor.external_data.add(key=key, value=str(value))
            tensors.append(tensor)
        shape = ["batch", "tokens"]
        graph = helper.make_graph(
            self.nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT32, shape)],
            [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape + [DIMENSION])],
            tensors,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        (out / DATA_FILE).write_bytes(data)
        (out / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
        onnx.checker.check_model(str(out / "model.onnx"), full_check=True)


def f32(values: numpy.ndarray) -> numpy.ndarray:
    return values.astype(numpy.float32)


def manifest(out: Path) -> str:
    files = ["model.onnx", DATA_FILE, "tokenizer.json", "LICENSE-MODEL", "LICENSE-PACKAGE"]
    tables = "".join(
        f'\n[[file]]\nname = "{name}"\nbytes = {(out / name).stat().st_size}\n'
        f'sha256 = "{hashlib.sha256((out / name).read_bytes()).hexdigest()}"\n'
        for name in files
    )
    return f"""\
# Written by tools/models/minilm.py; change it there.
id = "all-MiniLM-L6-v2-int8"
name = "all-MiniLM-L6-v2, int8"
dimension = {DIMENSION}
max_tokens = {MAX_TOKENS}
pooling = "mean"
normalized = true
languages = ["en"]
input = "input_ids"
output = "last_hidden_state"

[source]
publisher = "{source.PUBLISHER}"
package = "{source.PACKAGE}"
version = "{source.VERSION}"
sha256 = "{source.WHEEL_SHA256}"
weights_sha256 = "{source.PUBLISHED_SHA256["model.safetensors"]}"
model_license = "Apache-2.0"
package_license = "MIT"
{tables}"""


if __name__ == "__main__":
    main()
