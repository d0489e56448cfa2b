"""OpenTelemetry in the server: the span of a call, events of its results; nothing of it is imported while off."""
