"""Is this file the full text of an article in JATS?

Reads the XML once, as a stream: no tree is built, no entity is expanded, nothing is fetched. Knows where JATS keeps
ids, title and body. Promises: bounded memory and a bounded number of elements; a file that lost its end never passes;
an abstract alone is not a paper.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.parsers.expat import ExpatError, ParserCreate

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.dois import find_dois
from DocsToKG.ContentDownload.validation.page_kinds import HEAD_BYTES, classify_body
from DocsToKG.ContentDownload.validation.report import TextFacts
from DocsToKG.ContentDownload.validation.source import Source, open_source

# A scanned article has a body too, with a line about its page images in it. The shortest letters are longer.
MIN_BODY_CHARS = 300

_CHUNK = 64 * 1024
_MAX_DEPTH = 500
_MAX_TAG_BYTES = 1 << 20  # a tag or comment that does not end is read again with every piece that comes
_MAX_ELEMENTS = 1_000_000  # the largest articles, with all their tables, have a tenth of it
_VALUE_CHARS = 2_000
_ID = ("front", "article-meta", "article-id")
_TITLE = ("front", "article-meta", "title-group", "article-title")


def prove_xml(source: Source, *, url: str | None = None, headers: Mapping[str, str] | None = None) -> TextFacts:
    """Raise `CandidateRejected` with the reason unless the file is a whole article with its text."""
    with open_source(source) as file:
        head = file.read(HEAD_BYTES)
        if not head:
            raise CandidateRejected(Reason.EMPTY_BODY, "no bytes came")
        # The bytes alone are asked: some servers call every text they send a page.
        page_kind = classify_body(head, url=url, headers=headers)
        if page_kind is not None:
            raise CandidateRejected(page_kind, "a web page, not an article in XML")
        reader = _Reader()
        file.seek(0)
        while chunk := file.read(_CHUNK):
            reader.feed(chunk)
    return reader.end()


class _Reader:
    """Follows one article through the stream; of a set of articles, the first."""

    def __init__(self) -> None:
        self._path: list[str] = []
        self._article: int | None = None  # the depth at which the article's own parts lie
        self._elements = 0
        self._chars = 0
        self._body_seen = False
        self._kind = ""
        self._ids: dict[str, str] = {}
        self._title = ""
        self._parser = ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        # With a default handler expat leaves entities of the file's own making unexpanded.
        self._parser.DefaultHandler = lambda data: None
        self._parser.buffer_text = True
        self._fed = 0

    def feed(self, chunk: bytes) -> None:
        try:
            self._parser.Parse(chunk, False)
        except (ExpatError, ValueError, LookupError) as error:
            raise CandidateRejected(Reason.UNEXPECTED_CT, f"not well-formed XML: {error}"[:200]) from None
        self._fed += len(chunk)
        if self._fed - self._parser.CurrentByteIndex > _MAX_TAG_BYTES:
            raise CandidateRejected(Reason.TOO_LARGE, "a tag longer than any article has")

    def end(self) -> TextFacts:
        try:
            self._parser.Parse(b"", True)
        except ExpatError:
            raise CandidateRejected(Reason.TRUNCATED, "the XML has no end") from None
        if self._chars < MIN_BODY_CHARS:
            what = f"a body of {self._chars} characters" if self._body_seen else "no body"
            raise CandidateRejected(Reason.NO_FULL_TEXT, f"the XML has {what}")
        pmcid = (self._ids.get("pmcid") or self._ids.get("pmc") or "").strip().upper().removeprefix("PMC")
        return TextFacts(
            form="xml",
            chars=self._chars,
            title=" ".join(self._title.split()) or None,
            doi_declared=find_dois(self._ids.get("doi", "")),
            pmid=self._ids.get("pmid", "").strip() or None,
            pmcid=f"PMC{pmcid}" if pmcid.isascii() and pmcid.isdigit() else None,
        )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self._elements += 1
        if len(self._path) >= _MAX_DEPTH or self._elements > _MAX_ELEMENTS:
            raise CandidateRejected(Reason.TOO_LARGE, "more elements than any article has")
        if not self._path and name not in ("article", "pmc-articleset"):
            raise CandidateRejected(Reason.UNEXPECTED_CT, f"the XML is no article, its root is <{name[:40]}>")
        self._path.append(name)
        if name == "article" and self._article is None and len(self._path) <= 2:
            self._article = len(self._path)
        where = self._where()
        self._body_seen = self._body_seen or where == ("body",)
        if where == _ID:
            # Each kind of id once: what follows under the same name is another article's.
            kind = attributes.get("pub-id-type", "").lower()[:20]
            self._kind = "" if kind in self._ids or len(self._ids) > 20 else kind

    def _end(self, name: str) -> None:
        if len(self._path) == self._article:
            self._article = _MAX_DEPTH + 1  # the first article of the set has ended
        self._path.pop()

    def _text(self, data: str) -> None:
        where = self._where()
        if where[:1] == ("body",):
            self._chars += sum(map(len, data.split()))
        elif where == _ID and self._kind:
            self._ids[self._kind] = (self._ids.get(self._kind, "") + data)[:_VALUE_CHARS]
        elif where[:4] == _TITLE:
            self._title = (self._title + data)[:_VALUE_CHARS]

    def _where(self) -> tuple[str, ...]:
        """The place inside the article, as far down as it matters."""
        return () if self._article is None else tuple(self._path[self._article : self._article + 4])
