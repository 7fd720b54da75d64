"""Arguments as models send them (faults B76)."""

import math
from typing import Any

import pytest

from agent_server.errors import InvalidArgument
from agent_server.tools import arguments


def _top_k(value: Any) -> int:
    return arguments.whole_number({"top_k": value}, "top_k", default=6, least=1, most=100)


@pytest.mark.parametrize("value", [5, "5", 5.0, " 5 ", "5.0", "+5", "05"])
def test_what_plainly_means_five_is_five(value: Any) -> None:
    assert _top_k(value) == 5


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        "",
        "  ",
        5.5,
        "5.5",
        None,
        math.nan,
        math.inf,
        "NaN",
        "five",
        [],
        {},
        "1e1",
        "1_0",
        pytest.param("9" * 5000, id="digits"),
    ],
)
def test_what_is_no_whole_number_is_refused_by_the_name_of_its_field(value: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        _top_k(value)
    assert caught.value.details["field"] == "top_k"
    assert caught.value.message.startswith("top_k: is ")
    assert "whole number from 1 to 100" in caught.value.message
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("value", [0, -1, 1e9, 101, "0", "-1", "1000000000", pytest.param(10**5000, id="huge")])
def test_what_is_out_of_bounds_is_refused_with_the_bounds_and_never_moved_to_them(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="expected 1 to 100"):
        _top_k(value)


def test_an_argument_left_out_has_its_default() -> None:
    assert arguments.whole_number({}, "top_k", default=6, least=1, most=100) == 6


def test_arguments_may_come_as_an_object_or_as_json_text_of_one() -> None:
    assert arguments.as_object({"query": "x"}) == {"query": "x"}
    assert arguments.as_object('{"query": "x", "top_k": "5"}') == {"query": "x", "top_k": "5"}


@pytest.mark.parametrize("given", ["", "x", "[1]", "null", '"text"', None, 5, [1], "{" * 100_000, "[" * 100_000])
def test_arguments_that_are_no_object_are_refused(given: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        arguments.as_object(given)
    assert caught.value.details["field"] == "arguments"


def test_a_number_where_text_is_asked_for_is_its_digits() -> None:
    assert arguments.text({"query": 4021}, "query") == "4021"


@pytest.mark.parametrize("value", [None, True, 5.5, ["x"], {"a": 1}])
def test_what_is_no_text_is_refused_by_the_name_of_its_field(value: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        arguments.text({"query": value}, "query")
    assert caught.value.details["field"] == "query"


def test_a_text_left_out_is_said_to_be_missing() -> None:
    with pytest.raises(InvalidArgument, match="query: is missing"):
        arguments.text({}, "query")


def test_a_misspelt_argument_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidArgument) as caught:
        arguments.check_names({"query": "x", "topk": 5}, ("query", "top_k"), "search")
    assert caught.value.details["field"] == "topk"
    assert "top_k" in caught.value.hint
