"""Search for a paper tier by tier: which sources, in what order, how many at once, and when to stop."""

from DocsToKG.ContentDownload.fallback.orchestrator import FallbackOrchestrator
from DocsToKG.ContentDownload.fallback.rules import SearchRules

__all__ = ["FallbackOrchestrator", "SearchRules"]
