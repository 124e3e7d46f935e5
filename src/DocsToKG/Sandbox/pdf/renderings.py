"""Write a document as different programs would: fonts, text operators, filters and structure of their files.

Each rendering is data; `written` makes a file from pages. Knows content streams, images, forms, structure trees.
Promises: equal documents give equal bytes; PDFium extracts the text of every rendering but the bare scan.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from xml.sax.saxutils import escape

from DocsToKG.Sandbox.pdf import fonts
from DocsToKG.Sandbox.pdf.document import Document
from DocsToKG.Sandbox.pdf.filters import Encoded, Filter, ascii85, flate, lzw, predicted, stored, unencoded
from DocsToKG.Sandbox.pdf.fonts import Face, FontMaker
from DocsToKG.Sandbox.pdf.layout import ARTIFACT, Page, Span, laid_out, turned
from DocsToKG.Sandbox.pdf.objects import Objects, text_string
from DocsToKG.Sandbox.pdf.widths import text_width
from DocsToKG.Sandbox.seeded_random import stream

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff][\u0590-\u08ff '\"()-]*")
_MIRRORED = str.maketrans("()", ")(")
_ROW_BYTES = 256
_PIXELS = (1240, 1754)  # of a scanned page, at 150 dots an inch


@dataclass(frozen=True, slots=True)
class Rendering:
    """`words` is how a line is shown: whole, by gaps without spaces, kerned inside words, or word by word."""

    maker: FontMaker
    producer: str
    words: str = "whole"
    packing: Filter = flate
    packed_objects: bool = False
    tagged: bool = False
    forms: bool = False
    image: bool = False  # a picture of the page
    text: str = "shown"  # shown | invisible | none
    columns: int = 1
    language: str = "en"
    metadata: str = "all"  # what XMP tells: all | title | nothing
    any_script: bool = True


RENDERINGS = {
    "plain": Rendering(fonts.standard, "DocsToKG sandbox", any_script=False),
    "latex": Rendering(fonts.latex, "pdfTeX-1.40.26", words="gaps", metadata="nothing", any_script=False),
    "word": Rendering(fonts.composite, "Microsoft® Word for Microsoft 365", metadata="title"),
    "indesign": Rendering(
        fonts.simple_truetype,
        "Adobe PDF Library 17.0",
        words="kerned",
        packed_objects=True,
        any_script=False,
    ),
    "scan": Rendering(fonts.standard, "Canon iR-ADV C5535", image=True, text="none", metadata="nothing"),
    "ocr": Rendering(
        fonts.composite, "Tesseract 5.3.4", words="single", image=True, text="invisible", metadata="nothing"
    ),
    "tagged": Rendering(fonts.composite, "LibreOffice 24.2", tagged=True, metadata="title"),
    "rtl": Rendering(fonts.composite, "Microsoft® Word 2016", language="he", metadata="title"),
    "arabic": Rendering(fonts.composite, "Adobe InDesign 18.0", language="ar", packed_objects=True),
    "cjk": Rendering(
        fonts.collection(b"STSong-Light", b"GB1", b"UniGB-UTF16-H"), "Founder PDF 5.0", language="zh", metadata="title"
    ),
    "japanese": Rendering(
        fonts.collection(b"KozMinPro-Regular", b"Japan1", b"UniJIS-UTF16-H"), "J-STAGE PDF", language="ja"
    ),
    "columns": Rendering(fonts.latex, "pdfTeX-1.40.25", columns=2, any_script=False),
    "forms": Rendering(fonts.standard, "Apache FOP 2.9", packing=predicted, forms=True, any_script=False),
    "type1": Rendering(
        fonts.old_type1, "Acrobat Distiller 4.05", packing=lzw, words="kerned", metadata="nothing", any_script=False
    ),
    "type3": Rendering(fonts.type3, "GNU Ghostscript 6.51", words="gaps", metadata="nothing", any_script=False),
    "ascii85": Rendering(fonts.standard, "ReportLab PDF Library", packing=ascii85, any_script=False),
    "unencoded": Rendering(fonts.simple_truetype, "iText 2.1.7", packing=unencoded, any_script=False),
}


def written(document: Document, rendering: str, *, key: str, size_bytes: int = 0) -> bytes:
    """The file of a document; a picture on its last page fills it up to about `size_bytes`."""
    return _Writer(document, RENDERINGS[rendering], key).file(size_bytes)


class _Writer:
    def __init__(self, document: Document, how: Rendering, key: str) -> None:
        self._document = document
        self._how = how
        self._key = key
        self._objects = Objects()
        self._pages = laid_out(document)
        chars = sorted(set(" ".join([span.text for page in self._pages for span in page.spans])) | {" "})
        packing = flate if how.packing is lzw else how.packing
        self._face: Face = how.maker(self._objects, chars, stream("font", key), packing)
        self._structure: list[list[tuple[int, str]]] = []

    def file(self, size_bytes: int) -> bytes:
        objects = self._objects
        tree, noise = objects.reserve(), objects.reserve()
        kids = [self._page(number, page, tree, noise) for number, page in enumerate(self._pages)]
        shown = b" ".join(b"%d 0 R" % kid for kid in kids)
        objects.put(tree, b"<< /Type /Pages /Kids [%s] /Count %d >>" % (shown, len(kids)))
        root = objects.add(b"<< /Type /Catalog /Pages %d 0 R%s >>" % (tree, self._catalog(kids)))
        info = objects.add(self._info())
        self._put_noise(noise, size_bytes - objects.size)
        return objects.packed(root, info) if self._how.packed_objects else objects.with_table(root, info)

    def _put_noise(self, number: int, free_bytes: int) -> None:
        rows = max(1, free_bytes // _ROW_BYTES)
        data = stream("noise", self._key).randbytes(rows * _ROW_BYTES)
        head = b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8"
        self._objects.put_stream(number, head % (_ROW_BYTES, rows), stored(data))

    def _page(self, number: int, page: Page, tree: int, noise: int) -> int:
        objects, how = self._objects, self._how
        pictures, drawn = b"", b""
        if how.image:
            pictures = b"/Im0 %d 0 R" % self._picture(number)
            drawn = b"q %g 0 0 %g 0 0 cm /Im0 Do Q\n" % self._document.size
        if number + 1 == len(self._pages):
            pictures += b"/Im1 %d 0 R" % noise
            drawn += b"q 60 0 0 20 300 20 cm /Im1 Do Q\n"
        text = self._text(page, number) if how.text != "none" else b""
        if how.forms and text:
            pictures += b"/Fm0 %d 0 R" % self._nested(page, number)
            text = b"q /Fm0 Do Q\n"
        contents = objects.add_stream(b"", how.packing(drawn + text))
        resources = self._resources(pictures)
        rotated = b" /Rotate %d" % self._document.rotate if self._document.rotate else b""
        parents = b" /StructParents %d" % number if how.tagged else b""
        return objects.add(
            b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 %g %g]%s%s /Contents %d 0 R %s >>"
            % (tree, *self._document.size, rotated, parents, contents, resources)
        )

    def _resources(self, pictures: bytes) -> bytes:
        return b"/Resources << /Font << %s >> /XObject << %s >> >>" % (self._face.fonts, pictures)

    def _picture(self, number: int) -> int:
        entries = b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 1"
        return self._objects.add_stream(entries % _PIXELS, scanned_page(number % 4))

    def _nested(self, page: Page, number: int) -> int:
        """A form XObject that draws two others, each with half of the page."""
        half = len(page.spans) // 2
        inner = [self._form(self._lines(spans), b"") for spans in (page.spans[:half], page.spans[half:])]
        return self._form(b"/Fm1 Do /Fm2 Do", b"/Fm1 %d 0 R /Fm2 %d 0 R" % (inner[0], inner[1]))

    def _form(self, content: bytes, inner: bytes) -> int:
        head = b"/Type /XObject /Subtype /Form /BBox [0 0 %g %g] " % self._document.size
        return self._objects.add_stream(head + self._resources(inner), self._how.packing(content))

    def _text(self, page: Page, number: int) -> bytes:
        if not self._how.tagged:
            return self._lines(page.spans)
        content, found = [], list[tuple[int, str]]()
        for (block, role), spans in groupby(page.spans, key=lambda span: (span.block, span.role)):
            opening = b"/Artifact BMC\n"
            if block != ARTIFACT:
                opening = b"/%s << /MCID %d >> BDC\n" % (role.encode(), len(found))
                found.append((len(found), role))
            content.append(opening + self._lines(list(spans)) + b"EMC\n")
        self._structure.append(found)
        return b"".join(content)

    def _lines(self, spans: Sequence[Span]) -> bytes:
        out = [b"BT\n3 Tr\n" if self._how.text == "invisible" else b"BT\n"]
        show = _SHOWN[self._how.words]
        font: tuple[bool, float] | None = None
        for span in spans:
            if font != (span.bold, span.size):
                font = (span.bold, span.size)
                out.append(b"/F%d %g Tf\n" % (1 + span.bold, span.size))
            out.append(show(self._face, span))
        out.append(b"ET\n")
        return b"".join(out)

    def _catalog(self, kids: Sequence[int]) -> bytes:
        entries = b""
        if self._how.metadata != "nothing":
            packet = _xmp(self._document, named=self._how.metadata == "all")
            number = self._objects.add_stream(b"/Type /Metadata /Subtype /XML", unencoded(packet))
            entries = b" /Metadata %d 0 R" % number
        if self._how.tagged:
            language = text_string(self._document.language)
            entries += b" /MarkInfo << /Marked true >> /Lang %s /StructTreeRoot %d 0 R" % (language, self._tree(kids))
        return entries

    def _tree(self, kids: Sequence[int]) -> int:
        objects = self._objects
        root, top = objects.reserve(), objects.reserve()
        parents, all_elements = [], list[int]()
        for page, found in zip(kids, self._structure, strict=True):
            element = b"<< /Type /StructElem /S /%s /P %d 0 R /Pg %d 0 R /K %d >>"
            elements = [objects.add(element % (role.encode(), top, page, number)) for number, role in found]
            parents.append(b"[%s]" % _references(elements))
            all_elements += elements
        numbers = b" ".join(b"%d %s" % pair for pair in enumerate(parents))
        objects.put(top, b"<< /Type /StructElem /S /Document /P %d 0 R /K [%s] >>" % (root, _references(all_elements)))
        objects.put(
            root,
            b"<< /Type /StructTreeRoot /K %d 0 R /ParentTree << /Nums [%s] >> /ParentTreeNextKey %d >>"
            % (top, numbers, len(kids)),
        )
        return root

    def _info(self) -> bytes:
        document = self._document
        entries_of_info = {"Title": document.title, "Author": ", ".join(document.authors), "Subject": document.subject}
        if self._how.metadata == "nothing":
            entries_of_info = {}
        entries_of_info["Producer"] = self._how.producer
        entries = [b"/%s %s" % (name.encode(), text_string(value)) for name, value in entries_of_info.items() if value]
        return b"<< %s >>" % b" ".join(entries)


def _references(numbers: Sequence[int]) -> bytes:
    return b" ".join(b"%d 0 R" % number for number in numbers)


def _matrix(span: Span, x: float) -> bytes:
    if not span.angle:
        return b"1 0 0 1 %.2f %.2f Tm " % (x, span.y)
    cosine, sine = turned(span.angle)
    return b"%g %g %g %g %.2f %.2f Tm " % (cosine, sine, -sine, cosine, x, span.y)


def _whole(face: Face, span: Span) -> bytes:
    text = span.text if span.text.isascii() else visual(span.text)
    return _matrix(span, span.x) + face.string(text) + b" Tj\n"


def _by_gaps(face: Face, span: Span) -> bytes:
    text = span.text if span.text.isascii() else visual(span.text)
    words = face.string(text).replace(face.space, b") -278 (")
    return _matrix(span, span.x) + b"[" + words + b"] TJ\n"


def _kerned(face: Face, span: Span) -> bytes:
    text = span.text if span.text.isascii() else visual(span.text)
    whole = face.string(text)
    if whole.startswith(b"<"):  # hexadecimal, two digits a letter
        digits = whole[1:-1]
        shown = b"<" + b"> 9 <".join([digits[at : at + 10] for at in range(0, len(digits), 10)]) + b">"
    else:
        shown = b" 9 ".join([face.string(text[at : at + 5]) for at in range(0, len(text), 5)])
    return _matrix(span, span.x) + b"[" + shown + b"] TJ\n"


def _singly(face: Face, span: Span) -> bytes:
    x = span.x
    out = []
    for word in re.findall(r"\S+ *| +", visual(span.text)):
        out.append(_matrix(span, x) + face.string(word) + b" Tj\n")
        x += text_width(word, span.size)
    return b"".join(out)


_SHOWN = {"whole": _whole, "gaps": _by_gaps, "kerned": _kerned, "single": _singly}


def visual(text: str) -> str:
    """Letters in the order in which they stand on paper from left to right."""
    if text.isascii() or not _RIGHT_TO_LEFT.search(text):
        return text
    runs, at = [], 0
    for match in _RIGHT_TO_LEFT.finditer(text):
        runs += [text[at : match.start()], match[0][::-1].translate(_MIRRORED)]
        at = match.end()
    runs.append(text[at:])
    first = next((char for char in text if char.isalpha()), "")
    return "".join(reversed(runs) if "\u0590" <= first <= "\u08ff" else runs)


@lru_cache(maxsize=8)
def scanned_page(number: int) -> Encoded:
    """A picture of lines of something dark; what a scanner makes of text, as far as programs without OCR can see."""
    width, height = _PIXELS[0] // 8, _PIXELS[1]
    chance = stream("scan", number)
    rows = [bytes(255 - (chance.getrandbits(8) & chance.getrandbits(8)) for _ in range(width)) for _ in range(5)]
    blank = b"\xff" * width
    inked = [rows[y % 5] if y % 28 < 14 and 90 < y < height - 90 - 40 * number else blank for y in range(height)]
    return flate(b"".join(inked))


def _xmp(document: Document, *, named: bool) -> bytes:
    doi = escape(document.doi) if document.doi and named else ""
    identity = f"<dc:identifier>doi:{doi}</dc:identifier><prism:doi>{doi}</prism:doi>" if doi else ""
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n'
        '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"'
        ' xmlns:prism="http://prismstandard.org/namespaces/basic/2.0/">\n'
        f'<dc:title><rdf:Alt><rdf:li xml:lang="x-default">{escape(document.title)}</rdf:li></rdf:Alt></dc:title>\n'
        f"{identity}\n</rdf:Description></rdf:RDF></x:xmpmeta>\n"
        '<?xpacket end="w"?>'
    ).encode()
