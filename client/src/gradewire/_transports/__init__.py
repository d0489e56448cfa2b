"""Transports over gRPC and to an engine in this process; `gradewire.testing` has a third."""
