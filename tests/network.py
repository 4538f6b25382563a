"""Blocks the network: tests may reach servers on this machine only."""

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
