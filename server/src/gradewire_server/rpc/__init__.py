"""The gRPC and HTTP transport: messages, tokens, deadlines, error codes, health and the log."""
