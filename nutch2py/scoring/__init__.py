"""What a page is worth: OPIC and link scores.."""
