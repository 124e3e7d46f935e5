"""The GraphQL schema over the same services, and the limits of a query."""
