"""Repositories, each with its records and files."""
