"""Independent tasks, on this machine or on a Ray cluster: one executor behind all that spreads."""

from mvlstm.engine.executor import Engine, check_engine, opened
from mvlstm.engine.records import recorded

__all__ = ["Engine", "check_engine", "opened", "recorded"]
