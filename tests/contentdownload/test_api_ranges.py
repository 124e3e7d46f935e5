"""By what the rest of a file is asked for, and which answer is it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.ContentDownload.api.ranges import ContentRange, Rest, Whole, content_range, whole_of

URL = "https://pub.org/a.pdf"
DATED = {"last-modified": "Mon, 01 Jan 2024 00:00:00 GMT", "date": "Mon, 01 Jan 2024 00:01:00 GMT"}
WHOLE = Whole(URL, 100, "etag", '"v1"')
GOOD = {"content-range": "bytes 40-99/100", "content-length": "60", "etag": '"v1"'}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bytes 0-0/1", (0, 0, 1)),
        ("bytes 40-99/100", (40, 99, 100)),
        ("Bytes 40-99/100", (40, 99, 100)),
        ("bytes=40-99/100", None),
        ("bytes 40-99/*", None),
        ("bytes */100", None),
        ("bytes 99-40/100", None),
        ("bytes 40-100/100", None),
        ("bytes -40-99/100", None),
        ("bytes 40-99/100, bytes 0-39/100", None),
        ("bytes ٤٠-٩٩/١٠٠", None),
        ("items 40-99/100", None),
        (" bytes 40-99/100\n", None),
        ("bytes 4" + "0" * 400 + "-99/100", None),
        ("", None),
    ],
)
def test_a_content_range_says_three_numbers_that_make_sense_or_nothing(text: str, said: ContentRange | None) -> None:
    assert content_range(text) == said


@given(st.integers(0, 10**17), st.integers(0, 10**17), st.integers(1, 10**17))
def test_what_is_written_is_read(first: int, more: int, beyond: int) -> None:
    said = ContentRange(first, first + more, first + more + beyond)
    assert content_range(f"bytes {said.first}-{said.last}/{said.total}") == said


@given(st.text(max_size=60) | st.from_regex(r"bytes [0-9*]{0,5}-?[0-9]{0,5}/?[0-9*]{0,5}"))
def test_whatever_is_written_what_is_read_lies_within_the_file(text: str) -> None:
    said = content_range(text)
    assert said is None or 0 <= said.first <= said.last < said.total


@pytest.mark.parametrize(
    ("headers", "validator"),
    [
        ({"etag": '"v1"'}, '"v1"'),
        ({"etag": '"v1"', "accept-ranges": "bytes"}, '"v1"'),
        ({"etag": '"v1"'} | DATED, '"v1"'),
        (DATED, DATED["last-modified"]),
        ({"etag": '"v1"', "accept-ranges": " None"}, None),
        ({"etag": '"v1"', "content-encoding": "gzip"}, None),
        ({"etag": '""'}, None),
        ({"etag": "v1"}, None),
        ({"etag": 'W/"v1"'} | DATED, None),
        ({"etag": '"v1", "v2"'}, None),
        ({"etag": '"v1"\r\nX: y'}, None),
        ({"etag": '"é"'}, None),
        ({"etag": '"' + "x" * 10_000 + '"'}, None),
        (DATED | {"date": "Mon, 01 Jan 2024 00:00:59 GMT"}, None),
        (DATED | {"last-modified": "Tue, 02 Jan 2024 00:00:00 GMT"}, None),
        (DATED | {"date": ""}, None),
        (DATED | {"last-modified": "Mon, 01 Jan 2024 00:00:00 GMT" + " " * 100}, None),
        (DATED | {"date": "Mon, 01 Jan 2024 00:01:00 -0000"}, None),
        ({}, None),
    ],
)
def test_a_file_is_known_by_what_stands_for_its_bytes_alone(headers: dict[str, str], validator: str | None) -> None:
    """RFC 9110 sections 8.8 and 13.1.5."""
    found = whole_of(URL, headers, 100)
    assert (found and found.validator) == validator
    assert whole_of(URL, headers, None) is None


def test_the_rest_is_asked_for_under_its_validator() -> None:
    assert Rest(WHOLE, 40).wishes() == {"Range": "bytes=40-", "If-Range": '"v1"'}


def test_the_good_answer_is_the_rest_and_each_thing_amiss_with_it_makes_it_none() -> None:
    rest = Rest(WHOLE, 40)
    assert rest.is_in(URL, 206, GOOD)
    assert not rest.is_in(URL, 200, GOOD)
    assert not rest.is_in("https://pub.org/b.pdf", 206, GOOD)
    assert not rest.is_in(URL, 206, GOOD | {"content-encoding": "identity"})
    for name in GOOD:
        # What comes in chunks has no length of its own.
        less = {other: GOOD[other] for other in GOOD if other != name}
        assert rest.is_in(URL, 206, less) == (name == "content-length")
        assert not rest.is_in(URL, 206, GOOD | {name: GOOD[name] + "0"})
    assert not Rest(WHOLE, 41).is_in(URL, 206, GOOD)


def test_a_file_is_found_again_behind_a_link_that_is_signed_anew() -> None:
    signed = "https://bucket.org/a.pdf?id=7&X-Amz-Date={0}&X-Amz-Signature={0}"
    rest = Rest(Whole(signed.format(1), 100, "etag", '"v1"'), 40)
    assert rest.lies_at(signed.format(2))
    assert not rest.lies_at(signed.format(1).replace("id=7", "id=8"))
    assert not rest.lies_at(signed.format(1).replace("https:", "http:"))
