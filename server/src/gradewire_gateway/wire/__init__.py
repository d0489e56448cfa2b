"""Methods, messages and bodies: what comes in and goes out, in JSON and on the way to the server."""
