"""How a process of ours speaks OpenTelemetry: context over the wire, events, and providers that never hold it up.

Nothing here is imported by a process that traces nothing.
"""
