"""Servers on this machine may be reached; anything else not, as in all tests."""

import socket

import pytest


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    connect = socket.socket.connect

    def only_here(self, address, *arguments):
        if self.family != socket.AF_UNIX and address[0] != "127.0.0.1":
            raise OSError(f"a test tried to reach {address}; tests need no network")
        return connect(self, address, *arguments)

    monkeypatch.setattr(socket.socket, "connect", only_here)
