//! Generated test models: a lookup table in ONNX, a classifier on top of it, and a tokenizer with a few words.

use std::fs;
use std::path::Path;

/// Vocabulary of the test tokenizer; the index of a word is its ID.
pub const WORDS: [&str; 8] = ["[UNK]", "[CLS]", "[SEP]", "one", "two", "three", "query:", "passage:"];
pub const WIDTH: usize = 4;

/// A model that looks up each token in a table, so that the output can be computed by hand.
pub struct TableModel {
    pub rows: Vec<[f32; WIDTH]>,
    pub inputs: Vec<&'static str>,
    pub output: &'static str,
    /// The model pools internally (mean over the tokens).
    pub pools: bool,
}

impl Default for TableModel {
    fn default() -> TableModel {
        let row = |id: usize| [id as f32, 1.0, (id * id) as f32, -(id as f32) / 2.0];
        TableModel {
            rows: (0..WORDS.len()).map(row).collect(),
            inputs: vec!["input_ids", "attention_mask"],
            output: "last_hidden_state",
            pools: false,
        }
    }
}

impl TableModel {
    /// Writes `model.onnx` and `tokenizer.json` into a directory.
    pub fn write(&self, folder: &Path) {
        fs::write(folder.join("model.onnx"), self.onnx()).expect("written");
        fs::write(folder.join("tokenizer.json"), tokenizer()).expect("written");
    }

    /// The model in ONNX, including the table.
    pub fn onnx(&self) -> Vec<u8> {
        self.onnx_of(WIDTH, &bytes(9, &self.values()))
    }

    /// The model with an external table, at any offset.
    pub fn onnx_outside(&self, file: &str, offset: u64, length: u64) -> Vec<u8> {
        let said = |key: &str, value: &str| bytes(13, &[bytes(1, key.as_bytes()), bytes(2, value.as_bytes())].concat());
        let place = [
            said("location", file),
            said("offset", &offset.to_string()),
            said("length", &length.to_string()),
            number(14, 1), // external
        ];
        self.onnx_of(WIDTH, &place.concat())
    }

    /// The model with a table of width zero.
    pub fn onnx_without_width(&self) -> Vec<u8> {
        self.onnx_of(0, &bytes(9, b""))
    }

    /// The table as raw bytes.
    pub fn values(&self) -> Vec<u8> {
        self.rows.iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// One `Gather` over the table, and a mean over the tokens if it pools.
    fn onnx_of(&self, width: usize, values: &[u8]) -> Vec<u8> {
        let mut graph = self.nodes(self.output);
        graph.extend(bytes(2, b"table"));
        graph.extend(floats("table", &[self.rows.len(), width], values));
        graph.extend(self.values_in());
        graph.extend(self.value_out(self.output));
        model(&graph)
    }

    /// The nodes that compute `output` from the tokens.
    fn nodes(&self, output: &str) -> Vec<u8> {
        if !self.pools {
            return node("Gather", &["table", "input_ids"], output, &[]);
        }
        let axes = [bytes(1, b"axes"), number(8, 1), number(20, 7)].concat();
        let keep = [bytes(1, b"keepdims"), number(3, 0), number(20, 2)].concat();
        let gather = node("Gather", &["table", "input_ids"], "rows", &[]);
        [gather, node("ReduceMean", &["rows"], output, &[axes, keep])].concat()
    }

    fn values_in(&self) -> Vec<u8> {
        self.inputs.iter().flat_map(|input| bytes(11, &tensor(input, 7, &["batch", "tokens"]))).collect()
    }

    fn value_out(&self, name: &str) -> Vec<u8> {
        bytes(12, &tensor(name, 1, if self.pools { &["batch", "width"] } else { &["batch", "tokens", "width"] }))
    }
}

/// A classifier: mean over the token rows of a table, then a linear layer.
pub struct ScorerModel {
    /// Its `output` is the name of the logits.
    pub table: TableModel,
    /// Weights and bias of each class.
    pub weights: Vec<[f32; WIDTH]>,
    pub bias: Vec<f32>,
    /// The means are an additional output, before the logits.
    pub shows_means: bool,
    pub config: serde_json::Value,
}

impl Default for ScorerModel {
    fn default() -> ScorerModel {
        ScorerModel {
            table: TableModel { output: "logits", pools: true, ..TableModel::default() },
            weights: vec![[0.5, 0.0, 0.0, 0.0], [0.0, 1.0, 0.125, 0.0], [-0.25, 0.0, 0.0, 1.0]],
            bias: vec![0.0, -0.5, 1.0],
            shows_means: false,
            config: serde_json::json!({
                "model_type": "bert",
                "id2label": { "0": "billing", "1": "refund", "2": "other" },
                "label2id": { "billing": 0, "refund": 1, "other": 2 },
            }),
        }
    }
}

impl ScorerModel {
    /// Writes `model.onnx`, `tokenizer.json` and `config.json` into a directory.
    pub fn write(&self, folder: &Path) {
        fs::write(folder.join("model.onnx"), self.onnx()).expect("written");
        fs::write(folder.join("tokenizer.json"), tokenizer()).expect("written");
        fs::write(folder.join("config.json"), self.config.to_string()).expect("written");
    }

    pub fn onnx(&self) -> Vec<u8> {
        let (table, classes) = (&self.table, self.weights.len());
        // In ONNX, each column of the matrix is a class.
        let columns = (0..WIDTH).flat_map(|column| self.weights.iter().map(move |weights| weights[column]));
        let matrix: Vec<u8> = columns.flat_map(f32::to_le_bytes).collect();
        let bias: Vec<u8> = self.bias.iter().flat_map(|number| number.to_le_bytes()).collect();
        let graph = [
            table.nodes("means"),
            node("MatMul", &["means", "matrix"], "sums", &[]),
            node("Add", &["sums", "bias"], table.output, &[]),
            bytes(2, b"scorer"),
            floats("table", &[table.rows.len(), WIDTH], &bytes(9, &table.values())),
            floats("matrix", &[WIDTH, classes], &bytes(9, &matrix)),
            floats("bias", &[self.bias.len()], &bytes(9, &bias)),
            table.values_in(),
            if self.shows_means { table.value_out("means") } else { Vec::new() },
            table.value_out(table.output),
        ];
        model(&graph.concat())
    }
}

/// `[CLS] words [SEP]`, with words split at spaces.
pub fn tokenizer() -> String {
    let vocabulary: serde_json::Map<_, _> =
        WORDS.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let special = |token: &str, id: usize| serde_json::json!({ "id": token, "ids": [id], "tokens": [token] });
    serde_json::json!({
        "version": "1.0",
        "truncation": { "direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0 },
        "padding": null,
        "added_tokens": [],
        "normalizer": null,
        "pre_tokenizer": { "type": "WhitespaceSplit" },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                { "SpecialToken": { "id": "[CLS]", "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
                { "SpecialToken": { "id": "[SEP]", "type_id": 0 } },
            ],
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
            "special_tokens": { "[CLS]": special("[CLS]", 1), "[SEP]": special("[SEP]", 2) },
        },
        "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]" },
    })
    .to_string()
}

/// An ONNX file with one graph.
fn model(graph: &[u8]) -> Vec<u8> {
    let opset = [bytes(1, b""), number(2, 17)].concat();
    [number(1, 8), bytes(7, graph), bytes(8, &opset)].concat()
}

/// A node of a graph.
fn node(operator: &str, inputs: &[&str], output: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut node: Vec<u8> = inputs.iter().flat_map(|input| bytes(1, input.as_bytes())).collect();
    node.extend(bytes(2, output.as_bytes()));
    node.extend(bytes(4, operator.as_bytes()));
    node.extend(attributes.iter().flat_map(|attribute| bytes(5, attribute)));
    bytes(1, &node)
}

/// An initializer. `values` are the fields with its data.
fn floats(name: &str, shape: &[usize], values: &[u8]) -> Vec<u8> {
    let mut tensor: Vec<u8> = shape.iter().flat_map(|size| number(1, *size as u64)).collect();
    tensor.extend(number(2, 1)); // float
    tensor.extend(bytes(8, name.as_bytes()));
    tensor.extend(values);
    bytes(5, &tensor)
}

/// Name, type and shape of a value.
fn tensor(name: &str, kind: u64, shape: &[&str]) -> Vec<u8> {
    let dimensions: Vec<u8> = shape.iter().flat_map(|name| bytes(1, &bytes(2, name.as_bytes()))).collect();
    let kind = bytes(1, &[number(1, kind), bytes(2, &dimensions)].concat());
    [bytes(1, name.as_bytes()), bytes(2, &kind)].concat()
}

// The two protobuf field types that ONNX needs.

pub fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

pub fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
