"""Number and describe the letters of a document, as the programs that make PDFs do.

Each maker gives a face: how text becomes the codes of the font, and the font's objects. Regular and bold share codes.
Promises: PDFium reads the text that was written, by encoding, glyph names, character collection or ToUnicode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple

from DocsToKG.Sandbox.pdf.filters import Filter, unencoded
from DocsToKG.Sandbox.pdf.font_programs import truetype, type1
from DocsToKG.Sandbox.pdf.objects import Objects, literal
from DocsToKG.Sandbox.pdf.widths import WIDTHS

_PUNCTUATION = (
    "space", "exclam", "quotedbl", "numbersign", "dollar", "percent", "ampersand", "quotesingle", "parenleft",
    "parenright", "asterisk", "plus", "comma", "hyphen", "period", "slash", "zero", "one", "two", "three", "four",
    "five", "six", "seven", "eight", "nine", "colon", "semicolon", "less", "equal", "greater", "question", "at",
)  # fmt: skip
_LATER = ("bracketleft", "backslash", "bracketright", "asciicircum", "underscore", "grave")
_LAST = ("braceleft", "bar", "braceright", "asciitilde")
LIGATURES = {"ffi": "\ufb03", "ffl": "\ufb04", "ff": "\ufb00", "fi": "\ufb01", "fl": "\ufb02"}
_UNLIGATED = {sign: letters for letters, sign in LIGATURES.items()}


class Face(NamedTuple):
    """`string` writes text as a PDF string, in which `space` is a space; `fonts` are the entries of F1 and F2."""

    string: Callable[[str], bytes]
    fonts: bytes
    space: bytes = b" "


FontMaker = Callable[[Objects, Sequence[str], Random, Filter], Face]


def glyph_name(char: str) -> str:
    """The Adobe name of an ASCII character, else one made of its number."""
    code = ord(char)
    if char.isascii() and char.isalpha():
        return char
    for first, names in ((32, _PUNCTUATION), (91, _LATER), (123, _LAST)):
        if first <= code < first + len(names):
            return names[code - first]
    return f"uni{code:04X}" if code < 0x10000 else f"u{code:05X}"


_USUAL = [glyph_name(char) for char in (*map(chr, range(32, 127)), *LIGATURES.values())]


def standard(objects: Objects, chars: Sequence[str], chance: Random, packing: Filter) -> Face:
    """Helvetica, which every reader has, in the encoding of Windows; further letters take codes that it leaves free."""
    table, differences = _windows_codes(chars)
    encoding = b"/WinAnsiEncoding"
    if differences:
        encoding = b"<< /BaseEncoding /WinAnsiEncoding /Differences [%s] >>" % differences
    fonts = [
        objects.add(b"<< /Type /Font /Subtype /Type1 /BaseFont /%s /Encoding %s >>" % (name, encoding))
        for name in (b"Helvetica", b"Helvetica-Bold")
    ]
    if not table:
        return Face(_windows_string, _entries(fonts))
    return Face(
        lambda text: _windows_string(text if text.isascii() else text.translate(table)),
        _entries(fonts),
    )


@lru_cache(maxsize=8192)
def _windows_string(text: str) -> bytes:
    return literal(text.encode("cp1252", "replace"))


def _windows_codes(chars: Sequence[str]) -> tuple[dict[int, str], bytes]:
    foreign = [char for char in chars if not _in_windows(char)]
    taken = dict(zip(foreign, (*range(1, 10), *range(14, 32)), strict=False))
    differences = b" ".join(b"%d /%s" % (code, glyph_name(char).encode()) for char, code in taken.items())
    return {ord(char): chr(code) for char, code in taken.items()}, differences


def _in_windows(text: str) -> bool:
    try:
        text.encode("cp1252")
    except UnicodeEncodeError:
        return False
    return True


def latex(objects: Objects, chars: Sequence[str], chance: Random, packing: Filter) -> Face:
    """A subset of an embedded Type 1 font with codes of its own, ligatures and ToUnicode."""
    shown = [*chars, *LIGATURES.values()]
    codes = _codes(shown, chance)
    program, clear, private = _type1_program(codes)
    file = objects.add_stream(b"/Length1 %d /Length2 %d /Length3 524" % (clear, private), packing(program))
    fonts = _simple_fonts(objects, codes, b"/Type1", b"/FontFile %d 0 R" % file, _differences(codes), packing)
    table = {ord(char): chr(code) for char, code in codes.items()}

    def string(text: str) -> bytes:
        if "f" in text:
            for letters, sign in LIGATURES.items():
                text = text.replace(letters, sign)
        return literal(text.translate(table).encode("latin-1", "replace"))

    return Face(string, _entries(fonts), bytes((codes[" "],)))


def old_type1(objects: Objects, chars: Sequence[str], chance: Random, packing: Filter) -> Face:
    """An embedded Type 1 font without ToUnicode: only the names of its glyphs tell the letters."""
    codes = _codes(chars, chance)
    program, clear, private = _type1_program(codes)
    file = objects.add_stream(b"/Length1 %d /Length2 %d /Length3 524" % (clear, private), packing(program))
    fonts = _simple_fonts(objects, codes, b"/Type1", b"/FontFile %d 0 R" % file, _differences(codes), None)
    return Face(_by_table(codes), _entries(fonts))


def type3(objects: Objects, chars: Sequence[str], chance: Random, packing: Filter) -> Face:
    """Glyphs that are drawn by the file itself, as dvips does with bitmaps."""
    codes = _codes(chars, chance)
    glyph = objects.add_stream(b"", packing(b"500 0 50 0 450 700 d1 50 0 400 700 re f"))
    procedures = b" ".join(b"/a%d %d 0 R" % (code, glyph) for code in codes.values())
    names = b"<< /Type /Encoding /Differences [1 %s] >>" % b" ".join(b"/a%d" % code for code in codes.values())
    entries = (
        b"/FontBBox [0 -200 1000 800] /FontMatrix [0.001 0 0 0.001 0 0] /CharProcs << %s >> /Resources << >>"
        b" /Encoding %s /ToUnicode %d 0 R %s"
        % (procedures, names, _to_unicode(objects, codes, 1, packing), _widths(codes))
    )
    fonts = [objects.add(b"<< /Type /Font /Subtype /Type3 %s >>" % entries)] * 2
    return Face(_by_table(codes), _entries(fonts), bytes((codes[" "],)))


def simple_truetype(objects: Objects, chars: Sequence[str], chance: Random, packing: Filter) -> Face:
    """An embedded TrueType font with one byte a letter, as hexadecimal strings."""
    codes = _codes(chars, chance)
    file = _font_file(objects, chars, packing)
    fonts = _simple_fonts(objects, codes, b"/TrueType", b"/FontFile2 %d 0 R" % file, b"", packing)
    table = {ord(char): chr(code) for char, code in codes.items()}
    return Face(lambda text: b"<%s>" % text.translate(table).encode("latin-1").hex().encode(), _entries(fonts))


def composite(objects: Objects, chars: Sequence[str], chance: Random, packing: Filter) -> Face:
    """Type 0 over TrueType: the codes are the numbers of the font's own glyphs, two bytes each."""
    order = chance.sample(list(chars), len(chars))
    codes = {char: glyph for glyph, char in enumerate(order, start=1)}
    file = _font_file(objects, order, packing)
    descriptor = objects.add(_descriptor(b"/FontFile2 %d 0 R" % file, 4))
    widths = b" ".join(b"%d" % WIDTHS[char] for char in order)
    system = b"/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>"
    child = objects.add(
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /BCDEEE+Boxes %s /FontDescriptor %d 0 R /DW 1000"
        b" /W [1 [%s]] /CIDToGIDMap /Identity >>" % (system, descriptor, widths)
    )
    font = objects.add(
        b"<< /Type /Font /Subtype /Type0 /BaseFont /BCDEEE+Boxes /Encoding /Identity-H /DescendantFonts [%d 0 R]"
        b" /ToUnicode %d 0 R >>" % (child, _to_unicode(objects, codes, 2, packing))
    )
    table = {char: b"%04X" % code for char, code in codes.items()}
    return Face(lambda text: b"<" + b"".join(map(table.__getitem__, text)) + b">", _entries([font, font]))


def collection(name: bytes, ordering: bytes, cmap: bytes) -> FontMaker:
    """A font that is not embedded, of one of Adobe's East Asian character collections."""

    def make(objects: Objects, chars: Sequence[str], chance: Random, packing: Filter) -> Face:
        system = b"/CIDSystemInfo << /Registry (Adobe) /Ordering (%s) /Supplement 4 >>" % ordering
        descriptor = objects.add(_descriptor(b"", 6, name))
        # In all these collections the letters of ASCII come first.
        widths = b" ".join(b"%d" % WIDTHS[chr(code)] for code in range(32, 127))
        child = objects.add(
            b"<< /Type /Font /Subtype /CIDFontType0 /BaseFont /%s %s /FontDescriptor %d 0 R /DW 1000 /W [1 [%s]] >>"
            % (name, system, descriptor, widths)
        )
        font = objects.add(
            b"<< /Type /Font /Subtype /Type0 /BaseFont /%s-%s /Encoding /%s /DescendantFonts [%d 0 R] >>"
            % (name, cmap, cmap, child)
        )
        return Face(lambda text: b"<%s>" % text.encode("utf-16-be").hex().encode(), _entries([font, font]))

    return make


def _codes(chars: Sequence[str], chance: Random) -> dict[str, int]:
    """Codes from one up, in no order that could be guessed."""
    order = chance.sample(list(chars), min(len(chars), 255))
    if " " in order:  # its code is one that needs no escape in a string
        at = order.index(" ")
        order[at], order[0] = order[0], " "
    return {char: code for code, char in enumerate(order, start=1)}


def _by_table(codes: dict[str, int]) -> Callable[[str], bytes]:
    table = {ord(char): chr(code) for char, code in codes.items()}
    return lambda text: literal(text.translate(table).encode("latin-1", "replace"))


def _entries(fonts: Sequence[int]) -> bytes:
    return b"/F1 %d 0 R /F2 %d 0 R" % (fonts[0], fonts[1])


def _differences(codes: dict[str, int]) -> bytes:
    names = b" ".join(b"/" + glyph_name(char).encode() for char in codes)
    return b"/Encoding << /Type /Encoding /Differences [1 %s] >>" % names


def _widths(codes: dict[str, int]) -> bytes:
    widths = b" ".join(b"%d" % WIDTHS[char] for char in codes)
    return b"/FirstChar 1 /LastChar %d /Widths [%s]" % (len(codes), widths)


def _simple_fonts(
    objects: Objects, codes: dict[str, int], kind: bytes, file: bytes, encoding: bytes, packing: Filter | None
) -> list[int]:
    descriptor = objects.add(_descriptor(file, 4))
    named = b" /ToUnicode %d 0 R" % _to_unicode(objects, codes, 1, packing) if packing else b""
    font = b"<< /Type /Font /Subtype %s /BaseFont /ABCDEF+Boxes %s %s /FontDescriptor %d 0 R%s >>"
    number = objects.add(font % (kind, encoding, _widths(codes), descriptor, named))
    return [number, number]


def _type1_program(codes: Iterable[str]) -> tuple[bytes, int, int]:
    """With all letters of ASCII, so that most documents share one program."""
    return type1(tuple(sorted({*_USUAL, *map(glyph_name, codes)})))


def _font_file(objects: Objects, chars: Sequence[str], packing: Filter) -> int:
    program = truetype(len(chars), tuple(map(ord, chars)))
    return objects.add_stream(b"/Length1 %d" % len(program), packing(program))


def _descriptor(file: bytes, flags: int, name: bytes = b"ABCDEF+Boxes") -> bytes:
    return (
        b"<< /Type /FontDescriptor /FontName /%s /Flags %d /FontBBox [0 -200 1000 800] /ItalicAngle 0 /Ascent 800"
        b" /Descent -200 /CapHeight 700 /StemV 80 %s >>" % (name, flags, file)
    )


def _to_unicode(objects: Objects, codes: dict[str, int], size: int, packing: Filter | None) -> int:
    """The map from codes to letters (section 9.10.3)."""
    form = b"<%02X> <%s>" if size == 1 else b"<%04X> <%s>"
    pairs = [
        form % (code, _UNLIGATED.get(char, char).encode("utf-16-be").hex().encode()) for char, code in codes.items()
    ]
    blocks = [pairs[start : start + 100] for start in range(0, len(pairs), 100)]
    shown = b"\n".join(b"%d beginbfchar\n%s\nendbfchar" % (len(block), b"\n".join(block)) for block in blocks)
    last = b"FF" * size
    text = (
        b"/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n"
        b"/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def\n/CMapName /Adobe-Identity-UCS def\n"
        b"/CMapType 2 def\n1 begincodespacerange\n<%s> <%s>\nendcodespacerange\n%s\nendcmap\n"
        b"CMapName currentdict /CMap defineresource pop\nend\nend\n" % (b"00" * size, last, shown)
    )
    return objects.add_stream(b"", (packing or unencoded)(text))
