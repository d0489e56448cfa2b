"""Keeps hosts from connecting for a while, in the system, before this process has any work with them.

The listening sockets get a packet filter (`SO_ATTACH_FILTER`, which needs no privilege) that drops what comes from
these hosts. To them it looks as if the network lost their packets: their system tries again, and a second after they
are let in again they are connected. Connections that stand are left alone.
"""

import ctypes
import ipaddress
import logging
import socket
import struct
import sys
from collections.abc import Collection
from typing import Final

from gradewire_server.rpc.connections.listening import listening_sockets

_log = logging.getLogger(__name__)

MAX_HOSTS: Final = 64
"""That are kept out at a time: the system bounds the memory of a filter."""

_ATTACH_FILTER: Final = 26
_DETACH_FILTER: Final = 27
_INSTRUCTION: Final = struct.Struct("=HBBI")
_NETWORK_HEADER: Final = 0xFFF00000
"""Offset at which a filter reads the header of IP."""
_LOAD_BYTE, _LOAD_WORD, _AND, _JUMP, _JUMP_IF_EQUAL, _RETURN = 0x30, 0x20, 0x54, 0x05, 0x15, 0x06
_VERSION_4: Final = 0x40
_SOURCE_4: Final = _NETWORK_HEADER + 12
_SOURCE_6: Final = _NETWORK_HEADER + 8
_WHOLE: Final = 0xFFFFFFFF


class AddressFilter:
    """Of the sockets of this process that listen on `port`; knows of no filters on systems other than Linux.

    Args:
        port: That callers connect to.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._kept_out: frozenset[str] = frozenset()
        self._works = sys.platform == "linux"

    def keep_out(self, hosts: Collection[str]) -> None:
        """Lets all hosts connect but these, of which the first `MAX_HOSTS` count; names that are no address are left.

        Where the system refuses the filter, that is logged once and nobody is kept out.
        """
        addresses = [each for each in hosts if _is_address(each)][:MAX_HOSTS]
        if not self._works or frozenset(addresses) == self._kept_out:
            return
        try:
            self._set(program(addresses) if addresses else b"")
        except OSError as error:
            self._works = False
            _log.warning("hosts that reset calls cannot be kept from connecting again: %s", error.strerror or error)
        else:
            self._kept_out = frozenset(addresses)

    def _set(self, code: bytes) -> None:
        kept = ctypes.create_string_buffer(code, len(code))
        argument = struct.pack("@HP", len(code) // _INSTRUCTION.size, ctypes.addressof(kept))
        for ours in listening_sockets(self._port):
            if code:
                ours.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, argument)
            elif self._kept_out:
                ours.setsockopt(socket.SOL_SOCKET, _DETACH_FILTER, 0)


def program(addresses: Collection[str]) -> bytes:
    """A filter that drops packets from these addresses and lets all others pass, as the system wants it.

    Args:
        addresses: Of IP, version 4 or 6.
    """
    parsed = [ipaddress.ip_address(each) for each in addresses]
    lines_4 = [_code(_LOAD_WORD, 0, 0, _SOURCE_4)]
    for each in parsed:
        if each.version == 4:
            lines_4 += [_code(_JUMP_IF_EQUAL, 0, 1, int(each)), _code(_RETURN, 0, 0, 0)]
    lines_4.append(_code(_RETURN, 0, 0, _WHOLE))
    lines_6 = []
    for each in parsed:
        if each.version == 6:
            for place, word in enumerate(struct.unpack(">4I", each.packed)):
                past = 2 * (3 - place) + 1  # what is left of this address
                lines_6 += [
                    _code(_LOAD_WORD, 0, 0, _SOURCE_6 + 4 * place),
                    _code(_JUMP_IF_EQUAL, 0, past, word),
                ]
            lines_6.append(_code(_RETURN, 0, 0, 0))
    lines_6.append(_code(_RETURN, 0, 0, _WHOLE))
    begin = [
        _code(_LOAD_BYTE, 0, 0, _NETWORK_HEADER),
        _code(_AND, 0, 0, 0xF0),
        _code(_JUMP_IF_EQUAL, 1, 0, _VERSION_4),
        _code(_JUMP, 0, 0, len(lines_4)),
    ]
    return b"".join([*begin, *lines_4, *lines_6])


def _code(operation: int, if_true: int, if_false: int, value: int) -> bytes:
    return _INSTRUCTION.pack(operation, if_true, if_false, value)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return "%" not in host  # of one link: the filter would not tell whose
