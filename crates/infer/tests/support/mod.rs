//! Small models for tests, made on the spot: a lookup table in ONNX, and a tokenizer that knows a few words.

#![allow(dead_code, reason = "several test programs share it, and not all use all of it")]

use std::fs;
use std::path::Path;

/// Words of the small tokenizer; a word's place is its id.
pub(crate) const WORDS: [&str; 8] = ["[UNK]", "[CLS]", "[SEP]", "one", "two", "three", "query:", "passage:"];
pub(crate) const WIDTH: usize = 4;

/// A model that looks each token up in a table: what comes out can be computed by hand.
pub(crate) struct Table {
    pub(crate) rows: Vec<[f32; WIDTH]>,
    pub(crate) inputs: Vec<&'static str>,
    pub(crate) output: &'static str,
    /// The model takes the mean over the tokens by itself.
    pub(crate) pools: bool,
}

impl Default for Table {
    fn default() -> Table {
        let row = |id: usize| [id as f32, 1.0, (id * id) as f32, -(id as f32) / 2.0];
        Table {
            rows: (0..WORDS.len()).map(row).collect(),
            inputs: vec!["input_ids", "attention_mask"],
            output: "last_hidden_state",
            pools: false,
        }
    }
}

impl Table {
    /// Writes `model.onnx` and `tokenizer.json` into a folder.
    pub(crate) fn write(&self, folder: &Path) {
        fs::write(folder.join("model.onnx"), self.onnx()).expect("written");
        fs::write(folder.join("tokenizer.json"), tokenizer()).expect("written");
    }

    /// The model in ONNX, with the table in it.
    pub(crate) fn onnx(&self) -> Vec<u8> {
        self.onnx_of(WIDTH, &bytes(9, &self.values()))
    }

    /// The same with the table in another file, at any place of it.
    pub(crate) fn onnx_outside(&self, file: &str, offset: u64, length: u64) -> Vec<u8> {
        let said = |key: &str, value: &str| bytes(13, &[bytes(1, key.as_bytes()), bytes(2, value.as_bytes())].concat());
        let place = [
            said("location", file),
            said("offset", &offset.to_string()),
            said("length", &length.to_string()),
            number(14, 1), // external
        ];
        self.onnx_of(WIDTH, &place.concat())
    }

    /// The same with rows of no numbers.
    pub(crate) fn onnx_without_width(&self) -> Vec<u8> {
        self.onnx_of(0, &bytes(9, b""))
    }

    /// The table as it stands in a file.
    pub(crate) fn values(&self) -> Vec<u8> {
        self.rows.iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// One `Gather` over the table, and a mean over the tokens if it pools.
    fn onnx_of(&self, width: usize, values: &[u8]) -> Vec<u8> {
        let table = [
            number(1, self.rows.len() as u64),
            number(1, width as u64),
            number(2, 1), // float
            bytes(8, b"table"),
            values.to_vec(),
        ]
        .concat();
        let gather = [
            bytes(1, b"table"),
            bytes(1, b"input_ids"),
            bytes(2, if self.pools { b"rows" } else { self.output.as_bytes() }),
            bytes(3, b"lookup"),
            bytes(4, b"Gather"),
        ]
        .concat();
        let mut graph = [bytes(1, &gather), bytes(2, b"table"), bytes(5, &table)].concat();
        if self.pools {
            let axes = [bytes(1, b"axes"), number(8, 1), number(20, 7)].concat();
            let keep = [bytes(1, b"keepdims"), number(3, 0), number(20, 2)].concat();
            let mean = [
                bytes(1, b"rows"),
                bytes(2, self.output.as_bytes()),
                bytes(4, b"ReduceMean"),
                bytes(5, &axes),
                bytes(5, &keep),
            ];
            graph.extend(bytes(1, &mean.concat()));
        }
        for input in &self.inputs {
            graph.extend(bytes(11, &tensor(input, 7, &["batch", "tokens"])));
        }
        graph.extend(bytes(
            12,
            &tensor(self.output, 1, if self.pools { &["batch", "width"] } else { &["batch", "tokens", "width"] }),
        ));
        let opset = [bytes(1, b""), number(2, 17)].concat();
        [number(1, 8), bytes(7, &graph), bytes(8, &opset)].concat()
    }
}

/// `[CLS] words [SEP]`, with words split at spaces.
pub(crate) fn tokenizer() -> String {
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

/// A value's name, type and shape.
fn tensor(name: &str, kind: u64, shape: &[&str]) -> Vec<u8> {
    let dimensions: Vec<u8> = shape.iter().flat_map(|name| bytes(1, &bytes(2, name.as_bytes()))).collect();
    let kind = bytes(1, &[number(1, kind), bytes(2, &dimensions)].concat());
    [bytes(1, name.as_bytes()), bytes(2, &kind)].concat()
}

// The two forms of protobuf fields that ONNX needs.

pub(crate) fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

pub(crate) fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

pub(crate) fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
