"""connect_to: logical hosts above, loopback below."""

from __future__ import annotations

import pytest

from DocsToKG.transport.connect import ConnectTo, Target


def test_the_most_exact_rule_wins():
    rules = ConnectTo(
        {
            "*": "plain://127.0.0.1:1",
            "*.example.org": "plain://127.0.0.1:2",
            "*.deep.example.org": "plain://127.0.0.1:3",
            "A.example.org": "plain://127.0.0.1:4",
            "a.example.org:8443": "tls://[::1]:5",
        }
    )
    asked = [
        ("x.net", 80),
        ("b.example.org", 80),
        ("b.deep.example.org", 80),
        ("a.example.org", 443),
        ("example.org", 80),
    ]
    assert [rules.target(*pair).port for pair in asked] == [1, 2, 3, 4, 1]
    assert rules.target("a.example.org", 8443) == Target("::1", 5, True)


def test_no_rule_means_no_detour():
    assert ConnectTo({"a.example.org": "plain://127.0.0.1:1"}).target("b.example.org", 80) is None


@pytest.mark.parametrize(
    "value",
    [
        "plain://10.0.0.1:80",
        "plain://93.184.216.34:80",
        "plain://0.0.0.0:80",
        "plain://papers.example.org:80",
        "plain://127.0.0.1",
        "plain://127.0.0.1:0",
        "plain://127.0.0.1:99999",
        "http://127.0.0.1:80",
        "plain://127.0.0.1:80/path",
        "127.0.0.1:80",
        "",
    ],
)
def test_a_rule_that_leads_off_this_machine_is_refused_by_name(value):
    with pytest.raises(ValueError, match=r"papers\.example\.org"):
        ConnectTo({"papers.example.org": value})
