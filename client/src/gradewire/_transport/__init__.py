"""How messages reach a server over gRPC; other transports stand in `gradewire.testing` and `gradewire._embedded`."""
