"""OpenTelemetry in the client: spans and events by the application's own providers, where it has loaded the library."""
