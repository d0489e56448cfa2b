"""Transports to a gRPC server and to an engine in this process."""
