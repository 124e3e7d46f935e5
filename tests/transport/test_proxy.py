"""Proxies: which one, what it is told, and what the guard still judges."""

from __future__ import annotations

import pytest

from DocsToKG.transport.proxy import Proxies, Proxy


def test_each_scheme_has_its_proxy():
    proxies = Proxies({"HTTP_PROXY": "http://one:3128", "https_proxy": "two:8080", "HTTPS_PROXY": "http://three:1"})
    assert proxies.proxy_for("http", "a.org", 80) == Proxy("one", 3128)
    assert proxies.proxy_for("https", "a.org", 443) == Proxy("two", 8080)


def test_all_proxy_stands_in_and_nothing_set_means_no_proxy():
    assert Proxies({"ALL_PROXY": "http://p:1"}).proxy_for("https", "a.org", 443) == Proxy("p", 1)
    assert Proxies({}).proxy_for("http", "a.org", 80) is None


@pytest.mark.parametrize(
    ("exceptions", "host", "port", "direct"),
    [
        ("example.org", "example.org", 80, True),
        ("example.org", "a.example.org", 80, True),
        (".example.org", "a.example.org", 80, True),
        ("*.example.org", "a.example.org", 80, True),
        ("example.org", "badexample.org", 80, False),
        ("example.org:8080", "example.org", 8080, True),
        ("example.org:8080", "example.org", 80, False),
        ("10.0.0.0/8, ::1", "10.3.2.1", 80, True),
        ("10.0.0.0/8, ::1", "::1", 80, True),
        ("10.0.0.0/8", "11.0.0.1", 80, False),
        ("a.org, *", "b.org", 80, True),
        (" , ", "b.org", 80, False),
    ],
)
def test_no_proxy_names_hosts_that_are_reached_directly(exceptions, host, port, direct):
    proxies = Proxies({"http_proxy": "http://p:1", "NO_PROXY": exceptions})
    assert (proxies.proxy_for("http", host, port) is None) is direct


@pytest.mark.parametrize(
    "value", ["ftp://u:hunter2@p:1", "socks4://u:hunter2@p:1", "http://u:hunter2@p:port", "http://"]
)
def test_a_proxy_we_cannot_use_is_refused_without_its_password(value):
    with pytest.raises(ValueError, match="https_proxy") as error:
        Proxies({"HTTPS_PROXY": value})
    assert "hunter2" not in str(error.value)


def test_the_variable_at_fault_is_named():
    with pytest.raises(ValueError, match="all_proxy must be an http:// or"):
        Proxies({"HTTP_PROXY": "http://p:1", "ALL_PROXY": "socks4://p:1080"})


def test_a_proxy_does_not_show_its_password():
    assert "hunter2" not in repr(Proxies({"http_proxy": "http://u:hunter2@p:1"}).proxy_for("http", "a.org", 80))
