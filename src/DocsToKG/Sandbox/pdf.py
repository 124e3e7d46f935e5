"""Make small, real PDF files by hand (ISO 32000-1): two pages, text, XMP, and noise up to a wanted size.

Knows objects, the cross-reference table and string escapes. Does not know works or HTTP.
Promises: equal arguments give equal bytes; the file opens without repair; identifiers are in the XMP and on page one.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from DocsToKG.Sandbox.draw import stream

_ROW_BYTES = 256


@dataclass(frozen=True, slots=True)
class Paper:
    """What is printed. `doi` None leaves the file without any; `stamp` is a line such as `arXiv:2101.00001v1`."""

    title: str
    authors: tuple[str, ...]
    year: int
    doi: str | None
    stamp: str | None = None


def make_pdf(paper: Paper, *, size_bytes: int, key: str) -> bytes:
    """A file of about `size_bytes` (never below what the text needs); `key` seeds the noise that fills it."""
    bare = _assemble(_objects(paper, b""))
    rows = max(1, (size_bytes - len(bare)) // _ROW_BYTES)
    return _assemble(_objects(paper, stream("noise", key).randbytes(rows * _ROW_BYTES)))


def _objects(paper: Paper, noise: bytes) -> list[bytes]:
    rows = max(1, len(noise) // _ROW_BYTES)
    image = f"/Type /XObject /Subtype /Image /Width {_ROW_BYTES} /Height {rows} /ColorSpace /DeviceGray"
    return [
        b"<< /Type /Catalog /Pages 2 0 R /Metadata 8 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R 4 0 R] /Count 2 >>",
        _page(b"5 0 R", b"/Font << /F1 7 0 R >>"),
        _page(b"6 0 R", b"/XObject << /Im1 9 0 R >>"),
        _stream(b"", _first_page(paper)),
        _stream(b"", b"q 400 0 0 500 100 150 cm /Im1 Do Q\n"),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        _stream(b"/Type /Metadata /Subtype /XML", _xmp(paper)),
        _stream(image.encode() + b" /BitsPerComponent 8", noise),
        b"<< /Title " + _text(paper.title) + b" /Producer (DocsToKG sandbox) >>",
    ]


def _page(contents: bytes, resources: bytes) -> bytes:
    box = b"/MediaBox [0 0 595 842]"
    return (
        b"<< /Type /Page /Parent 2 0 R " + box + b" /Contents " + contents + b" /Resources << " + resources + b" >> >>"
    )


def _stream(entries: bytes, data: bytes) -> bytes:
    return b"<< " + entries + b" /Length %d >>\nstream\n" % len(data) + data + b"\nendstream"


def _first_page(paper: Paper) -> bytes:
    lines = [paper.title, ", ".join(paper.authors), str(paper.year)]
    lines += [f"https://doi.org/{paper.doi}"] if paper.doi else []
    lines += [paper.stamp] if paper.stamp else []
    lines += ["", "Abstract. This paper was written by nobody about nothing, so that software can be tried in peace."]
    shown = b"".join(_text(line) + b" Tj T*\n" for line in lines)
    return b"BT /F1 11 Tf 14 TL 50 780 Td\n" + shown + b"ET\n"


def _text(line: str) -> bytes:
    """A literal string (section 7.3.4.2); what the font cannot show becomes a question mark."""
    raw = line.encode("cp1252", "replace")
    return b"(" + raw.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") + b")"


def _xmp(paper: Paper) -> bytes:
    doi = escape(paper.doi) if paper.doi else ""
    identity = f"<dc:identifier>doi:{doi}</dc:identifier><prism:doi>{doi}</prism:doi>" if doi else ""
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>\n'
        '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\n'
        '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"'
        ' xmlns:prism="http://prismstandard.org/namespaces/basic/2.0/">\n'
        f'<dc:title><rdf:Alt><rdf:li xml:lang="x-default">{escape(paper.title)}</rdf:li></rdf:Alt></dc:title>\n'
        f"{identity}\n</rdf:Description></rdf:RDF></x:xmpmeta>\n"
        '<?xpacket end="w"?>'
    ).encode()


def _assemble(objects: list[bytes]) -> bytes:
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (len(objects) + 1, len(objects))
    out += b"startxref\n%d\n%%%%EOF\n" % start
    return bytes(out)
