"""Office documents, written by python-docx, python-pptx, openpyxl and XlsxWriter."""

from datetime import date, datetime, time
from io import BytesIO
from pathlib import Path

import docx
import openpyxl
import pptx
import xlsxwriter
from docx.opc.constants import CONTENT_TYPE, RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from openpyxl.comments import Comment
from PIL import Image
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

CREATED = datetime(2024, 3, 1, 9, 30)
FOOTNOTES = f"""<w:footnotes {nsdecls("w")}>
<w:footnote w:id="-1" w:type="separator"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>
<w:footnote w:id="1"><w:p><w:r><w:t>Counted at high tide.</w:t></w:r></w:p></w:footnote>
</w:footnotes>"""


def picture() -> BytesIO:
    file = BytesIO()
    Image.new("RGB", (60, 40), "navy").save(file, "PNG")
    file.seek(0)
    return file


def word(path: Path) -> None:
    document = docx.Document()
    about = document.core_properties
    about.title, about.author, about.subject, about.created = "Harbour report", "Ada Quay", "Ships", CREATED
    section = document.sections[0]
    section.header.paragraphs[0].text = "Harbour office"
    section.footer.paragraphs[0].text = "Not for the public"
    document.add_heading("Harbour", 1)
    paragraph = document.add_paragraph("Ships ")
    paragraph.add_run("arr").bold = True
    paragraph.add_run("ive daily.").italic = True
    document.add_comment(paragraph.runs, text="Every day?", author="Bo", initials="B")
    note = document.add_paragraph("Twelve piers are in use.")
    note._p.append(parse_xml(f'<w:r {nsdecls("w")}><w:footnoteReference w:id="1"/></w:r>'))
    document.add_heading("Piers", 2)
    linked(document.add_paragraph("See "), "the tide table", "https://example.com/tides")
    document.add_paragraph("North pier", "List Bullet")
    document.add_paragraph("Its crane", "List Bullet 2")
    bell = document.add_paragraph("Its bell", "List Bullet")
    numbering = bell._p.get_or_add_pPr().get_or_add_numPr()
    numbering.get_or_add_ilvl().val, numbering.get_or_add_numId().val = 1, 1
    document.add_paragraph("South pier", "List Bullet")
    document.add_heading("Figures", 3)
    document.add_picture(picture())
    document.inline_shapes[0]._inline.docPr.set("descr", "A ship at the pier")
    merged_table(document)
    notes = Part(PackURI("/word/footnotes.xml"), CONTENT_TYPE.WML_FOOTNOTES, FOOTNOTES.encode(), document.part.package)
    document.part.relate_to(notes, RELATIONSHIP_TYPE.FOOTNOTES)
    document.save(path)


def linked(paragraph: docx.text.paragraph.Paragraph, text: str, to: str) -> None:
    relation = paragraph.part.relate_to(to, RELATIONSHIP_TYPE.HYPERLINK, is_external=True)
    run = f"<w:r><w:t>{text}</w:t></w:r>"
    paragraph._p.append(parse_xml(f'<w:hyperlink {nsdecls("w", "r")} r:id="{relation}">{run}</w:hyperlink>'))


def merged_table(document: docx.document.Document) -> None:
    """The first row spans the last two columns, the first column the last two rows."""
    table = document.add_table(rows=3, cols=3)
    for row, texts in zip(table.rows, [["Pier", "Ships", ""], ["North", "in", "12"], ["", "out", "9"]], strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            cell.text = text
    for first, last in [((0, 1), (0, 2)), ((1, 0), (2, 0))]:
        merged = table.cell(*first).merge(table.cell(*last))
        merged.text = merged.text.strip()


def slides(path: Path) -> None:
    show = pptx.Presentation()
    show.core_properties.title, show.core_properties.author = "Harbour talk", "Ada Quay"
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "Ships in port"
    body = slide.placeholders[1].text_frame
    body.text = "Freighters"
    for text, level in [("Bulk", 1), ("Ferries", 0)]:
        paragraph = body.add_paragraph()
        paragraph.text, paragraph.level = text, level
    slide.notes_slide.notes_text_frame.text = "Mention the new ferry."
    second = show.slides.add_slide(show.slide_layouts[5])
    second.shapes.title.text = "Cargo by pier"
    table = second.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for (row, column), text in {(0, 0): "Pier", (0, 1): "Tons", (1, 0): "North", (1, 1): "1200"}.items():
        table.cell(row, column).text = text
    group = second.shapes.add_group_shape()
    for left, text in [(1, "Crane A"), (3, "Crane B")]:
        group.shapes.add_textbox(Inches(left), Inches(4), Inches(2), Inches(1)).text_frame.text = text
    image = second.shapes.add_picture(picture(), Inches(6), Inches(2))
    image._element.nvPicPr.cNvPr.set("descr", "A crane")
    data = CategoryChartData()
    data.categories = ["Spring", "Autumn"]
    data.add_series("Arrivals", (41, 57))
    second.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(5), Inches(4), Inches(2), data)
    show.save(path)


# Cells of both workbooks: value, format, and the expected text. Thousands stay together, so that they are found as one
# word, and dates have the year first.
SHOWN = [
    ("General", 0.1 + 0.2, "General", "0.3"),
    ("Day", date(2024, 3, 1), "dd.mm.yyyy", "2024-03-01"),
    ("Moment", datetime(2024, 3, 1, 14, 30), "yyyy-mm-dd hh:mm", "2024-03-01 14:30"),
    ("Hour", time(6, 45), "h:mm AM/PM", "06:45"),
    ("Share", 0.125, "0.0%", "12.5%"),
    ("Dollars", 1234.5, "$#,##0.00", "$1234.50"),
    ("Dollars as Excel writes them", 1234.5, '"$"#,##0.00', "$1234.50"),
    ("Euros", -7.5, "#,##0.00 [$€-407]", "-7.50 €"),
    ("Euros as Excel writes them", 7.5, '#,##0.00\\ "€"', "7.50 €"),
    ("Weight", 12, '0.0" kg"', "12.0 kg"),
    ("Fixed", 2, "0.00", "2.00"),
    ("Open", True, "General", "TRUE"),
    ("Article", "00042", "@", "00042"),
]
FORMULAS = [("Sum", "=SUM(1,2)", 3), ("Word", '="a"&"b"', "ab"), ("Bad", "=1/0", "#DIV/0!")]


def openpyxl_workbook(path: Path) -> None:
    book = openpyxl.Workbook()
    book.properties.title, book.properties.creator = "Harbour figures", "Ada Quay"
    sheet = book.active
    sheet.title = "Figures"
    sheet.append(["What", "Value"])
    for what, value, form, _ in SHOWN:
        sheet.append([what, value])
        sheet.cell(sheet.max_row, 2).number_format = form
    sheet.append(["Broken", "#DIV/0!"])
    # This library does not compute formulas, so the file contains only the formula.
    sheet.append(["Sum", "=SUM(B5,B6)"])
    sheet["A2"].comment = Comment("Is this exact?", "Bo")
    merged = book.create_sheet("Merged")
    for row in [["Pier", "Ships", None], ["North", "in", 12], [None, "out", 9]]:
        merged.append(row)
    merged.merge_cells("B1:C1")
    merged.merge_cells("A2:A3")
    book.create_sheet("Secret").append(["Kept aside", 1])
    book["Secret"].sheet_state = "hidden"
    book.save(path)


def xlsxwriter_workbook(path: Path) -> None:
    """Days are counted from 1904, and texts stand in the cells and not apart from them."""
    book = xlsxwriter.Workbook(path, {"date_1904": True, "constant_memory": True})
    book.set_properties({"title": "Harbour sums", "author": "Ada Quay", "created": CREATED})
    sheet = book.add_worksheet("Sums")
    for row, (what, value, form, _) in enumerate([("What", "Value", "General", ""), *SHOWN]):
        sheet.write(row, 0, what)
        sheet.write(row, 1, value, book.add_format({"num_format": form}))
    row = len(SHOWN) + 1
    for more, (what, formula, result) in enumerate(FORMULAS):
        sheet.write(row + more, 0, what)
        sheet.write_formula(row + more, 1, formula, None, result)
    rich = book.add_format({"bold": True})
    sheet.write_rich_string(row + 3, 0, "Rich ", rich, "text", " cell")
    sheet.write_comment(row + 3, 0, "Look here")
    book.add_worksheet("Empty")
    book.add_worksheet("Last").write(99, 5, "far away")
    book.close()
