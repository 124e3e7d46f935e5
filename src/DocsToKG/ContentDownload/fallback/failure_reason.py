"""Why a work was not obtained: one token and one sentence for the reader of the results.

Has words for every reason and chooses the most useful of several. Reads a search state. Promises: a sentence names
hosts, never addresses, and is never empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.fallback.resume_cache import Failure
from DocsToKG.ContentDownload.fallback.search_state import SearchState
from DocsToKG.core.clock import utc_iso
from DocsToKG.core.urls import BadUrl, host_key

_MOST_GROUPS = 3
_MOST_HOSTS = 2
_FAR_OFF_S = 10 * 365 * 86_400.0  # a server may name any time
_SETTLE = "`content catalog unproved` lists and settles such files"
_UNKNOWN = ("not_in_index", Reason.UNKNOWN_IDENTIFIER)
_NO_BRACES = str.maketrans("{}", "()")
# How a copy was, with the place of its host. Reasons that mean the same to a reader share their words.
_WORDS: dict[str, str] = {
    Reason.CHALLENGE: "behind a bot check at {host}",
    Reason.COOKIE_WALL: "behind a cookie wall at {host}",
    Reason.LOGIN_WALL: "behind a login at {host}",
    Reason.PAYWALL: "behind a paywall at {host}",
    Reason.ROBOTS: "forbidden by robots.txt of {host}",
    Reason.INTERSTITIAL: "replaced by a web page at {host}",
    Reason.ROUTER: "replaced by a web page at {host}",
    Reason.HTML_INSTEAD_OF_PDF: "replaced by a web page at {host}",
    Reason.UNEXPECTED_CT: "of another type at {host}",
    Reason.POLICY_TYPE: "of another type at {host}",
    Reason.EMPTY_BODY: "empty at {host}",
    Reason.TOO_SMALL: "too small to be a paper at {host}",
    Reason.TRUNCATED: "cut off at {host}",
    Reason.SIZE_MISMATCH: "cut off at {host}",
    Reason.CORRUPT_PDF: "damaged at {host}",
    Reason.CHECKSUM_MISMATCH: "damaged at {host}",
    Reason.WRONG_ARTICLE: "of another article at {host}",
    Reason.SUPPLEMENT: "a supplement alone at {host}",
    Reason.STUB: "a cover or preview alone at {host}",
    Reason.NO_FULL_TEXT: "an abstract alone at {host}",
    Reason.TOO_LARGE: "larger than allowed at {host}",
    Reason.POLICY_SIZE: "larger than allowed at {host}",
    Reason.SECURITY_POLICY: "not safe to fetch from {host}",
    Reason.TLS_ERROR: "not safe to fetch from {host}",
    Reason.REDIRECT_LOOP: "lost in redirects at {host}",
    Reason.TOO_MANY_REDIRECTS: "lost in redirects at {host}",
    Reason.TIMEOUT: "too slow at {host}",
    Reason.BAD_URL: "under an unusable address",
    Reason.FILTERED: "left out by your filters",
    Reason.TAKEN_DOWN: "taken down here",
    Reason.BUDGET_EXHAUSTED: "not reached within the budget of one work",
    Reason.UNPROVED: "without a sign that it is the paper at {host}",
}
_WALLS = (Reason.CHALLENGE, Reason.COOKIE_WALL, Reason.LOGIN_WALL)
_OPEN = ("gold", "diamond", "hybrid", "bronze", "green")
_REFUSED, _REMOVED = (401, 403, 451), (404, 410)
_STATUS_WORDS = {
    410: "gone (410) from {host}",
    451: "refused (451) by {host}",
    401: "refused (401) by {host}",
    403: "refused (403) by {host}",
    404: "gone (404) from {host}",
}
_TROUBLE: dict[str, str] = {
    Reason.TIMEOUT: "{host} did not answer in time",
    Reason.CONN_ERROR: "{host} could not be reached",
    Reason.TLS_ERROR: "{host} could not be reached safely",
    Reason.BREAKER_OPEN: "{host} has failed too often and is left alone for a while",
    Reason.RETRY_AFTER: "{host} asks us to come back later",
    Reason.ROBOTS: "robots.txt of {host} could not be read",
}


@dataclass(frozen=True, slots=True)
class FailureReason:
    """`cause` is a stable token (a `Reason`), `sentence` the same for people."""

    cause: str
    sentence: str


def failure_reason(state: SearchState, *, now: float) -> FailureReason:
    """Why the finished search obtained nothing."""
    tried = state.failures_in_order()
    copies = [one for one in tried if one.is_copy]
    troubles = [one for one in tried if one.transient]
    if state.out_of_budget:
        return FailureReason(Reason.BUDGET_EXHAUSTED, _out_of_budget(tried, copies))
    if not troubles and (waiting := [one for one in copies if one.quarantine]):
        return _in_quarantine(waiting, [one for one in copies if not one.quarantine])
    if not troubles:
        return _by_access(_no_good(copies) if copies else _nothing_known(state, tried), state)
    when = "later" if state.retry_after_s is None else f"from {_minute(now + min(state.retry_after_s, _FAR_OFF_S))} on"
    if copies and not any(one.transient for one in copies):
        # The copies are known and no good; that a source could not be asked leaves a hope, no more.
        known, silent = _by_access(_no_good(copies), state), _named(_unique(one.source for one in troubles))
        return FailureReason(known.cause, f"{known.sentence} {silent} could not be asked: more may be known {when}.")
    return FailureReason(troubles[0].reason.partition(":")[0], _temporary(troubles, copies, when))


def _in_quarantine(waiting: Sequence[Failure], others: Sequence[Failure]) -> FailureReason:
    """Files that a person can accept are reported before copies that cannot be had."""
    what = "A file from" if len(waiting) == 1 else f"{len(waiting)} files from"
    verb, it = ("waits", "it shows that it is") if len(waiting) == 1 else ("wait", "them shows that they are")
    sentence = f"{what} {_hosts(waiting)} {verb} in quarantine, as nothing in {it} the paper; {_SETTLE}."
    return FailureReason(Reason.UNPROVED, sentence + (f" Other copies: {_listed(others)}." if others else ""))


def _by_access(found: FailureReason, state: SearchState) -> FailureReason:
    """Where an index says whether the paper is open, a wall means that it is closed, or open but blocked."""
    if found.cause not in (*_WALLS, Reason.PAYWALL, Reason.OPEN_BUT_BLOCKED):
        return found
    is_open = state.work.oa_status in _OPEN
    if not is_open and any(said == Reason.CLOSED for _, said in state.notes):
        return FailureReason(Reason.CLOSED, f"The paper is closed, as an index says. {found.sentence}")
    return FailureReason(Reason.OPEN_BUT_BLOCKED, found.sentence) if is_open and found.cause in _WALLS else found


def _no_good(copies: Sequence[Failure]) -> FailureReason:
    groups = Counter(_words(one) for one in copies)
    words = max(groups, key=lambda words: groups[words])
    cause = _cause(next(one for one in copies if _words(one) == words))
    if len(groups) > 1:
        return FailureReason(cause, f"No copy could be had ({_tried(copies)}): {_listed(copies)}.")
    hosts = _hosts(copies)
    if cause == Reason.ROBOTS:
        return FailureReason(cause, f"robots.txt of {hosts} forbids the file.")
    if len(copies) == 1:
        return FailureReason(cause, f"The only copy is {words.format(host=hosts)}.")
    return FailureReason(cause, f"The only copies are {words.format(host=hosts)} ({_tried(copies)}).")


def _cause(one: Failure) -> str:
    """Some statuses are reasons of their own. A refused guess does not show that a copy is open."""
    if one.reason == Reason.HTTP_STATUS and one.http_status in _REMOVED:
        return Reason.GONE
    if one.reason == Reason.HTTP_STATUS and one.http_status in _REFUSED and not one.is_guess:
        return Reason.OPEN_BUT_BLOCKED
    return one.reason


def _temporary(troubles: Sequence[Failure], copies: Sequence[Failure], when: str) -> str:
    # A copy that is known and busy says more than an index that is.
    ranked = sorted(troubles, key=lambda one: not one.is_copy)
    said = _unique(_trouble(one) for one in ranked)
    more = len(said) - _MOST_HOSTS
    first = "; ".join(said[:_MOST_HOSTS]) + (f"; and {more} more" if more > 0 else "")
    lasting = [one for one in copies if not one.transient]
    rest = f" Other copies: {_listed(lasting)}." if lasting else ""
    return f"Temporary: {first}; it may be had {when}.{rest}"


def _out_of_budget(tried: Sequence[Failure], copies: Sequence[Failure]) -> str:
    detail = next((one.detail for one in tried if one.reason == Reason.BUDGET_EXHAUSTED), None)
    others = [one for one in copies if one.reason != Reason.BUDGET_EXHAUSTED]
    rest = f" Until then: {_listed(others)}." if others else ""
    return f"The search was cut short: {detail or 'this work has used all it may cost'}.{rest}"


def _nothing_known(state: SearchState, failed: Sequence[Failure]) -> FailureReason:
    """No copy was tried; `failed` are the sources that could not be asked."""
    if not state.sources:
        return FailureReason(Reason.UNKNOWN_IDENTIFIER, "No enabled source can look this identifier up.")
    if state.unwanted_forms:
        forms = ", ".join(sorted(state.unwanted_forms))
        return FailureReason(
            Reason.NO_OPEN_COPY, f"Only full text in other forms is known: ask for {forms} with --formats."
        )
    barred = [one for one in failed if one.reason == Reason.ROBOTS]
    sources, silent = _unique(state.sources), _unique(one.source for one in failed if one not in barred)
    rest = f"; {_named(silent)} could not be asked" if silent else ""
    refused = _unique(source for source, said in state.notes if said == "refused")
    rest += f"; {_named(refused)} refused to answer" if refused else ""
    willing = [name for name in sources if name not in silent and name not in refused]
    if state.notes and not barred and all(said in _UNKNOWN for _, said in state.notes):
        return FailureReason(
            Reason.UNKNOWN_IDENTIFIER, f"None of {_sources(len(willing))} knows this identifier{rest}."
        )
    noted = [*(one.reason for one in barred), *(said for _, said in state.notes)]
    walls = _unique(said for said in noted if said in _WORDS)
    if walls:
        # A wall may fall another day; the wish of an owner is the cause only where nothing else stood in the way.
        cause = next((said for said in walls if said != Reason.ROBOTS), Reason.ROBOTS)
        seen = ", ".join(_unique(_placeless(_WORDS[said]) for said in walls))
        return FailureReason(cause, f"No file was found: the pages that should name it are {seen}{rest}.")
    return _not_open([said for _, said in state.notes], _sources(len(willing)), rest)


def _not_open(notes: Sequence[str], sources: str, rest: str) -> FailureReason:
    """No copy is known and no wall was met: the reason that the sources gave."""
    days = [said for said in notes if said.partition(":")[0] == Reason.EMBARGO]
    if days:
        day = min((said.partition(" until ")[2] for said in days if " until " in said), default="")
        return FailureReason(Reason.EMBARGO, f"A copy is under embargo{f' until {day}' if day else ''}{rest}.")
    if Reason.GONE in notes:
        return FailureReason(Reason.GONE, f"The copy that was known has been removed from its archive{rest}.")
    if Reason.CLOSED in notes:
        return FailureReason(Reason.CLOSED, f"The paper is closed: no open copy is known to {sources}{rest}.")
    return FailureReason(Reason.NO_OPEN_COPY, f"No open copy is known to {sources}{rest}.")


def _words(one: Failure) -> str:
    """What was wrong with a copy, with a placeholder for its host."""
    if one.reason == Reason.FILTERED and one.detail:
        return f"left out by your filters ({one.detail})".translate(_NO_BRACES)
    if one.reason == Reason.TAKEN_DOWN and one.detail:
        return one.detail.translate(_NO_BRACES)
    if one.reason == Reason.HTTP_STATUS:
        return _STATUS_WORDS.get(one.http_status or 0, f"answered with status {one.http_status} by {{host}}")
    return _WORDS.get(one.reason, f"no good ({one.reason.partition(':')[0]}) at {{host}}")


def _placeless(words: str) -> str:
    """The words for pages whose hosts are not known any more: `behind a login at {host}` becomes `behind a login`."""
    return words.partition(" {host}")[0].rpartition(" ")[0] if "{host}" in words else words


def _trouble(one: Failure) -> str:
    host = _host(one) or one.source
    if one.http_status is not None:
        return f"{host} answered {one.http_status}"
    return _TROUBLE.get(one.reason, "{host} failed (" + one.reason.partition(":")[0] + ")").format(host=host)


def _listed(copies: Sequence[Failure]) -> str:
    """`2 behind a bot check at a.org, 1 gone (404) from b.org`, the most frequent first."""
    groups: dict[str, list[Failure]] = {}
    for one in copies:
        groups.setdefault(_words(one), []).append(one)
    ranked = sorted(groups.items(), key=lambda group: -len(group[1]))
    parts = [f"{len(ones)} {words.format(host=_hosts(ones))}" for words, ones in ranked[:_MOST_GROUPS]]
    rest = sum(len(ones) for _, ones in ranked[_MOST_GROUPS:])
    return ", ".join(parts) + (f" and {rest} more" if rest else "")


def _hosts(copies: Iterable[Failure]) -> str:
    return _named(_unique(_host(one) or one.source for one in copies))


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _minute(timestamp: float) -> str:
    return f"{utc_iso(timestamp)[:16]}Z"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_HOSTS
    return ", ".join(names[:_MOST_HOSTS]) + (f" and {more} more" if more > 0 else "")


def _host(one: Failure) -> str | None:
    try:
        return host_key(one.url)
    except BadUrl:
        return None


def _tried(copies: Sequence[Failure]) -> str:
    return f"{len(copies)} tried"


def _sources(count: int) -> str:
    return "1 source" if count == 1 else f"{count} sources"
