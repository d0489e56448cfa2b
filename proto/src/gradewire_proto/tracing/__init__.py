"""Tracing with OpenTelemetry. A process that does not trace does not load OpenTelemetry (ADR 25)."""
