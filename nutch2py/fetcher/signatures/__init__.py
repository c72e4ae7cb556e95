"""Signatures of requests, by which sites recognize the crawler (Web Bot Auth: RFC 9421 with Ed25519 keys).

Exports: ``signing_keys.KeyFile``, ``request_signer.RequestSigner``, ``key_directory.build_directory``.
"""
