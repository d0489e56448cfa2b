"""Transports to a server over gRPC and to an engine in this process; `gradewire.testing` has a third one."""
