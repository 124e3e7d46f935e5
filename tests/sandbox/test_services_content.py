"""Hosts that hold papers: every style of landing page leads to the file, and archives answer as archives do."""

from __future__ import annotations

import re
from base64 import b32encode
from hashlib import md5, sha1, sha256
from html import unescape
from urllib.parse import quote, unquote, urljoin

import pytest

from DocsToKG.Sandbox.publishers import CLOSED_PUBLISHER, GONE_PUBLISHER, OPEN_PUBLISHERS, REPOSITORIES

BUCKET = "https://pmc-oa-opendata.s3.amazonaws.com"
POINTERS = {
    "citation": r'name="citation_pdf_url" content="([^"]+)"',
    "relative": r'name="citation_pdf_url" content="([^"]+)"',
    "dspace": r'name="citation_pdf_url" content="([^"]+)"',
    "link": r'<link rel="alternate" type="application/pdf" href="([^"]+)"',
    "ojs": r'class="obj_galley_link pdf" href="([^"]+)"',
    "anchor": r'<a href="([^"]+)" title="Download PDF">',
    "jsonld": r'"contentUrl": "([^"]+)"',
    "eprints": r'name="eprints.document_url" content="([^"]+)"',
}


def _pointer(page, copy):
    """The PDF's address as a reader of the page would find it."""
    style = copy.publisher.style
    if style == "signposting":
        return re.search(r'<([^>]+)>; rel="item"; type="application/pdf"', page.headers["Link"])[1]
    base = re.search(r'<base href="([^"]+)"', page.text)
    found = unescape(re.search(POINTERS[style], page.text)[1])
    url = urljoin(base[1] if base else copy.landing_url, found)
    return url.replace("/view/", "/download/") if style == "ojs" else url


@pytest.mark.parametrize("publisher", [*OPEN_PUBLISHERS, *REPOSITORIES], ids=lambda publisher: publisher.style)
def test_every_style_of_landing_page_leads_to_the_paper(calm, get, first_with, publisher):
    """RES-15: citation tags, link elements, anchors and their kin."""
    kind = "repository" if publisher in REPOSITORIES else "publisher"
    work, copy = first_with(calm, kind, lambda w, c: c.publisher is publisher)
    page = get(copy.landing_url)
    if publisher.style != "direct":
        assert f'name="citation_doi" content="{work.doi}"' in unescape(page.text)
        assert _pointer(page, copy) == copy.pdf_url
    file = get(copy.pdf_url)
    assert (file.status, file.headers["Content-Type"]) == (200, "application/pdf")
    assert file.body == calm.world.acceptable_files(work)[copy.version]


def test_the_supplement_a_page_offers_is_not_the_paper(calm, get, first_with):
    _, copy = first_with(calm, "publisher", lambda w, c: c.publisher.style == "citation")
    link = re.search(r'href="([^"]+-supp.pdf)"', get(copy.landing_url).text)[1]
    beside = get(urljoin(copy.landing_url, link))
    assert beside.status == 200
    assert beside.body.startswith(b"%PDF-")
    assert beside.body != get(copy.pdf_url).body


def test_a_router_page_hides_the_address_in_a_form(calm, get, first_with):
    work, copy = first_with(calm, "publisher", lambda w, c: c.publisher.link_hub)
    router = get(get(f"https://doi.org/{quote(work.doi, safe='')}").headers["Location"])
    hidden = re.search(r'name="redirectURL" value="([^"]+)"', router.text)[1]
    assert unquote(hidden) == copy.landing_url


def test_a_paywall_shows_a_pdf_address_and_does_not_keep_its_word(calm, get, first_with):
    for odd in (1, 0):
        _, copy = first_with(
            calm, "publisher", lambda w, c, odd=odd: c.publisher is CLOSED_PUBLISHER and w.index % 2 == odd
        )
        assert "Get access" in get(copy.landing_url).text
        refused = get(copy.pdf_url)
        assert refused.status == (403 if odd else 302)
    assert "login" in get(refused.headers["Location"]).text


def test_a_house_that_is_gone_answers_404_and_lives_on_in_the_archive(calm, get, first_with):
    work, copy = first_with(calm, "publisher", lambda w, c: c.publisher is GONE_PUBLISHER)
    assert get(copy.pdf_url).status == get(copy.landing_url).status == 404
    assert work.reachable_by == ("wayback",)
    assert get(work.copy("wayback").pdf_url).body == calm.world.acceptable_files(work)["publishedVersion"]


def test_arxiv_serves_pages_and_files_on_both_hosts(calm, get, first_with):
    """RES-11: with and without version, old style and new."""
    for old in (True, False):
        work, copy = first_with(calm, "arxiv", lambda w, c, old=old: ("/" in w.arxiv_id) == old)
        for name in (work.arxiv_id, f"{work.arxiv_id}v{work.arxiv_versions}"):
            for host in ("arxiv.org", "export.arxiv.org"):
                assert get(f"https://{host}/pdf/{name}").body == calm.world.file_of(work, copy)
        assert f"https://arxiv.org/pdf/{work.arxiv_id}" in get(copy.landing_url).text
    assert get(f"https://arxiv.org/pdf/{work.arxiv_id}v9").status == 404
    moved = get(f"https://arxiv.org/pdf/{work.arxiv_id}.pdf")
    assert (moved.status, moved.headers["Location"]) == (301, f"https://arxiv.org/pdf/{work.arxiv_id}")


def test_the_pmc_bucket_lists_describes_and_serves_with_a_checksum(calm, get, first_with):
    """RES-12."""
    work, copy = first_with(calm, "pmc")
    listing = get(f"{BUCKET}/?list-type=2&prefix={work.pmcid}.&delimiter=/").text
    assert f"<Prefix>{work.pmcid}.1/</Prefix>" in listing
    about = get(f"{BUCKET}/metadata/{work.pmcid}.1.json").json
    assert (about["pmcid"], about["doi"]) == (work.pmcid, work.doi)
    file = get(copy.pdf_url)
    digest = md5(file.body, usedforsecurity=False).hexdigest()
    assert about["pdf_url"] == f"s3://pmc-oa-opendata/{work.pmcid}.1/{work.pmcid}.1.pdf?md5={digest}"
    assert file.headers["ETag"] == f'"{digest}"'
    assert "<Prefix>" not in get(f"{BUCKET}/?list-type=2&prefix=PMC1.&delimiter=/").text
    assert get(f"{BUCKET}/metadata/PMC1.1.json").status == 404


def test_pmc_pages_give_programs_no_pdf(calm, get, first_with):
    work, _ = first_with(calm, "pmc")
    moved = get(f"https://www.ncbi.nlm.nih.gov/pmc/articles/{work.pmcid[3:]}")
    assert moved.headers["Location"] == f"https://pmc.ncbi.nlm.nih.gov/articles/{work.pmcid}/"
    page = get(moved.headers["Location"])
    link = re.search(r'name="citation_pdf_url" content="([^"]+)"', page.text)[1]
    assert "Preparing to download" in get(link).text
    assert get("https://www.ncbi.nlm.nih.gov/pmc/utils/oa/oa.fcgi?id=PMC1").status == 404, "retired"


def test_the_id_converter_reports_unknown_ids_in_their_place(calm, get, first_with):
    work, _ = first_with(calm, "pmc")
    ids = quote(f"{work.pmcid},{work.pmid},10.9999/nothing", safe="")
    records = get(f"https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/?ids={ids}&format=json").json["records"]
    assert [record.get("pmcid") for record in records] == [work.pmcid, work.pmcid, None]
    assert records[2]["status"] == "error"


def test_europe_pmc_renders_the_open_articles(calm, get, first_with):
    work, copy = first_with(calm, "europepmc")
    other = f"https://europepmc.org/backend/ptpmcrender.fcgi?accid={work.pmcid}&blobtype=pdf"
    assert get(copy.pdf_url).body == get(other).body == calm.world.acceptable_files(work)["publishedVersion"]
    assert get("https://europepmc.org/articles/PMC1?pdf=render").status == 404


def test_the_capture_index_names_the_stored_file_by_its_digest(calm, get, first_with):
    work, copy = first_with(calm, "wayback")
    url = quote(work.copy("publisher").pdf_url, safe="")
    rows = get(f"https://web.archive.org/cdx/search/cdx?url={url}&output=json&filter=statuscode:200").json
    assert rows[0][:3] == ["urlkey", "timestamp", "original"]
    [row] = rows[1:]
    body = get(f"https://web.archive.org/web/{row[1]}id_/{row[2]}")
    assert row[5] == b32encode(sha1(body.body, usedforsecurity=False).digest()).decode()
    assert body.headers["Memento-Datetime"]
    assert body.headers["X-Archive-Src"]
    assert sha256(body.body).hexdigest() == sha256(calm.world.file_of(work, copy)).hexdigest()
    plain = get(f"https://web.archive.org/cdx/search/cdx?url={url}&limit=-1").text
    assert plain.split()[1] == row[1]


def test_replay_moves_to_the_nearest_capture_and_has_no_others(calm, get, first_with):
    work, _ = first_with(calm, "wayback")
    original = work.copy("publisher").pdf_url
    moved = get(f"https://web.archive.org/web/20240101000000id_/{original}")
    assert moved.status == 302
    assert moved.headers["X-Archive-Redirect-Reason"].startswith("found capture at")
    assert get(moved.headers["Location"]).body.startswith(b"%PDF-")
    framed = get(moved.headers["Location"].replace("id_/", "/"))
    assert b"iframe" in framed.body, "without id_ the archive frames a PDF"
    missing = get("https://web.archive.org/web/20240101000000id_/https://nowhere.example/a.pdf")
    assert (missing.status, missing.headers["Memento-Datetime"]) == (404, None)
    assert get("https://web.archive.org/cdx/search/cdx?url=nowhere.example&output=json").json == []
    known = get(f"https://archive.org/wayback/available?url={quote(original, safe='')}").json
    assert known["archived_snapshots"]["closest"]["available"] is True
