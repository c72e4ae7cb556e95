"""Pages that scripts make: a browser beside the fetcher, which renders what was fetched (``protocol-browser``).

The fetcher asks for a page as for any other. An answer that rules or measured signs choose is loaded into Chromium,
which asks for everything else through a proxy of ours; the document that scripts made of it becomes the content.
"""
