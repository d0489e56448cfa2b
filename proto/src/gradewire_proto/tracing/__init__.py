"""Tracing by OpenTelemetry, of which a process that traces nothing loads no part (ADR 25)."""
