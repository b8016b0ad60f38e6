"""Options derive from the declarations: names, help, defaults; groups arrive as mappings."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from mvlstm.cli import compare, fit, tune
from mvlstm.cli.app import app
from mvlstm.cli.options import Given, Group, command, option, option_group
from mvlstm.cli.session import Output
from mvlstm.settings import MVLSTMSettings, declared

GROUP = Group(
    {
        "first": Annotated[str, option("First.")],
        "second": Annotated[int, option("Second.")],
        "third": Annotated[list[str], option("Third.")],
    },
    required=("first",),
    readers={"first": str.upper},
)


def shown(name: str) -> dict[str, Any]:
    """Return the options of a command by parameter."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return {one.name: one for one in commands[name].params}


def test_fit_tells_every_setting_and_its_default() -> None:
    options = shown("fit")
    for one in declared(MVLSTMSettings):
        if one.name == "verbose":
            continue
        found = options[one.name]
        assert found.show_default == (False if one.default is None else str(one.default))
        assert found.help and found.rich_help_panel == one.panel
    assert options["gates"].metavar == "full|variable"
    assert options["sigma"].metavar == "NUMBER|learned|predicted|calibrated"
    assert options["l2_sum"].opts == ["--l2-sum"]
    assert options["l2_sum"].secondary_opts == ["--l2-mean"]
    assert "--gates variable" in options["isolation"].help
    assert options["schedule"].metavar == "constant|annealed"
    by_effort = "By default 24; 8 with --effort quick, 100 with --effort best"
    assert by_effort in options["max_epochs"].help
    text = CliRunner().invoke(app, ["fit", "--help"], env={"COLUMNS": "200"}).stdout
    assert "[default: (30)]" in text and "[default: (0.995)]" in text


@pytest.mark.parametrize("module", [fit, compare, tune], ids=lambda m: m.__name__)
def test_columns_and_reading_are_the_same_everywhere(module: Any) -> None:
    name = module.__name__.rpartition(".")[2]
    options, same = shown(name), shown("fit")
    names = ("target", "time", "series", "variables", "exclude", "known", "categorical")
    for one in (*names, "sep", "decimal", "missing", "gaps", "calendar", "transform"):
        assert (options[one].opts, options[one].help) == (same[one].opts, same[one].help)


@pytest.mark.parametrize("name", ["fit", "check", "compare", "tune", "graph"])
def test_what_a_message_on_rows_advises_every_command_takes(name: str) -> None:
    assert {"na_values", "missing", "fill_limit", "gaps", "duplicates", "exclude"} <= {*shown(name)}


def test_a_command_shows_the_default_that_it_has() -> None:
    assert shown("compare")["members"].show_default == "3"
    assert shown("compare")["test"].show_default == "0.2"
    assert shown("fit")["test"].show_default == "0"


def test_a_group_arrives_as_a_mapping_of_what_was_given() -> None:
    seen: dict[str, Any] = {}

    @command
    def toy(
        output: Output,
        some: Annotated[Given, GROUP],
        model: Annotated[Given, option_group(MVLSTMSettings, "sigma", "calendar", "l2_sum")],
        again: bool = False,
    ) -> None:
        """Toy."""
        seen.update(some=some, model=model, again=again)
        output.data = {"done": True}

    assert list(inspect.signature(toy).parameters) == [
        *("first", "second", "third", "sigma", "calendar", "l2_sum", "again", "as_json", "debug")
    ]
    one = typer.Typer()
    one.command()(toy)
    run = CliRunner()
    assert run.invoke(one, ["--first", "a", "--json"]).stdout.startswith('{\n  "done": true')
    assert seen == {"some": {"first": "A"}, "model": {}, "again": False}
    words = ["--first", "b", "--third", "x", "--second", "0", "--sigma", "0.5"]
    run.invoke(one, [*words, "--calendar", "hour,weekday", "--l2-mean", "--again"])
    assert seen["some"] == {"first": "B", "second": 0, "third": ["x"]}
    assert seen["model"] == {"sigma": 0.5, "calendar": ["hour", "weekday"], "l2_sum": False}
    assert run.invoke(one, []).exit_code == 2
