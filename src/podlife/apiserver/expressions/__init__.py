"""Expressions of admission policies and of match conditions: their environment, compilation and evaluation.

Pure. `ExpressionCompiler` compiles the expressions of one policy for both its validation and its use; an `Evaluation`
runs some of them with upstream's budget for all of them together. Errors are in upstream's words.
"""

from podlife.apiserver.expressions.compiler import (
    ANNOTATION_TYPES,
    PATCH_TYPES,
    Expression,
    ExpressionCompiler,
    compile_condition,
    go_type_name,
)
from podlife.apiserver.expressions.environment import Declarations
from podlife.apiserver.expressions.evaluation import Evaluation, OutOfBudgetError, meets_conditions

__all__ = [
    "ANNOTATION_TYPES",
    "PATCH_TYPES",
    "Declarations",
    "Evaluation",
    "Expression",
    "ExpressionCompiler",
    "OutOfBudgetError",
    "compile_condition",
    "go_type_name",
    "meets_conditions",
]
