"""The history of a tenant: as a feed, as the decisions of people, and as rates by the minute."""
