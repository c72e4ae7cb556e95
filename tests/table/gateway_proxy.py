"""A TCP proxy before a gateway, for what a gateway does rarely: lose an answer, cut a connection, come and go."""

import contextlib
import socket
import threading


class GatewayProxy:
    """Passes bytes between clients and the gateway at ``port``; ``tls``: a server-side SSL context for the clients."""

    def __init__(self, port, tls=None):
        self._port, self._tls = port, tls
        self.accepted = 0
        self.answers_to_lose = 0
        self._sockets = set()
        self._listener = None
        self.port = 0
        self.start()

    def start(self):
        """Listen, on the port of before if there was one."""
        self._listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def stop(self):
        """Reject new connections and close the existing ones."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.cut()

    def cut(self):
        """End every connection."""
        for one in list(self._sockets):
            self._end(one)

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            self.accepted += 1
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            if self._tls is not None:
                client = self._tls.wrap_socket(client, server_side=True)
            gateway = socket.create_connection(("127.0.0.1", self._port))
        except OSError:
            client.close()
            return
        self._sockets |= {client, gateway}
        upstream = threading.Thread(target=self._pump, args=(client, gateway, False), daemon=True)
        upstream.start()
        self._pump(gateway, client, True)
        upstream.join()
        # closed only when no thread uses them: OpenSSL would write into whatever file takes the number next
        client.close()
        gateway.close()

    def _pump(self, source, target, answers):
        try:
            while data := source.recv(1 << 16):
                if answers and self.answers_to_lose:
                    self.answers_to_lose -= 1
                    break
                target.sendall(data)
        except OSError:
            pass
        self._end(source)
        self._end(target)

    def _end(self, one):
        self._sockets.discard(one)
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
