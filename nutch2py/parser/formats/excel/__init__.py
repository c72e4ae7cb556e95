"""Spreadsheet formats: .xls, .xlsx, number formats and decryption."""
