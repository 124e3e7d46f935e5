"""A host that keeps refusing us is left alone for the rest of the run; one forbidden paper changes nothing."""

from __future__ import annotations

import pytest

from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.config.rules import host_rules
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.net.limits.blocklist import HostBlocklist

EXPORT, MAIN, CROSSREF = "https://export.arxiv.org/pdf/1", "https://arxiv.org/pdf/1", "https://api.crossref.org/works/1"


@pytest.fixture
def blocklist() -> HostBlocklist:
    return HostBlocklist(["export.arxiv.org", "arxiv.org", "api.crossref.org"], most=3)


def answers(blocklist: HostBlocklist, url: str, *statuses: int) -> None:
    for status in statuses:
        blocklist.on_answer(url, status)


def test_refusals_in_a_row_stop_the_whole_house_and_no_other(blocklist: HostBlocklist) -> None:
    answers(blocklist, EXPORT, 403, 403)
    blocklist.look(MAIN)
    answers(blocklist, MAIN, 403)
    for url in (EXPORT, MAIN):
        with pytest.raises(CandidateRejected, match="refused us in this run") as caught:
            blocklist.look(url)
        assert (caught.value.reason, caught.value.http_status) == ("http-status", 403)
    blocklist.look(CROSSREF)
    [note] = blocklist.notes
    assert note.startswith("arxiv.org and export.arxiv.org answered 403 3 times in a row")


@pytest.mark.parametrize("status", [200, 304, 404])
def test_an_answer_of_another_kind_between_them_shows_that_we_are_welcome(
    blocklist: HostBlocklist, status: int
) -> None:
    answers(blocklist, EXPORT, 403, 403, status, 403, 403)
    blocklist.look(EXPORT)
    assert blocklist.notes == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_says_nothing_about_it(blocklist: HostBlocklist, status: int) -> None:
    answers(blocklist, EXPORT, 403, status, 403, status, 403)
    assert len(blocklist.notes) == 1


def test_hosts_that_are_not_marked_may_refuse_as_often_as_they_like() -> None:
    blocklist = HostBlocklist(["arxiv.org"], most=3)
    answers(blocklist, "https://pub.org/1", *[403] * 10)
    blocklist.look("https://pub.org/1")


def test_all_others_may_be_marked_each_for_itself() -> None:
    blocklist = HostBlocklist(others=True, most=3)
    answers(blocklist, "https://a.pub.org/1", 403, 403, 403)
    blocklist.look("https://b.pub.org/1")
    with pytest.raises(CandidateRejected):
        blocklist.look("https://a.pub.org/2")
    assert blocklist.notes[0].startswith("a.pub.org answered")


def test_the_shipped_rules_mark_those_who_say_that_403_means_stop() -> None:
    _, hosts = host_rules(load_config(None, {}, environ={}))
    marked = {host for host, rule in hosts.items() if rule.stop_on_403}
    assert marked == {"arxiv.org", "export.arxiv.org", "api.crossref.org"}
