"""A stand-in supports what it is asked, or refuses it: it never answers 200 to what it ignores."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest

WORKS = "https://api.openalex.org/works"
CROSSREF = "https://api.crossref.org/works"
ARXIV = "https://export.arxiv.org/api/query"
EUROPE = "https://www.ebi.ac.uk/europepmc/webservices/rest/search"
CDX = "https://web.archive.org/cdx/search/cdx"
S2 = "https://api.semanticscholar.org/graph/v1/paper"


@pytest.mark.parametrize(
    "url",
    [
        f"{WORKS}?group_by=authorships.author.id",
        f"{WORKS}?sort=cited_by_count:desc",
        f"{WORKS}?select=id,nonsense",
        f"{WORKS}?is_oa=true",
        f"{WORKS}?filter=doi:{'|'.join(f'10.5555/{n:090}' for n in range(50))}",
        f"{CROSSREF}?sample=5",
        f"{CROSSREF}?select=DOI,nonsense",
        f"{CROSSREF}?filter=has-orcid:true",
        f"{ARXIV}?search_query=cat:math.CO",
        f"{ARXIV}?search_query=ti:a+OR+ti:b",
        f"{ARXIV}?id_list=2104.00001&format=json",
        f"{EUROPE}?query=AUTH:%22Smith%22&format=json",
        f"{EUROPE}?query=pollination+NOT+bees&format=json",
        f"{EUROPE}?query=pollination&format=xml",
        f"{CDX}?url=a.example&matchType=domain",
        f"{CDX}?url=a.example&collapse=digest",
        f"{S2}/DOI:10.5555/x?fields=title,nonsense",
    ],
)
def test_what_is_unknown_to_the_sandbox_is_refused(get, url: str) -> None:
    assert get(url).status in (400, 414), url


def test_openalex_selects_sorts_samples_and_groups(calm, get) -> None:
    found = get(f"{WORKS}?select=id,publication_year&sort=publication_year:desc&per_page=100").json["results"]
    assert all(set(work) == {"id", "publication_year"} for work in found)
    years = [work["publication_year"] for work in found]
    assert years == sorted(years, reverse=True)
    sample = [work["id"] for work in get(f"{WORKS}?sample=5&seed=1").json["results"]]
    assert sample == [work["id"] for work in get(f"{WORKS}?sample=5&seed=1").json["results"]]
    assert len(set(sample)) == 5
    groups = get(f"{WORKS}?group_by=open_access.oa_status").json["group_by"]
    assert sum(group["count"] for group in groups) == calm.world.count


def test_crossref_searches_pages_and_selects(calm, get) -> None:
    word = calm.world.work(0).title.split()[0]
    seen, cursor = [], "*"
    while page := get(f"{CROSSREF}?query={word}&rows=3&cursor={cursor}&select=DOI,title").json["message"]:
        if not page["items"]:
            break
        assert all(set(item) == {"DOI", "title"} and word in item["title"][0] for item in page["items"])
        seen += [item["DOI"] for item in page["items"]]
        cursor = page["next-cursor"]
    assert len(seen) == len(set(seen)) == page["total-results"]
    assert calm.world.work(0).doi.lower() in seen


def test_arxiv_is_searched_by_words(calm, get) -> None:
    work = next(work for n in range(calm.world.count) if (work := calm.world.work(n)).copy("arxiv"))
    word = work.title.split()[1]
    feed = get(f"{ARXIV}?search_query=ti:{word}&max_results=100&sortBy=submittedDate").body.decode()
    assert f"/abs/{work.arxiv_id}v" in feed
    titles = re.findall(r"<entry>.*?<title>(.*?)</title>", feed)
    assert titles
    assert all(word.lower() in title.lower() for title in titles)


def test_europe_pmc_finds_words_and_several_ids(calm, get) -> None:
    first, second = [work for n in range(calm.world.count) if (work := calm.world.work(n)).pmid][:2]
    query = f'DOI:"{first.doi}" OR DOI:"{second.doi}"'.replace('"', "%22").replace(" ", "%20").replace("#", "%23")
    found = get(f"{EUROPE}?query={query}&format=json").json["resultList"]["result"]
    assert {each["pmid"] for each in found} == {first.pmid, second.pmid}
    word = first.title.split()[0]
    assert first.pmid in {
        w["pmid"] for w in get(f"{EUROPE}?query={word}&format=json&pageSize=1000").json["resultList"]["result"]
    }


def test_the_capture_index_keeps_to_days_and_prefixes(calm, get) -> None:
    work = next(work for n in range(calm.world.count) if (work := calm.world.work(n)).copy("wayback"))
    address = work.copy("publisher").pdf_url
    asked = f"{CDX}?url={quote(address, safe='')}&output=json"
    assert len(get(asked).json) == 3
    late = get(f"{asked}&from=2001&fl=timestamp,statuscode").json
    assert late[0] == ["timestamp", "statuscode"]
    assert [row[1] for row in late[1:]] == ["200"]
    assert get(f"{asked}&to=2000&fl=statuscode").json == [["statuscode"], ["404"]]
    host = address.partition("://")[2].partition("/")[0]
    assert address in {row[0] for row in get(f"{CDX}?url={host}&matchType=host&output=json&fl=original").json}


def test_semantic_scholar_says_nothing_where_it_knows_nothing(calm, get) -> None:
    work = calm.world.work(1)
    paper = get(f"{S2}/DOI:{work.doi}?fields=title,abstract,citationCount,authors.name,tldr").json
    assert (paper["title"], paper["abstract"], paper["citationCount"], paper["tldr"]) == (work.title, None, 0, None)
