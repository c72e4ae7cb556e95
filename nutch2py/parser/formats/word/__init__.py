"""Word processing formats: .doc, RTF and shared list numbering.

Exports: ``msword.read_word``, ``list_numbering.DocxLists``, ``field_codes.find_field_target``.
"""
