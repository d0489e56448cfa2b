"""The server over gRPC and HTTP: messages, tokens, deadlines, the table of errors, health and the log; no scoring."""
