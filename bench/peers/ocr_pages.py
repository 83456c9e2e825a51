"""The pages of `bench/run ocr`: pictures of pages whose text is known.

    ocr_pages.py make FONTS FOLDER          draws them, and tells in FOLDER/pages.json what they say
    ocr_pages.py draw FILE.pdf FOLDER       draws the pages of a PDF file, and prints the names of the pictures
    ocr_pages.py scans FILE.pdf FOLDER      only the first of those that show a picture and have no text layer

A4 at 200 dots per inch. The same every time: each page has its own seed, and the fonts are those of FONTS.
"""

import io
import json
import pathlib
import random
import sys
import time

import numpy
from PIL import Image, ImageDraw, ImageFilter, ImageFont

DPI = 200
WIDTH, HEIGHT = 1654, 2339
MARGIN = 170
TEXTS = pathlib.Path(__file__).parent / "ocr-texts"

SANS, SERIF, MONO = "DejaVuSans.ttf", "LiberationSerif-Regular.ttf", "DejaVuSansMono.ttf"
SANS_2, SERIF_2, MONO_2 = "LiberationSans-Regular.ttf", "DejaVuSerif.ttf", "LiberationMono-Regular.ttf"
FONTS = [SANS, SERIF, MONO, SANS_2, SERIF_2, MONO_2]
SIZES = [10, 12, 9, 8, 11, 14]


def main():
    command, source, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    {"make": make, "draw": draw, "scans": scans}[command](source, folder)


def make(fonts, folder):
    studio = Studio(fonts)
    told, scans = [], []
    for name, group, language, (image, text) in pages(studio):
        image.save(folder / f"{name}.png", dpi=(DPI, DPI))
        told.append({"name": name, "group": group, "language": language, "text": text})
        if group in ("clean", "skewed"):
            scans.append((name, image.convert("RGB")))
    images = [image for _, image in scans]
    made = {"creationDate": time.gmtime(0), "modDate": time.gmtime(0)}
    images[0].save(folder / "scan.pdf", save_all=True, append_images=images[1:], resolution=DPI, quality=75, **made)
    document = {"pages": told, "scan": [name for name, _ in scans]}
    (folder / "pages.json").write_text(json.dumps(document, ensure_ascii=False, indent=1))


def pages(studio):
    """Each as its name, group and language, with its picture and its text."""
    for index, (font, size) in enumerate(zip(FONTS, SIZES)):
        yield f"clean-{size}pt-{index}", "clean", "eng", studio.prose(f"clean {index}", font, size)
    for index, angle in enumerate([-5, -3, -1.2, 0.7, 2.5, 5]):
        image, text = studio.prose(f"skewed {index}", FONTS[index], SIZES[index])
        yield f"skewed{angle:+}", "skewed", "eng", (skewed(image, angle), text)
    for index, (angle, size) in enumerate([(90, 11), (180, 9), (270, 12)]):
        image, text = studio.prose(f"turned {index}", FONTS[index], size)
        yield f"turned-{angle}", "turned", "eng", (image.rotate(angle, expand=True), text)
    for index, (kind, size) in enumerate([(grain, 10), (specks, 11), (shade, 9), (faint, 10)]):
        image, text = studio.prose(f"noisy {index}", FONTS[(index + 1) % 6], size)
        yield f"noisy-{kind.__name__}", "noisy", "eng", (kind(image, numpy.random.default_rng(index)), text)
    for index, (quality, size) in enumerate([(50, 8), (43, 10), (37, 12), (30, 9)]):
        image, text = studio.prose(f"jpeg {index}", FONTS[(index + 3) % 6], size)
        yield f"jpeg-{quality}", "jpeg", "eng", (squeezed(image, quality), text)
    for index, (font, size) in enumerate([(SERIF, 10), (SANS_2, 9), (SERIF_2, 8)]):
        yield f"columns-{index}", "columns", "eng", studio.columns(f"columns {index}", font, size)
    for language, group in (("deu", "german"), ("fra", "french")):
        for index, (font, size) in enumerate([(SERIF, 11), (SANS, 9), (MONO_2, 10)]):
            yield f"{group}-{index}", group, language, studio.prose(f"{group} {index}", font, size, group)
    for index, (font, size) in enumerate([(SANS_2, 10), (SERIF, 11), (MONO, 8)]):
        yield f"table-{index}", "tables", "eng", studio.table(f"table {index}", font, size, ruled=index != 1)


class Studio:
    """Draws texts with the fonts of one folder."""

    def __init__(self, fonts):
        self.files = {path.name: path for path in sorted(fonts.rglob("*.ttf"))}
        self.texts = {}
        for path in TEXTS.glob("*.txt"):
            paragraphs = path.read_text().strip().split("\n\n")
            self.texts[path.stem] = [" ".join(paragraph.split()) for paragraph in paragraphs]

    def font(self, name, size):
        # Basic layout: another engine might be there or not, and place letters differently.
        return ImageFont.truetype(self.files[name], round(size * DPI / 72), layout_engine=ImageFont.Layout.BASIC)

    def choose(self, seed, count, language="english"):
        return random.Random(seed).sample(self.texts[language], count)

    def prose(self, seed, name, size, language="english"):
        """A heading and eight paragraphs, or as many as fit."""
        paper = Paper()
        said = [paper.heading(seed, self.font(name, size + 4))]
        for paragraph in self.choose(seed, 8, language):
            said.append(paper.paragraph(paragraph, self.font(name, size), MARGIN, WIDTH - MARGIN))
        return paper.image, "\n".join(filter(None, said))

    def columns(self, seed, name, size):
        """Two of them under a heading, the left one first."""
        paper = Paper()
        said = [paper.heading(seed, self.font(name, size + 6))]
        top, gap, middle = paper.y, 40, WIDTH // 2
        chosen = self.choose(seed, 10)
        for left, right, part in ((MARGIN, middle - gap, chosen[:5]), (middle + gap, WIDTH - MARGIN, chosen[5:])):
            paper.y = top
            for paragraph in part:
                said.append(paper.paragraph(paragraph, self.font(name, size), left, right))
        return paper.image, "\n".join(filter(None, said))

    def table(self, seed, name, size, ruled):
        """Rows of goods with numbers, prices and dates under a paragraph."""
        chance = random.Random(seed)
        paper = Paper()
        font = self.font(name, size)
        said = [paper.heading(seed, self.font(name, size + 4))]
        said.append(paper.paragraph(self.choose(seed, 1)[0], font, MARGIN, WIDTH - MARGIN))
        goods = ["Copper pipe", "Oak board", "Hinge, brass", "Wood glue", "Paint, white", "Sandpaper", "Window putty"]
        rows = [["No.", "Article", "Date", "Pieces", "Price", "Sum"]]
        for number in range(1, 23):
            pieces, cents = chance.randint(1, 99), chance.randint(45, 98765)
            date = f"{chance.randint(1, 28):02}.{chance.randint(1, 12):02}.{chance.randint(1998, 2025)}"
            sum_ = pieces * cents
            rows.append(
                [str(number), chance.choice(goods), date, str(pieces), f"{cents / 100:.2f}", f"{sum_ / 100:,.2f}"]
            )
        edges = [MARGIN, MARGIN + 110, MARGIN + 480, MARGIN + 740, MARGIN + 890, MARGIN + 1070, WIDTH - MARGIN]
        for row in rows:
            said.append(paper.row(row, font, edges, ruled))
        return paper.image, "\n".join(said)


class Paper:
    """A white page that is written from the top."""

    def __init__(self):
        self.image = Image.new("L", (WIDTH, HEIGHT), 255)
        self.pen = ImageDraw.Draw(self.image)
        self.y = MARGIN

    def heading(self, seed, font):
        text = f"Page {sum(map(ord, seed)) % 97}: {seed}"
        self.pen.text((MARGIN, self.y), text, font=font, fill=0)
        self.y += round(font.size * 2.2)
        return text

    def paragraph(self, text, font, left, right):
        """Writes what fits and tells what that is."""
        written = []
        for line in wrapped(text, font, right - left):
            if self.y + font.size > HEIGHT - MARGIN:
                break
            self.pen.text((left, self.y), line, font=font, fill=0)
            self.y += round(font.size * 1.35)
            written.append(line)
        self.y += round(font.size * 0.8)
        return "\n".join(written)

    def row(self, cells, font, edges, ruled):
        height = round(font.size * 1.8)
        for index, cell in enumerate(cells):
            left, right = edges[index] + 12, edges[index + 1] - 12
            # Numbers stand to the right.
            at = left if index in (1, 2) else right - font.getlength(cell)
            self.pen.text((at, self.y + font.size * 0.3), cell, font=font, fill=0)
        if ruled:
            for left, right in zip(edges, edges[1:]):
                self.pen.rectangle((left, self.y, right, self.y + height), outline=0, width=2)
        self.y += height
        return " ".join(cells)


def wrapped(text, font, width):
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and font.getlength(longer) > width:
            yield line
            longer = word
        line = longer
    yield line


def skewed(image, degrees):
    return image.rotate(degrees, resample=Image.Resampling.BICUBIC, fillcolor=255)


def squeezed(image, quality):
    """What is left after JPEG."""
    kept = io.BytesIO()
    image.save(kept, "JPEG", quality=quality)
    return Image.open(kept).convert("L")


def pixels(image):
    return numpy.asarray(image, dtype=numpy.float32)


def picture(values):
    return Image.fromarray(numpy.clip(values, 0, 255).astype(numpy.uint8))


def grain(image, chance):
    """Grey paper and the noise of a sensor."""
    values = pixels(image) * 0.75 + 45
    return picture(values + chance.normal(0, 22, values.shape))


def specks(image, chance):
    """Dust: one pixel in a hundred is black or white."""
    values = pixels(image).copy()
    spots = chance.random(values.shape)
    values[spots < 0.006] = 0
    values[spots > 0.996] = 255
    return picture(values)


def shade(image, chance):
    """A book that does not lie flat: dark to one side, and not in focus."""
    values = pixels(image.filter(ImageFilter.GaussianBlur(1.0)))
    light = numpy.linspace(0.45, 1.0, values.shape[1], dtype=numpy.float32)
    return picture(values * light + chance.normal(0, 6, values.shape))


def faint(image, chance):
    """A copy of a copy: pale ink."""
    values = 150 + pixels(image) * (90 / 255)
    return picture(values + chance.normal(0, 8, values.shape))


def draw(source, folder, wanted=lambda page: True, most=1000):
    import pypdfium2

    drawn = 0
    for index, page in enumerate(pypdfium2.PdfDocument(source)):
        if drawn < most and wanted(page):
            path = folder / f"{source.stem}-{index + 1}.png"
            page.render(scale=DPI / 72).to_pil().convert("RGB").save(path, dpi=(DPI, DPI))
            print(path, flush=True)
            drawn += 1


def scans(source, folder):
    from pypdfium2 import raw

    def wanted(page):
        width, height = page.get_size()
        shows = any(True for _ in page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=3))
        letters = any(letter.isalnum() for letter in page.get_textpage().get_text_bounded())
        # A page of two metres is no scan.
        return shows and not letters and width * height < 3000 * 2000

    draw(source, folder, wanted, most=3)


main()
