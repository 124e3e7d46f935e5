"""Metrics, job log, spans and trace context of this instance."""
