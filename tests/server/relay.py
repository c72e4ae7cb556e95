"""Relay of connections, with TLS on request: ``python -m tests.server.relay ADDRESS HOST PORT CERTIFICATE``.

It prints its port and runs until it is killed. It is a process of its own because a browser leaves
connections half open, and asyncio on Python 3.11 cannot close those that are still in their handshake.
"""

from __future__ import annotations

import asyncio
import ssl
import sys


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until either end closes."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def main(address: str, host: str, port: str, certificate: str) -> None:
    """Listen on a free port of an address and pass connections on."""
    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            other_reader, other_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, other_writer), copy(other_reader, writer))

    listener = await asyncio.start_server(accept, address, 0, ssl=context)
    print(listener.sockets[0].getsockname()[1], flush=True)
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
