"""Page signatures for duplicate detection."""
