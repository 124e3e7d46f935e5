"""Index services answer in the shapes of their real namesakes."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

REST = "https://www.ebi.ac.uk/europepmc/webservices/rest"
EMAIL = "email=me@university.edu"


def _enc(doi: str) -> str:
    return quote(doi, safe="")


def test_unpaywall_lists_the_open_copies_of_a_doi(calm, get, first_with):
    work, copy = first_with(calm, "publisher", lambda w, c: c.listed == "pdf" and w.copy("arxiv"))
    found = get(f"https://api.unpaywall.org/v2/{_enc(work.doi)}?{EMAIL}").json
    assert found["doi"] == work.doi.lower()
    assert (found["is_oa"], found["title"], found["year"]) == (True, work.title, work.year)
    assert found["best_oa_location"]["url_for_pdf"] == copy.pdf_url
    assert f"oai:arXiv.org:{work.arxiv_id}" in [place["pmh_id"] for place in found["oa_locations"]]
    assert {place["evidence"] for place in found["oa_locations"]} == {"deprecated"}


def test_unpaywall_may_know_the_page_only(calm, get, first_with):
    work, copy = first_with(calm, "publisher", lambda w, c: c.listed == "page")
    best = get(f"https://api.unpaywall.org/v2/{_enc(work.doi)}?{EMAIL}").json["best_oa_location"]
    assert best["url_for_pdf"] is None
    assert best["url"] == best["url_for_landing_page"] == copy.landing_url


def test_unpaywall_says_closed_of_closed_works(calm, get, first_with):
    work, _ = first_with(calm, "publisher", lambda w, c: w.oa_status == "closed")
    found = get(f"https://api.unpaywall.org/v2/{_enc(work.doi)}?{EMAIL}").json
    assert (found["is_oa"], found["oa_locations"], found["best_oa_location"]) == (False, [], None)


@pytest.mark.parametrize("email", ["", "email=", "email=nobody", "email=you@example.com"])
def test_unpaywall_wants_a_real_address(calm, get, email):
    refused = get(f"https://api.unpaywall.org/v2/{_enc(calm.world.work(0).doi)}?{email}")
    assert refused.status == 422
    assert refused.json["HTTP_status_code"] == 422


def test_unpaywall_answers_unknown_and_datacite_dois_with_an_html_404(calm, get, first_with):
    preprint, _ = first_with(calm, "arxiv", lambda w, c: not w.in_crossref)
    for doi in ("10.9999/nothing", preprint.doi):
        missing = get(f"https://api.unpaywall.org/v2/{_enc(doi)}?{EMAIL}")
        assert missing.status == 404
        assert missing.headers["Content-Type"].startswith("text/html")


def test_every_odd_doi_is_found_when_encoded(calm, get):
    odd = [work for work in map(calm.world.work, range(400)) if set("();<>[]#?") & set(work.doi) and work.in_crossref]
    assert len(odd) > 20
    for work in odd[:20]:
        assert get(f"https://api.unpaywall.org/v2/{_enc(work.doi)}?{EMAIL}").json["title"] == work.title
        assert get(f"https://doi.org/{_enc(work.doi)}").status == 302


def test_openalex_finds_a_work_by_each_identifier(calm, get, first_with):
    work, _ = first_with(calm, "pmc")
    for name in (f"doi:{_enc(work.doi)}", f"https://doi.org/{_enc(work.doi)}", work.openalex_id, f"pmid:{work.pmid}"):
        found = get(f"https://api.openalex.org/works/{name}").json
        assert found["id"] == f"https://openalex.org/{work.openalex_id}", name
    ids = [place["id"] for place in found["locations"]]
    assert f"pmh:oai:pubmedcentral.nih.gov:{work.pmcid[3:]}" in ids
    assert "pmcid" not in found["ids"]
    pages = [place["landing_page_url"] for place in found["locations"]]
    assert f"https://www.ncbi.nlm.nih.gov/pmc/articles/{work.pmcid[3:]}" in pages, "without the PMC prefix"


def test_openalex_refuses_blank_keys_and_unknown_works(get):
    assert get("https://api.openalex.org/works/W2000000000?api_key=").status == 401
    missing = get("https://api.openalex.org/works/W1")
    assert missing.status == 404
    assert missing.headers["Content-Type"].startswith("text/html")
    assert get("https://content.openalex.org/works/W2000000000.pdf").status == 401
    assert get("https://content.openalex.org/works/W2000000000.pdf", Authorization="Bearer sesame").status == 404
    assert get("https://api.openalex.org/works/W2000000000", Authorization="Bearer ").status == 401


def test_openalex_pages_through_a_query_with_cursors(calm, get):
    cursor, seen = "*", []
    while cursor:
        page = get(f"https://api.openalex.org/works?filter=is_oa:true&per_page=100&cursor={cursor}").json
        seen += [work["id"] for work in page["results"]]
        cursor = page["meta"]["next_cursor"]
    assert len(seen) == len(set(seen)) == page["meta"]["count"] > 300


def test_openalex_filters_by_dois_year_and_words(calm, get):
    works = [calm.world.work(1), calm.world.work(2)]
    plain = [work for work in works if "," not in work.doi]
    names = "|".join(_enc(work.doi) for work in plain)
    found = get(f"https://api.openalex.org/works?filter=doi:{names}&per_page=50").json
    assert [entry["title"] for entry in found["results"]] == [work.title for work in plain]
    none = get("https://api.openalex.org/works?filter=doi:10.9999/nothing").json
    assert none["meta"]["count"] == 0
    year = calm.world.work(1).year
    by_year = get(f"https://api.openalex.org/works?filter=publication_year:{year}&per_page=100").json
    assert {entry["publication_year"] for entry in by_year["results"]} == {year}
    word = calm.world.work(1).title.split()[0]
    by_word = get(f"https://api.openalex.org/works?search={word}").json
    assert all(word in entry["title"] for entry in by_word["results"])
    assert by_word["results"]


@pytest.mark.parametrize("query", ["filter=colour:red", "per_page=1000", "cursor=%21%21", "page=x"])
def test_openalex_answers_bad_queries_with_400(get, query):
    assert get(f"https://api.openalex.org/works?{query}").status == 400


def test_crossref_has_links_licences_and_the_limits_of_its_pools(calm, get, first_with):
    work, copy = first_with(calm, "publisher", lambda w, c: w.licence and c.open)
    answer = get(f"https://api.crossref.org/works/{_enc(work.doi)}?mailto=me@university.edu")
    message = answer.json["message"]
    assert (message["DOI"], message["title"]) == (work.doi.lower(), [work.title])
    assert message["link"][0]["URL"] == copy.pdf_url
    assert message["license"][0]["URL"].startswith("https://creativecommons.org/licenses/by")
    assert answer.headers["x-api-pool"] == "polite"
    assert answer.headers["x-rate-limit-limit"] == "200", "ten a second, times the rate factor"
    anonymous = get(f"https://api.crossref.org/works/{_enc(work.doi)}", User_Agent="curl")
    assert (anonymous.headers["x-api-pool"], anonymous.headers["x-concurrency-limit"]) == ("public", "1")


def test_crossref_answers_unknown_dois_and_bad_filters_as_it_does(calm, get):
    missing = get("https://api.crossref.org/works/10.9999%2Fnothing")
    assert (missing.status, missing.text) == (404, "Resource not found.")
    bad = get("https://api.crossref.org/works?filter=colour:red")
    assert (bad.status, bad.json["message-type"]) == (400, "validation-failure")
    doi = calm.world.work(1).doi
    listed = get(f"https://api.crossref.org/works?filter=doi:{_enc(doi)},doi:10.9999/no&rows=5").json["message"]
    assert [item["DOI"] for item in listed["items"]] == [doi.lower()]
    assert get(f"https://api.crossref.org/works/{_enc(doi)}/agency").json["message"]["agency"]["id"] == "crossref"


def test_doi_org_redirects_and_tells_handles_and_agencies(calm, get, first_with):
    work, copy = first_with(calm, "publisher", lambda w, c: not c.publisher.link_hub)
    answer = get(f"https://doi.org/{_enc(work.doi)}")
    assert (answer.status, answer.headers["Location"]) == (302, copy.landing_url)
    handle = get(f"https://doi.org/api/handles/{_enc(work.doi)}").json
    assert (handle["responseCode"], handle["values"][0]["data"]["value"]) == (1, copy.landing_url)
    assert get("https://doi.org/api/handles/10.9999/nothing").json["responseCode"] == 100
    assert get(f"https://doi.org/doiRA/{_enc(work.doi)}").json[0]["RA"] == "Crossref"
    assert "status" in get("https://doi.org/doiRA/10.9999/nothing").json[0]
    assert get("https://doi.org/10.9999/nothing").status == 404
    assert get("https://doi.org/nothing").status == 400
    csl = get(f"https://doi.org/{_enc(work.doi)}", Accept="application/vnd.citationstyles.csl+json")
    assert csl.headers["Location"].startswith("https://api.crossref.org/v1/works/")
    assert get(csl.headers["Location"]).json["DOI"] == work.doi.lower()


def test_europe_pmc_finds_by_doi_pmid_and_pmcid(calm, get, first_with):
    work, copy = first_with(calm, "europepmc")
    for query in (f'DOI:"{work.doi}"', f"PMCID:{work.pmcid}", f"EXT_ID:{work.pmid} AND SRC:MED"):
        found = get(f"{REST}/search?query={_enc(query)}&resultType=core&format=json").json
        assert found["hitCount"] == 1, query
        result = found["resultList"]["result"][0]
        assert (result["pmcid"], result["isOpenAccess"], result["hasPDF"]) == (work.pmcid, "Y", "Y")
        pdfs = [link for link in result["fullTextUrlList"]["fullTextUrl"] if link["documentStyle"] == "pdf"]
        assert [(link["availabilityCode"], link["url"]) for link in pdfs] == [("OA", copy.pdf_url)]
    assert get(f"{REST}/search?query=DOI:nothing").json["hitCount"] == 0
    assert get(f"{REST}/{work.pmcid}/fullTextXML").status == 200
    assert get(f"{REST}/PMC1/fullTextXML").status == 404


def test_semantic_scholar_answers_alone_and_in_batches(calm, get, first_with):
    work, _ = first_with(calm, "arxiv", lambda w, c: w.in_crossref)
    root = "https://api.semanticscholar.org/graph/v1/paper"
    names = [f"DOI:{work.doi}", f"ARXIV:{work.arxiv_id}", work.semantic_scholar_id]
    for name in names:
        found = get(f"{root}/{_enc(name)}?fields=externalIds,openAccessPdf,title").json
        assert found["externalIds"]["ArXiv"] == work.arxiv_id
        assert found["openAccessPdf"]["url"] == f"https://arxiv.org/abs/{work.arxiv_id}"
    body = json.dumps({"ids": [names[0], "DOI:10.9999/nothing"]}).encode()
    batch = get(f"{root}/batch?fields=title", method="POST", body=body).json
    assert [entry and entry["title"] for entry in batch] == [work.title, None]


def test_semantic_scholar_refuses_what_it_does_not_know(get):
    root = "https://api.semanticscholar.org/graph/v1/paper"
    missing = get(f"{root}/DOI:10.9999/nothing")
    assert (missing.status, "not found" in missing.json["error"]) == (404, True)
    assert "Unrecognized" in get(f"{root}/DOI:10.9999/nothing?fields=colour").json["error"]
    assert get(f"{root}/batch", method="POST", body=b"[[").status == 400
    assert get(f"{root}/batch", method="POST", body=b'{"ids": 3}').status == 400


def test_the_arxiv_api_answers_in_atom(calm, get, first_with):
    work, _ = first_with(calm, "arxiv", lambda w, c: w.in_crossref)
    api = "https://export.arxiv.org/api/query?max_results=10&id_list="
    feed = get(api + work.arxiv_id)
    assert feed.headers["Content-Type"].startswith("application/atom+xml")
    assert f"<id>http://arxiv.org/abs/{work.arxiv_id}v{work.arxiv_versions}</id>" in feed.text
    assert 'title="pdf"' in feed.text
    unknown = get(api + "2412.99999")
    assert (unknown.status, "<opensearch:totalResults>0<" in unknown.text) == (200, True)
    malformed = get(api + "abc")
    assert (malformed.status, "api/errors#" in malformed.text) == (400, True)


def test_doaj_knows_the_pages_of_gold_works(calm, get, first_with):
    work, copy = first_with(calm, "publisher", lambda w, c: w.oa_status == "gold")
    found = get(f"https://doaj.org/api/v4/search/articles/doi%3A{_enc(work.doi)}?pageSize=5").json
    assert [link["url"] for link in found["results"][0]["bibjson"]["link"]] == [copy.landing_url]
    closed, _ = first_with(calm, "publisher", lambda w, c: w.oa_status == "closed")
    assert get(f"https://doaj.org/api/v4/search/articles/doi%3A{_enc(closed.doi)}").json["total"] == 0


def test_openaire_knows_the_pages_of_repositories(calm, get, first_with):
    work, copy = first_with(calm, "repository", lambda w, c: True)
    found = get(f"https://api.openaire.eu/graph/v3/research-products?pid={_enc(work.doi)}").json
    assert found["results"][0]["instances"][0]["urls"] == [copy.landing_url]


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("https://api.datacite.org/dois/10.5281/zenodo.1", 404),
        ("https://api.fatcat.wiki/v0/release/lookup?doi=10.1/x", 404),
        ("https://api.core.ac.uk/v3/search/works/?q=x", 401),
        ("https://api.archives-ouvertes.fr/search/?q=x", 200),
        ("https://www.osti.gov/api/v1/records?doi=10.1/x", 200),
    ],
)
def test_other_indexes_say_that_they_know_nothing(calm, get, address, status):
    assert get(address).status == status
