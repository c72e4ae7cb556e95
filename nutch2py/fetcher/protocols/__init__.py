"""Protocols of the fetcher: HTTP over libcurl, FTP, file URLs, DNS and the address filter."""
