"""Test data of others, got by git and never copied in: how much of each is read as its owners expect."""
