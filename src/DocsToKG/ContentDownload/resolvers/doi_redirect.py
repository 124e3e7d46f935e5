"""doi.org: follow the DOI to the publisher and take the PDF, or the full-text links of the page reached.

The client follows the redirects by the rules of each host; pages that only lead on (link hubs, choosers, refresh
stubs) are followed here, at most two. Addresses built from the DOI by rules are guesses: they come last, or alone where
the page could not be read.
"""

from __future__ import annotations

from collections.abc import Iterator

from DocsToKG.ContentDownload.api.ports import Call, Client
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings, encode_segment, in_order, unique_plans
from DocsToKG.ContentDownload.resolvers.landing.visits import LandingVisits, is_final
from DocsToKG.ContentDownload.resolvers.links.copy_facts import facts_at, with_facts
from DocsToKG.ContentDownload.resolvers.site_rules.load import rules_with
from DocsToKG.ContentDownload.resolvers.site_rules.rules import MIN_SHARE, host_of

DEFAULT_BASE_URL = "https://doi.org"
# What the publisher says of the paper itself leaves nothing to guess.
_NO_GUESS_AFTER = (Reason.UNKNOWN_IDENTIFIER, Reason.PAYWALL)
# A green copy lies in a repository because that of the publisher is closed.
_CLOSED_AT_THE_PUBLISHER = ("closed", "green")


class DoiRedirectResolver:
    name = "doi_redirect"

    def __init__(self, *, settings: ResolverSettings) -> None:
        self._base = settings.base(DEFAULT_BASE_URL)
        self._rules = rules_with(settings.options.get("site_rules"))
        self._min_share = float(settings.options.get("guess_share", MIN_SHARE))

    def applies_to(self, work: WorkArtifact) -> str | None:
        return None if work.doi is not None else "no_doi"

    async def resolve(self, work: WorkArtifact, client: Client, call: Call) -> ResolverResult:
        if work.doi is None:
            return ResolverResult(notes=("no_doi",))
        start = f"{self._base}/{encode_segment(work.doi)}"
        visits = LandingVisits(
            work=work,
            source=self.name,
            client=client,
            call=call,
            host_type="publisher",
            pages_left=3,
            rules=self._rules,
        )
        try:
            result = await visits.visit(start)
        except CandidateRejected as rejection:
            guesses = tuple(self.guesses(work))
            if is_final(rejection.reason) or not guesses:
                raise
            return visits.with_metadata(ResolverResult(guesses, (f"{rejection.reason}: {rejection.detail}"[:200],)))
        notes = tuple(self._note_of_doi_org(note) for note in result.notes)
        guesses = tuple(guess for guess in self.guesses(work) if _is_plausible(guess, notes))
        plans = unique_plans(in_order([*result.plans, *guesses]))
        return visits.with_metadata(ResolverResult(plans, notes, result.work, result.supplements))

    def guesses(self, work: WorkArtifact) -> Iterator[DownloadPlan]:
        """The addresses that rules build for the file of this DOI."""
        known = facts_at(work, f"{DEFAULT_BASE_URL}/{work.doi}")
        only_open = work.oa_status in _CLOSED_AT_THE_PUBLISHER
        for rule, address in self._rules.guesses(work.doi or "", only_open=only_open, min_share=self._min_share):
            guess = DownloadPlan(
                url=address,
                resolver_name=self.name,
                host_type=rule.host_type,
                evidence="prefix_rule",
                is_guess=True,
            )
            yield with_facts(guess, known)

    def _note_of_doi_org(self, note: str) -> str:
        """doi.org itself answers 404 for a DOI that nobody registered, and 400 for one that cannot be."""
        host = self._base.partition("://")[2]
        if note in (f"http-status: 404 from {host}", f"http-status: 400 from {host}"):
            return f"{Reason.UNKNOWN_IDENTIFIER}: doi.org does not know this DOI"
        return note


def _is_plausible(guess: DownloadPlan, notes: tuple[str, ...]) -> bool:
    """Not where the paper is unknown or behind a paywall, and not on a host that has just sent a challenge."""
    challenge = f"{Reason.CHALLENGE}: {host_of(guess.url)}"
    return not any(note == challenge or note.partition(":")[0] in _NO_GUESS_AFTER for note in notes)
