"""Publishers and repositories: their hosts, and how their addresses and pages are built.

A publisher is data. `{n}` in a pattern is the serial number of a work. `style` names the way a landing page points
to its PDF; `services/publishers` and `services/pages` make the pages. All names are invented.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SERIAL_BASE = 1_000_000
PRIVATE_NAME = "intranet.sandbox.example"
PRIVATE_PLACES = (
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.5/file.pdf",
    "http://localhost/file.pdf",
    f"https://{PRIVATE_NAME}/file.pdf",
)


@dataclass(frozen=True, slots=True)
class Publisher:
    """`state` is open, closed (paywall) or gone; robots are obeyed only where the rules say so."""

    host: str
    name: str
    style: str
    landing: str
    pdf: str
    state: str = "open"
    robots: str = "allow"  # allow | disallow | down
    crawl_delay_s: float = 0.0
    link_hub: str | None = None  # a page on another host that stands before the landing page
    cache_control: str | None = None

    def landing_url(self, serial: int) -> str:
        return f"https://{self.host}{self.landing.format(n=serial)}"

    def pdf_url(self, serial: int) -> str:
        return f"https://{self.host}{self.pdf.format(n=serial)}"

    def first_url(self, serial: int) -> str:
        """Where a DOI leads."""
        return self.link_hub.format(n=serial) if self.link_hub else self.landing_url(serial)


OPEN_PUBLISHERS = (
    Publisher("www.openshelf.example", "Open Shelf", "citation", "/article?id={n}",
              "/article/file?id={n}&type=printable", cache_control="public, max-age=3600"),
    Publisher("link.meridianpress.example", "Meridian Press", "link", "/article/{n}", "/content/pdf/{n}.pdf",
              cache_control="no-cache"),
    Publisher("journals.collegium.example", "Collegium", "ojs", "/index.php/jc/article/view/{n}",
              "/index.php/jc/article/download/{n}/1"),
    Publisher("onlinelibrary.harwick.example", "Harwick", "anchor", "/doi/full/{n}", "/doi/pdf/{n}"),
    Publisher("www.tidewater-science.example", "Tidewater", "jsonld", "/papers/{n}", "/papers/{n}/download"),
    Publisher("academic.brightquill.example", "Brightquill", "relative", "/jbq/article/{n}",
              "/jbq/article-pdf/{n}?v=1&dl=1", cache_control="private, max-age=60"),
    Publisher("www.lumensciences.example", "Lumen", "citation", "/science/article/pii/{n}",
              "/science/article/pii/{n}/pdfft", link_hub="https://linkinghub.lumensciences.example/retrieve/pii/{n}"),
    Publisher("papers.smallpress.example", "Small Press", "direct", "/vol/{n}.pdf", "/vol/{n}.pdf"),
)  # fmt: skip
CLOSED_PUBLISHER = Publisher(
    "www.gatehouse.example", "Gatehouse", "paywall", "/doi/abs/{n}", "/doi/pdf/{n}", state="closed"
)  # fmt: skip
GONE_PUBLISHER = Publisher(
    "www.vanished-letters.example", "Vanished Letters", "gone", "/issue/{n}.html", "/issue/{n}.pdf", state="gone"
)
DISALLOWING_PUBLISHER = Publisher(
    "www.walledgarden.example", "Walled Garden", "citation", "/article/{n}", "/article/{n}.pdf", robots="disallow"
)
ROBOTS_DOWN_PUBLISHER = Publisher(
    "www.flickering.example", "Flickering", "citation", "/article/{n}", "/article/{n}.pdf", robots="down"
)
SLOW_PUBLISHER = Publisher(
    "www.slowlane.example", "Slow Lane", "citation", "/article/{n}", "/article/{n}.pdf", crawl_delay_s=1.0
)
PUBLISHERS = (
    *OPEN_PUBLISHERS,
    CLOSED_PUBLISHER,
    GONE_PUBLISHER,
    DISALLOWING_PUBLISHER,
    ROBOTS_DOWN_PUBLISHER,
    SLOW_PUBLISHER,
)
REPOSITORIES = (
    Publisher("eprints.fenwick.example", "Fenwick ePrints", "eprints", "/{n}/", "/{n}/1/paper.pdf"),
    Publisher(
        "dspace.aldmoor.example", "Aldmoor DSpace", "dspace", "/handle/1721.1/{n}", "/bitstream/1721.1/{n}/paper.pdf"
    ),
    Publisher(
        "research.ostmark.example", "Ostmark Research", "signposting", "/records/{n}", "/records/{n}/files/paper.pdf"
    ),
)
BY_HOST = {publisher.host: publisher for publisher in (*PUBLISHERS, *REPOSITORIES)}

_SERIAL = re.compile(r"(?<!\d)[1-9]\d{6,}(?!\d)")


def indexes_in(text: str) -> list[int]:
    """The indexes of works that an address or a DOI may stand for: its long numbers, less the base."""
    return [int(run) - SERIAL_BASE for run in _SERIAL.findall(text[:2048]) if len(run) < 16]
