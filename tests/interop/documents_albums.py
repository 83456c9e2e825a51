"""Office documents with pictures in which there are words, by python-docx, python-pptx, openpyxl and XlsxWriter."""

from io import BytesIO
from pathlib import Path

import docx
import openpyxl
import pptx
import xlsxwriter
from openpyxl.drawing.image import Image as SheetImage
from openpyxl.packaging.manifest import mimetypes
from pptx.util import Inches

from documents_photos import labelled
from documents_scans import saved

# Formats supported by each library. TIFF uses fax or byte compression.
WORD = {"PNG": "Albatross", "JPEG": "Bittern", "GIF": "Cormorant", "BMP": "Dunlin", "TIFF": "Egret"}
SHEET = {"PNG": "Fulmar", "JPEG": "Gannet", "GIF": "Heron", "WEBP": "Osprey"}
XLSXWRITER = {"PNG": "Jackdaw", "JPEG": "Kestrel", "GIF": "Lapwing", "BMP": "Merlin"}


def stored(form: str, word: str) -> BytesIO:
    image = labelled(word)
    options = {"compression": "tiff_lzw"} if form == "TIFF" else {"lossless": True} if form == "WEBP" else {}
    return BytesIO(saved(image, form, **options))


def word(path: Path) -> None:
    """A paragraph before each picture and one after the last, a picture in a table, and one twice."""
    document = docx.Document()
    document.add_heading("Crates", 1)
    for form, ship in WORD.items():
        document.add_paragraph(f"Before the {form}.")
        document.add_picture(stored(form, ship))
    document.add_paragraph("After the pictures.")
    document.add_picture(stored("PNG", WORD["PNG"]))
    cell = document.add_table(rows=1, cols=2).rows[0].cells
    cell[0].text = "In a table"
    cell[1].paragraphs[0].add_run().add_picture(stored("PNG", "Nightjar"))
    document.save(path)


def slides(path: Path) -> None:
    show = pptx.Presentation()
    for form, ship in WORD.items():
        slide = show.slides.add_slide(show.slide_layouts[5])
        slide.shapes.title.text = f"A slide with {form}"
        slide.shapes.add_picture(stored(form, ship), Inches(1), Inches(2))
    show.save(path)


def openpyxl_workbook(path: Path) -> None:
    # The library supports them, but Python 3.11 has no MIME type for them yet.
    mimetypes.add_type("image/webp", ".webp")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for form, ship in SHEET.items():
        sheet = book.create_sheet(form)
        sheet.append(["What", "Value"])
        sheet.append(["Form", form])
        sheet.add_image(SheetImage(stored(form, ship)), "D5")
    book.save(path)


def xlsxwriter_workbook(path: Path) -> None:
    book = xlsxwriter.Workbook(path)
    for form, ship in XLSXWRITER.items():
        sheet = book.add_worksheet(form)
        sheet.write(0, 0, f"Form {form}")
        sheet.insert_image("D5", f"{form}.img", {"image_data": stored(form, ship)})
    book.close()
