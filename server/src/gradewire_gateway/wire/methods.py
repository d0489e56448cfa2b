"""The methods of all services, as the protos' descriptors have them."""

import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from google.protobuf.descriptor import Descriptor, FileDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

import gradewire_proto.v1


@dataclass(frozen=True, slots=True)
class RpcMethod:
    """One method.

    Attributes:
        service: Full name of its service, ``gradewire.v1.Scoring``.
        name: ``Score``.
        request_type: Message class of its requests.
        reply_type: Message class of its replies.
        client_streaming: Whether there are many requests.
        server_streaming: Whether there are many replies.
    """

    service: str
    name: str
    request_type: type[Message]
    reply_type: type[Message]
    client_streaming: bool
    server_streaming: bool

    @property
    def path(self) -> str:
        """Path of gRPC and of HTTP, ``/gradewire.v1.Scoring/Score``."""
        return f"/{self.service}/{self.name}"

    @property
    def request(self) -> Descriptor:
        """Describes its requests."""
        return _plain(self.request_type)

    @property
    def reply(self) -> Descriptor:
        """Describes its replies."""
        return _plain(self.reply_type)

    @property
    def streams(self) -> bool:
        """Whether its twin answers in lines."""
        return self.client_streaming or self.server_streaming


@cache
def all_methods() -> tuple[RpcMethod, ...]:
    """Of all services of gradewire.v1, by path."""
    names = [module.name for module in pkgutil.iter_modules(gradewire_proto.v1.__path__)]
    files = (_descriptor(name) for name in names if name.endswith("_pb2"))
    found = (
        _method(method)
        for file in files
        for service in file.services_by_name.values()
        for method in service.methods_by_name.values()
    )
    return tuple(sorted(found, key=lambda method: method.path))


def method_at(path: str) -> RpcMethod:
    """The method with a path; a StopIteration where there is none."""
    return next(method for method in all_methods() if method.path == path)


def _plain(kind: type[Message]) -> Descriptor:
    descriptor: Any = kind.DESCRIPTOR
    found: Descriptor = descriptor
    return found


def _descriptor(name: str) -> FileDescriptor:
    descriptor: FileDescriptor = import_module(f"gradewire_proto.v1.{name}").DESCRIPTOR
    return descriptor


def _method(method: MethodDescriptor) -> RpcMethod:
    return RpcMethod(
        method.containing_service.full_name,
        method.name,
        GetMessageClass(method.input_type),
        GetMessageClass(method.output_type),
        client_streaming=method.client_streaming,
        server_streaming=method.server_streaming,
    )
