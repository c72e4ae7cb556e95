"""Character encodings: detection, names and prescan.

Exports: ``encoding_detector.EncodingDetector``, ``encoding_detector.decode_unlabeled``, ``encoding_names.decode``,
``encoding_names.resolve_label``.
"""
