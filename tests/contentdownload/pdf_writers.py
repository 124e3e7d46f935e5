"""Papers as different producers write them, small, for the tests of the text engine and of the rules."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import fpdf
import pikepdf
import reportlab
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

FONTS = Path(reportlab.__file__).parent / "fonts"
VERA = FONTS / "Vera.ttf"
pdfmetrics.registerFont(TTFont("Vera", VERA))
pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))


@dataclass(frozen=True)
class Text:
    """A line of a page. Lines go down from the top; `gap` is the space above it, in points."""

    text: str
    size: float = 10
    gap: float = 2
    left: float = 70


@dataclass(frozen=True)
class Made:
    pages: Sequence[Sequence[Text | str]]
    info: dict[str, str] = field(default_factory=dict)


Writer = Callable[[Made], bytes]


def rows(page: Sequence[Text | str]) -> list[tuple[Text, float]]:
    """Each line with its height on the page."""
    at, placed = 800.0, []
    for line in page:
        text = line if isinstance(line, Text) else Text(line)
        at -= text.gap + text.size
        placed.append((text, at))
    return placed


def reportlab_pdf(made: Made, font: str = "Helvetica", *, compress: int = 1, rotate: int = 0) -> bytes:
    """ReportLab: ASCII85 over Flate, fonts of the reader or TrueType subsets that number their own glyphs."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, pageCompression=compress)
    for page in made.pages:
        if rotate:
            canvas.setPageRotation(rotate)
        for text, at in rows(page):
            canvas.setFont(font, text.size)
            canvas.drawString(text.left, at, text.text)
        canvas.showPage()
    canvas.setTitle(made.info.get("Title", ""))
    canvas.save()
    return out.getvalue()


def form_pdf(made: Made) -> bytes:
    """Every page is drawn inside a form XObject, as stamping tools leave them."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    for number, page in enumerate(made.pages):
        canvas.beginForm(f"page{number}", 0, 0, *A4)
        for text, at in rows(page):
            canvas.setFont("Times-Roman", text.size)
            canvas.drawString(text.left, at, text.text)
        canvas.endForm()
        canvas.doForm(f"page{number}")
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def composite_pdf(made: Made) -> bytes:
    """fpdf2: a composite font in the writer's own numbering, as word processors embed them."""
    pdf = fpdf.FPDF(unit="pt", format="A4")
    pdf.add_font("Vera", fname=VERA)
    for page in made.pages:
        pdf.add_page()
        for text, at in rows(page):
            pdf.set_font("Vera", size=text.size)
            pdf.text(text.left, 842 - at, text.text)
    return bytes(pdf.output())


def scan_pdf(made: Made, *, ocr: bool = False) -> bytes:
    """Pictures of pages; with `ocr` the text lies invisibly over them."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    for page in made.pages:
        canvas.drawInlineImage(_grey(), 0, 0, *A4)
        for text, at in rows(page) if ocr else ():
            shown = canvas.beginText(text.left, at)
            shown.setFont("Helvetica", text.size)
            shown.setTextRenderMode(3)
            shown.textLine(text.text)
            canvas.drawText(shown)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def _grey() -> object:
    from PIL import Image

    return Image.new("L", (30, 40), 200)


def type3_pdf(made: Made) -> bytes:
    """Old TeX: glyphs are drawings, and a table says which letters they are."""
    with pikepdf.new() as pdf:
        letters = sorted({letter for page in made.pages for text, _ in rows(page) for letter in text.text})[:250]
        code = {letter: number + 1 for number, letter in enumerate(letters)}
        glyph = pdf.make_stream(b"500 0 0 0 450 700 d1 0 0 450 700 re f")
        font = pdf.make_indirect(
            pikepdf.Dictionary(
                Type=pikepdf.Name.Font,
                Subtype=pikepdf.Name.Type3,
                FontBBox=[0, 0, 500, 700],
                FontMatrix=[0.001, 0, 0, 0.001, 0, 0],
                FirstChar=1,
                LastChar=len(letters),
                Widths=[500] * len(letters),
                CharProcs=pikepdf.Dictionary({f"/g{number}": glyph for number in code.values()}),
                Encoding=pikepdf.Dictionary(
                    Differences=[1, *(pikepdf.Name(f"/g{number}") for number in code.values())]
                ),
                ToUnicode=pdf.make_stream(_to_unicode(code)),
            )
        )
        for page in made.pages:
            shown = b"".join(
                b"BT /F %g Tf %g %g Td <%s> Tj ET\n"
                % (
                    text.size,
                    text.left,
                    at,
                    bytes(code[letter] for letter in text.text if letter in code).hex().encode(),
                )
                for text, at in rows(page)
            )
            added = pdf.add_blank_page(page_size=A4)
            added.obj.Contents = pdf.make_stream(shown)
            added.obj.Resources = pikepdf.Dictionary(Font=pikepdf.Dictionary(F=font))
        out = io.BytesIO()
        pdf.save(out)
        return out.getvalue()


def _to_unicode(code: dict[str, int]) -> bytes:
    pairs = [f"<{number:02x}> <{letter.encode('utf-16-be').hex()}>" for letter, number in code.items()]
    parts = [pairs[at : at + 100] for at in range(0, len(pairs), 100)]
    body = "\n".join(f"{len(part)} beginbfchar\n" + "\n".join(part) + "\nendbfchar" for part in parts)
    return f"1 begincodespacerange <00> <ff> endcodespacerange\n{body}\n".encode()


def packed_pdf(made: Made) -> bytes:
    """pikepdf: object streams and a cross-reference stream, linearized."""
    out = io.BytesIO()
    with pikepdf.open(io.BytesIO(reportlab_pdf(made, "Times-Roman"))) as pdf:
        pdf.save(out, object_stream_mode=pikepdf.ObjectStreamMode.generate, linearize=True, recompress_flate=True)
    return out.getvalue()


WRITERS: dict[str, Writer] = {
    "reader's fonts": reportlab_pdf,
    "plain": lambda made: reportlab_pdf(made, "Times-Roman", compress=0),
    "truetype": lambda made: reportlab_pdf(made, "Vera"),
    "composite": composite_pdf,
    "forms": form_pdf,
    "turned": lambda made: reportlab_pdf(made, rotate=90),
    "scan with text": lambda made: scan_pdf(made, ocr=True),
    "type 3": type3_pdf,
    "object streams": packed_pdf,
}
