"""The services of the control plane, one per resource, and the liveness of workers."""
