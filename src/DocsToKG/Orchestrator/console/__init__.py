"""The web console: one page with static scripts and styles, served from this package."""
