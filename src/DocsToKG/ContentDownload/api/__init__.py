"""The shared words of the package: values, steps and ports. No I/O here."""
