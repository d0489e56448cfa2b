"""Tracing with OpenTelemetry. A process that does not trace loads none of it (ADR 25)."""
