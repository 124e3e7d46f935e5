"""Tiers of sources: which are asked, in what order, how many at once, and when to stop."""

from DocsToKG.ContentDownload.fallback.orchestrator import FallbackOrchestrator, Tier

__all__ = ["FallbackOrchestrator", "Tier"]
