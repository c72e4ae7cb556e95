"""Tables and indexes that released versions wrote, and what this version makes of them."""
