"""What is read once says the same as what httpx2 reads each time."""

from __future__ import annotations

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.transport.curl.head import parse_head
from DocsToKG.transport.fields import Fields
from DocsToKG.transport.messages import LightRequest, LightResponse
from DocsToKG.transport.places import url_of

NAMES = st.sampled_from(["Host", "host", "Link", "LINK", "X-Any", "Cache-Control"])
LETTERS = st.characters(max_codepoint=255, blacklist_characters="\r\n\0\t ")
VALUES = st.text(LETTERS, max_size=8).map(lambda text: text.encode("latin-1")) | st.sampled_from(
    [b"a", "é".encode(), b"\xff", b""]
)
CHANGES = st.lists(st.tuples(st.sampled_from(["set", "pop", "update", "setdefault"]), NAMES), max_size=5)


def came(pairs):
    """The fields of a response, as libcurl hands them over."""
    return parse_head([b"HTTP/1.1 200 OK\r\n", *(b"%s: %s\r\n" % pair for pair in pairs), b"\r\n"]).headers


@examples(50)
@given(st.lists(st.tuples(NAMES.map(str.encode), VALUES), max_size=8), CHANGES)
def test_fields_answer_as_httpx2_does_also_after_changes(pairs, changes):
    check_changes(Fields(pairs), httpx2.Headers(pairs), changes)
    read = came(pairs)
    as_utf8 = [(name.encode(), value.encode()) for name, value in read.raw]
    check_changes(Fields.of(read), httpx2.Headers(as_utf8), changes)


def check_changes(ours, theirs, changes):
    for what, name in [("look", "link"), *changes]:
        for fields in (ours, theirs):
            if what == "set":
                fields[name] = "new"
            elif what == "pop":
                fields.pop(name, None)
            elif what == "update":
                fields.update({name: "other"})
            elif what == "setdefault":
                fields.setdefault(name, "first")
        for asked in ("host", "HOST", "link", "x-any", "cache-control", "absent"):
            assert ours.get(asked) == theirs.get(asked)
            assert (asked in ours) == (asked in theirs)
        assert ours.raw == theirs.raw
        assert dict(ours.items()) == dict(theirs.items())


def test_an_absent_field_is_a_key_error():
    with pytest.raises(KeyError):
        Fields([(b"a", b"b")])["absent"]


@examples(50)
@given(
    st.sampled_from(["http", "https"]),
    st.sampled_from(["host.test", "a-b.test", "127.0.0.1", "xn--fiqs8s.test"]),
    st.sampled_from(["", ":80", ":443", ":8080"]),
    st.text(alphabet="ab./-_~%20 é?#:@;=&", max_size=20),
)
def test_an_address_is_read_as_httpx2_reads_it(scheme, host, port, rest):
    text = f"{scheme}://{host}{port}/{rest}"
    ours, theirs = url_of(text), httpx2.URL(text)
    assert ours == theirs
    assert (ours.raw_path, ours.netloc, ours.port, str(ours)) == (
        theirs.raw_path,
        theirs.netloc,
        theirs.port,
        str(theirs),
    )


def test_what_is_no_address_is_refused_alike():
    for text in ("https://999.1.1.1/a", "https://host.test:99999/a", "https://host..test/a"):
        results = []
        for read in (url_of, httpx2.URL):
            try:
                results.append(str(read(text)))
            except httpx2.InvalidURL:
                results.append("refused")
        assert results[0] == results[1]


@given(st.dictionaries(st.sampled_from(["Host", "host", "Accept", "X-Any"]), st.sampled_from(["a", "b, c", ""])))
def test_what_is_sent_and_what_came_are_httpx2s_fields(named):
    theirs = httpx2.Headers(named)
    for ours in (Fields.sent(named), Fields.of(came(theirs.raw))):
        assert (ours.raw, ours.multi_items(), list(ours.items())) == (
            theirs.raw,
            theirs.multi_items(),
            list(theirs.items()),
        )
        assert ours.get_list("host") == theirs.get_list("host")
        assert ours == theirs


def test_changing_what_is_sent_changes_no_other_request():
    first = Fields.sent({"Host": "a.test"})
    first["cookie"] = "mine"
    assert "cookie" not in Fields.sent({"Host": "a.test"})


def test_a_name_that_cannot_be_sent_is_refused_as_httpx2_does():
    with pytest.raises(UnicodeEncodeError):
        Fields.sent({"x-any": "é"})


def test_light_messages_have_all_that_httpx2s_have():
    url, stream = url_of("https://host.test/a"), httpx2.ByteStream(b"")
    asked = httpx2.Request("GET", url, headers={"Host": "host.test"}, stream=stream)
    light = LightRequest("GET", url, Fields.sent({"Host": "host.test"}), {})
    assert vars(light).keys() == vars(asked).keys()
    assert (light.method, light.url, light.headers, light.extensions) == (
        asked.method,
        asked.url,
        asked.headers,
        asked.extensions,
    )
    answered = httpx2.Response(200, headers=[(b"a", b"b")], stream=stream)
    heard = LightResponse(200, Fields.of(came([(b"a", b"b")])), stream, {})
    assert vars(heard) == vars(answered)


def test_an_address_put_together_can_be_changed_and_compared():
    ours, theirs = url_of("http://host.test:80/a/b"), httpx2.URL("http://host.test:80/a/b")
    assert hash(ours) == hash(theirs)
    assert repr(ours) == repr(theirs).replace("URL", "KnownUrl", 1)
    assert ours.copy_with(path="/c") == theirs.copy_with(path="/c")
    assert ours.join("../d") == theirs.join("../d")
    assert httpx2.Request("GET", ours).url == theirs
