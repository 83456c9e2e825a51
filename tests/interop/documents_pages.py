"""PDFs written by reportlab and pypdf, pictures by Pillow, and pages and plain texts."""

from pathlib import Path

import pypdf
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import BaseDocTemplate, Flowable, Frame, PageTemplate, Paragraph, Table

STYLES = getSampleStyleSheet()
# Long enough for four columns on two pages.
SENTENCES = [f"Sentence {number:03} tells how the ships of the harbour were counted." for number in range(1, 121)]
HEADINGS = {0: ("Heading1", "Arrivals"), 30: ("Heading2", "By night"), 70: ("Heading1", "Departures")}
RULED = [["Pier", "Ships"], ["North", "12"], ["South", "9"]]
UPWARDS = "Printed on the quay"
WIDTH, HEIGHT = A4
GERMAN, JAPANESE = "Größe über 30 €", "港の船を数える"


class Report(BaseDocTemplate):
    """Two columns on each page, and bookmarks for the headings."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), pagesize=A4, title="Port report", author="Ada Quay", subject="Ships", lang="en-GB")
        columns = [Frame(50, 70, 235, 690, id="left"), Frame(310, 70, 235, 690, id="right")]
        self.addPageTemplates(PageTemplate(frames=columns, onPage=furniture))

    def afterFlowable(self, flowable: Flowable) -> None:
        style = getattr(flowable, "style", None)
        name = getattr(style, "name", "")
        if name.startswith("Heading"):
            text = flowable.getPlainText()
            self.canv.bookmarkPage(text)
            self.canv.addOutlineEntry(text, text, level=int(name[-1]) - 1)


def furniture(canvas: Canvas, _: BaseDocTemplate) -> None:
    canvas.saveState()
    canvas.setFont("Helvetica", 9)
    canvas.drawString(50, 800, "Harbour office")
    canvas.drawRightString(545, 30, f"Page {canvas.getPageNumber()}")
    if canvas.getPageNumber() == 1:
        canvas.rotate(90)
        canvas.drawString(300, -30, UPWARDS)
    else:
        canvas.acroForm.textfield(name="master", tooltip="Harbourmaster", value="Ms Tide", x=310, y=40, width=100)
        canvas.textAnnotation("Ask about the fog", Rect=(500, 780, 520, 800))
    canvas.restoreState()


def report(path: Path) -> None:
    story: list[Flowable] = []
    for at in range(0, len(SENTENCES), 5):
        if at in HEADINGS:
            style, text = HEADINGS[at]
            story.append(Paragraph(text, STYLES[style]))
        story.append(Paragraph(" ".join(SENTENCES[at : at + 5]), STYLES["BodyText"]))
        if at == 10:
            story.append(Table(RULED, style=[("GRID", (0, 0), (-1, -1), 0.5, colors.black)]))
    Report(path).build(story)


def encrypted(source: Path, path: Path, user_password: str, algorithm: str) -> None:
    writer = pypdf.PdfWriter(clone_from=source)
    writer.encrypt(user_password, owner_password="owner", algorithm=algorithm)
    writer.write(path)


def scripts(path: Path) -> None:
    """A font of which only the letters in use are inside, and one that every reader must have itself."""
    pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))
    canvas = Canvas(str(path), pagesize=A4)
    for y, font, text in [(700, "Vera", GERMAN), (600, "HeiseiMin-W3", JAPANESE)]:
        canvas.setFont(font, 14)
        canvas.drawString(72, y, text)
    canvas.save()


def page_of_text(size: tuple[int, int]) -> Image.Image:
    image = Image.new("RGB", size, "white")
    font = ImageFont.load_default(size=size[0] // 20)
    ImageDraw.Draw(image).multiline_text((50, 50), "Scanned letter\nabout the harbour", "black", font)
    return image


def scan(path: Path) -> None:
    canvas = Canvas(str(path), pagesize=A4)
    canvas.setTitle("A scan")
    canvas.drawInlineImage(page_of_text((1240, 1754)), 0, 0, WIDTH, HEIGHT)
    canvas.save()


def photograph(path: Path) -> None:
    """Taken with the camera on its side: 640 dots wide and 480 high, to be shown 480 wide."""
    image = page_of_text((640, 480))
    exif = Image.Exif()
    orientation, changed, details, taken = 0x0112, 0x0132, 0x8769, 0x9003
    exif[orientation], exif[changed] = 6, "2024:03:02 10:00:00"
    exif.get_ifd(details)[taken] = "2024:03:01 09:30:00"
    image.save(path, exif=exif)


def drawing(path: Path) -> None:
    page_of_text((320, 200)).save(path)


def svg(path: Path) -> None:
    text = """<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="200" height="100">
<title>Map of the port</title><desc>Piers and cranes</desc><style>text { fill: red }</style><script>alert("no")</script>
<text x="10" y="20">North <tspan>pier</tspan></text><text x="10" y="60">South pier</text></svg>"""
    path.write_text(text, encoding="utf-8")


ARTICLE = """<!DOCTYPE html><html lang="de"><head>{head}<title>{title}</title><style>.no {{ color: red }}</style>
<script>var no = "script";</script></head><body><nav><a href="/">Startseite</a> <a href="/kontakt">Kontakt</a></nav>
<main><article><h1>Der Hafen wird größer</h1>{paragraphs}<h2>Zahlen</h2>
<table><tr><th>Pier</th><th>Schiffe</th></tr><tr><td>Nord</td><td>12</td></tr></table></article></main>
<footer>Impressum und Datenschutz</footer></body></html>"""
PARAGRAPH = (
    "Die Behörde zählt täglich alle Schiffe, die über Nacht einlaufen, und schreibt ihre Größe auf, "
    "denn danach, so heißt es, wird der Liegeplatz vergeben."
)


def page(path: Path, encoding: str, title: str) -> None:
    """With UTF-8 the mark at its start is all that tells the encoding."""
    head = "" if encoding == "utf-8-sig" else f'<meta charset="{encoding}">'
    paragraphs = "".join(f"<p>{PARAGRAPH} Das war Tag {day}.</p>" for day in range(1, 6))
    path.write_bytes(ARTICLE.format(head=head, title=title, paragraphs=paragraphs).encode(encoding))
