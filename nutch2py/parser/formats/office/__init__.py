"""Office document plug-ins: OOXML, OLE, OpenDocument, PowerPoint and Outlook.

Exports: ``ooxml.OoxmlParser``, ``opendocument.OpenDocumentParser``.
"""
