"""How messages reach a server over gRPC, or the engine in this process; `gradewire.testing` has a third way."""
