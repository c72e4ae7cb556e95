"""Tests of the package indexer."""
