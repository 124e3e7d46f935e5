"""The names papers go by: which paper a text or an address stands for."""
