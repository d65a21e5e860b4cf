"""Execution providers that come with ort-abi."""
