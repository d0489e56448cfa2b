"""What is noted of requests: log, figures, traces, and the middleware that notes it."""
