"""Character encodings: detection, names and prescan."""
