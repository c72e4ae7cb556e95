"""Office document plug-ins: OOXML, OLE, OpenDocument, PowerPoint and Outlook."""
