"""SEC-05: only public addresses, however they are spelled or reached, and not a packet to the others."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.transport.errors import AddressRefused
from DocsToKG.transport.guard import AddressGuard, literal_address

PUBLIC_V4, PUBLIC_V6 = "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"

# fmt: off
REFUSED = (
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254",
    "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1", "192.88.99.1",
    "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::5db8:d822", "100::1", "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
    "2002:7f00:1::1", "2002:a00:1::1", "2002:5db8:d822::1", "3ffe::1", "3fff::1", "5f00::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "ff02::1",
)
ODD_SPELLINGS = (
    "2130706433", "017700000001", "0x7f000001", "0x7f.1", "127.1", "127.0.1", "0177.0.0.1", "0177.0.0.01",
    "0x7F.0x0.0x0.0x1", "127.0.0.1.", "0", "0x0", "00000000000177.0.0.1", "1270.0.1", "256.0.0.1", "127.0.0.256",
    "1.2.3.4.5", "4294967296", "0x100000000", "09.0.0.1", "1..1", "a.b.1", "3232235777", "0xa9fea9fe",
    "169.254.43518", "[::1]", "[::ffff:7f00:1]", "１２７.０.０.１", "127。0。0。1",
)
USABLE = (
    PUBLIC_V4, "1.1.1.1", "8.8.8.8", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1",
    "223.255.255.255", PUBLIC_V6, "2606:4700::1", "64:ff9b::5db8:d822", "::ffff:5db8:d822",
)
# fmt: on


@pytest.fixture
def guard():
    return AddressGuard()


@pytest.mark.parametrize("address", REFUSED)
def test_special_addresses_are_refused_as_answers_and_as_hosts(guard, address):
    with pytest.raises(AddressRefused):
        guard.judge("papers.example.org", [address])
    with pytest.raises(AddressRefused):
        guard.judge(address, [PUBLIC_V4])


@pytest.mark.parametrize("host", ODD_SPELLINGS)
def test_odd_spellings_are_judged_as_what_they_mean(guard, host):
    with pytest.raises(AddressRefused):
        guard.judge(host, [PUBLIC_V4])


@pytest.mark.parametrize("address", USABLE)
def test_public_addresses_are_usable(guard, address):
    assert guard.judge("papers.example.org", [address]) == [address]
    assert guard.judge(address, []) == [str(ipaddress.ip_address(address))]


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("1572395042", PUBLIC_V4),
        ("0x5db8d822", PUBLIC_V4),
        ("0135.0270.0330.042", PUBLIC_V4),
        ("93.12113954", PUBLIC_V4),
        ("1.1", "1.0.0.1"),
    ],
)
def test_an_odd_spelling_of_a_public_address_is_that_address(guard, host, address):
    assert guard.judge(host, ["10.0.0.1"]) == [address]


@pytest.mark.parametrize("name", ["papers.example.org", "1.example.org", "0x7f.org", "xn--bcher-kva.example", "a-1"])
def test_names_are_not_taken_for_addresses(name):
    assert literal_address(name) is None


@given(st.ip_addresses(v=4))
def test_every_spelling_of_an_ipv4_address_means_the_same(address):
    number = int(address)
    spellings = [str(address), str(number), hex(number), oct(number).replace("0o", "0"), f"{address}."]
    assert {literal_address(text) for text in spellings} == {str(address)}


def test_private_answers_are_dropped_from_a_mixed_one(guard):
    answer = ["10.0.0.1", PUBLIC_V4, "::1", PUBLIC_V6, "not an address"]
    assert guard.judge("papers.example.org", answer) == [PUBLIC_V4, PUBLIC_V6]


def test_an_empty_answer_is_refused(guard):
    with pytest.raises(AddressRefused):
        guard.judge("papers.example.org", [])


def test_hosts_and_networks_can_be_allowed_by_name():
    guard = AddressGuard(
        allow_hosts=["Repo.lab.example", "*.intern.example"], allow_networks=["10.1.0.0/16", "fd00::/8"]
    )
    assert guard.judge("repo.lab.example", ["192.168.0.5"]) == ["192.168.0.5"]
    assert guard.judge("a.b.intern.example", ["127.0.0.1"]) == ["127.0.0.1"]
    assert guard.judge("any.example", ["10.1.2.3", "10.2.2.3", "fd00::1", "::ffff:10.1.0.9"]) == [
        "10.1.2.3",
        "fd00::1",
        "::ffff:10.1.0.9",
    ]
    for host in ("intern.example", "evilintern.example", "lab.example"):
        with pytest.raises(AddressRefused):
            guard.judge(host, ["127.0.0.1"])


@pytest.mark.parametrize(
    "host", ["localhost", "a.localhost", "printer.local", "vault.internal", "intranet", "127.1", "[::1]"]
)
def test_names_of_private_networks_are_refused_when_a_proxy_would_resolve_them(guard, host):
    with pytest.raises(AddressRefused):
        guard.judge_name(host)


def test_public_names_may_be_asked_of_a_proxy(guard):
    guard.judge_name("papers.example.org")
    guard.judge_name(PUBLIC_V4)
    AddressGuard(allow_hosts=["vault.internal"]).judge_name("vault.internal")
