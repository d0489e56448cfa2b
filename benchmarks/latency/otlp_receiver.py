"""Receive OTLP over gRPC, and count all messages.

`tracing` starts this program. It prints its port, and prints the counts when its standard input ends.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class _Counted:
    def __init__(self) -> None:
        self.records = 0


class _Traces(trace_service_pb2_grpc.TraceServiceServicer, _Counted):
    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
        del context
        self.records += sum(len(scope.spans) for each in request.resource_spans for scope in each.scope_spans)
        return trace_service_pb2.ExportTraceServiceResponse()


class _Logs(logs_service_pb2_grpc.LogsServiceServicer, _Counted):
    def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the service's name
        del context
        self.records += sum(len(scope.log_records) for each in request.resource_logs for scope in each.scope_logs)
        return logs_service_pb2.ExportLogsServiceResponse()


def main() -> None:
    """Serve on a free loopback port until standard input ends."""
    server = grpc.server(ThreadPoolExecutor(1))
    traces, logs = _Traces(), _Logs()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(traces, server)  # type: ignore[no-untyped-call]
    logs_service_pb2_grpc.add_LogsServiceServicer_to_server(logs, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop(0).wait()
    sys.stdout.write(f"{traces.records} {logs.records}\n")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
