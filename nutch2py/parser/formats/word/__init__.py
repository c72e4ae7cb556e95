"""Word processing formats: .doc, RTF and shared list numbering."""
