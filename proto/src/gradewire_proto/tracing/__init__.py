"""Tracing with OpenTelemetry. A process without tracing does not load OpenTelemetry (ADR 25)."""
