"""The persistent queue of works, the limits, and the scheduler that runs the pipeline over them."""
