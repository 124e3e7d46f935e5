"""Limits of a GraphQL query: its depth and its cost are checked before it is executed.

Knows the syntax tree, not the meaning of fields. Promises: fragments count wherever they are used, and a cycle of them
is refused; a list costs as many nodes as it may return.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    IntValueNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    VariableNode,
    parse,
)

MAX_DEPTH = 8
MAX_COST = 20_000
_MAX_TOKENS = 2000
_DEFAULT_FIRST = 50
_MAX_FIRST = 500


def checked(query: str, variables: Mapping[str, Any], kind: OperationType) -> DocumentNode:
    """The question as a tree; a `GraphQLError` when it is of another kind, too deep or too dear."""
    document = parse(query, no_location=True, max_tokens=_MAX_TOKENS)
    fragments = {each.name.value: each for each in document.definitions if isinstance(each, FragmentDefinitionNode)}
    for each in document.definitions:
        if isinstance(each, OperationDefinitionNode):
            if each.operation is not kind:
                raise GraphQLError(f"only a {kind.value} is answered here")
            cost = _cost(each.selection_set, fragments, variables, 1, ())
            if cost > MAX_COST:
                raise GraphQLError(f"the question costs {cost}, more than {MAX_COST}; ask for fewer at once")
    return document


def _cost(
    chosen: SelectionSetNode | None,
    fragments: Mapping[str, FragmentDefinitionNode],
    variables: Mapping[str, Any],
    depth: int,
    within: tuple[str, ...],
) -> int:
    if chosen is None:
        return 0
    if depth > MAX_DEPTH:
        raise GraphQLError(f"the question is nested more than {MAX_DEPTH} deep")
    total = 0
    for node in chosen.selections:
        if isinstance(node, FieldNode):
            if node.name.value.startswith("__"):
                total += 1  # the schema itself is small and known
                continue
            inner = _cost(node.selection_set, fragments, variables, depth + 1, within)
            total += 1 + inner * _first(node, variables)
        elif isinstance(node, InlineFragmentNode):
            total += _cost(node.selection_set, fragments, variables, depth, within)
        elif isinstance(node, FragmentSpreadNode):
            name = node.name.value
            if name in within or len(within) > MAX_DEPTH:
                raise GraphQLError("fragments must not go in circles")
            found = fragments.get(name)
            total += _cost(found.selection_set if found else None, fragments, variables, depth, (*within, name))
        if total > MAX_COST * 10:
            break
    return total


def _first(node: FieldNode, variables: Mapping[str, Any]) -> int:
    """How many a field may bring: what it says, and a usual page where it is a list by name."""
    for argument in node.arguments or ():
        if argument.name.value == "first":
            value = argument.value
            given = variables.get(value.name.value) if isinstance(value, VariableNode) else None
            if isinstance(value, IntValueNode):
                given = int(value.value) if len(value.value) < 10 else _MAX_FIRST
            return min(max(1, given), _MAX_FIRST) if isinstance(given, int) else _DEFAULT_FIRST
    return _DEFAULT_FIRST if node.name.value in ("jobs", "deadLetters", "incidents", "packRuns", "workers") else 1
