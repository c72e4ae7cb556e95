"""Spreadsheet formats: .xls, .xlsx, number formats and decryption.

Exports: ``xlsx.read_sheets``, ``biff.read_workbook``, ``ooxml_decryption.decrypt_package``.
"""
