"""Files obey HTTP: validators, conditions, ranges, HEAD."""

from __future__ import annotations

import pytest


@pytest.fixture
def paper(calm, first_with):
    work, copy = first_with(calm, "publisher", lambda w, c: c.open and w.index % 10 != 3)
    return copy.pdf_url, calm.world.file_of(work, copy)


def test_a_validator_sent_back_is_answered_304(get, paper):
    url, body = paper
    first = get(url)
    assert first.body == body
    for headers in ({"If_None_Match": first.headers["ETag"]}, {"If_Modified_Since": first.headers["Last-Modified"]}):
        again = get(url, **headers)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["ETag"] == first.headers["ETag"]


def test_a_stale_or_broken_validator_gets_the_whole_file(get, paper):
    url, body = paper
    for headers in (
        {"If_None_Match": '"other"'},
        {"If_Modified_Since": "Mon, 01 Jan 1990 00:00:00 GMT"},
        {"If_Modified_Since": "yesterday"},
    ):
        assert get(url, **headers).body == body


def test_a_range_continues_where_it_was_cut(get, paper):
    url, body = paper
    tag = get(url).headers["ETag"]
    rest = get(url, Range="bytes=1000-", If_Range=tag)
    assert (rest.status, rest.body) == (206, body[1000:])
    assert rest.headers["Content-Range"] == f"bytes 1000-{len(body) - 1}/{len(body)}"
    assert get(url, Range="bytes=0-0").body == body[:1]


def test_a_range_of_another_version_starts_over(get, paper):
    url, body = paper
    assert get(url, Range="bytes=1000-", If_Range='"old"').body == body


def test_a_range_beyond_the_end_is_416(get, paper):
    url, body = paper
    answer = get(url, Range=f"bytes={len(body)}-")
    assert (answer.status, answer.headers["Content-Range"]) == (416, f"bytes */{len(body)}")


def test_head_tells_the_length_and_sends_nothing(get, paper):
    url, body = paper
    answer = get(url, method="HEAD")
    assert (answer.status, answer.body, answer.headers["Content-Length"]) == (200, b"", str(len(body)))


def test_some_files_come_without_a_length(calm, get, first_with):
    work, copy = first_with(calm, "publisher", lambda w, c: c.open and w.index % 10 == 3)
    answer = get(copy.pdf_url)
    assert answer.headers["Transfer-Encoding"] == "chunked"
    assert answer.body == calm.world.file_of(work, copy)


def test_publishers_say_how_long_a_file_may_be_kept(calm, get, first_with):
    seen = set()
    for host in ("www.openshelf.example", "link.meridianpress.example", "journals.collegium.example"):
        _, copy = first_with(calm, "publisher", lambda w, c, host=host: c.publisher.host == host)
        seen.add(get(copy.pdf_url).headers["Cache-Control"])
    assert seen == {"public, max-age=3600", "no-cache", None}
