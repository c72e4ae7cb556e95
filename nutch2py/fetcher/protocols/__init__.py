"""Protocols of the fetcher: HTTP over libcurl, FTP, file URLs, DNS and the address filter.

Exports: ``fetch_response.FetchResponse``, ``http_settings.HttpSettings``, ``dns.DnsCache``,
``address_filter.AddressFilter``.
"""
