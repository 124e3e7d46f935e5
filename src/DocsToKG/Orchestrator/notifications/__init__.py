"""Wake-ups. A lost one costs latency, never correctness."""
