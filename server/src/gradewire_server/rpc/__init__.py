"""The gRPC and operational HTTP servers, with error codes, health, telemetry and the log."""
