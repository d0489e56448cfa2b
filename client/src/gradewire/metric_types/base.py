"""What all metrics share."""

from dataclasses import dataclass
from typing import ClassVar

from gradewire.metric_types.wire import wire_parameters
from gradewire_proto.v1 import types_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric as a value: a name, and typed parameters; None leaves one to the call, then to the server.

    Fields are named as in the metric's message in types.proto, from which form on the wire, line and checks follow. A
    `reference_set` beside them names what a parameter with the value prepared reads.

    Attributes:
        version: Insist on this version of the metric's definition; None: any.

    Raises:
        InvalidRequest: A value is of the wrong type, or not among the choices. Ranges are for the server to judge.
    """

    name: ClassVar[str]
    # Whether `model` is a judge, a language model, and no encoder.
    needs_judge: ClassVar[bool] = False
    # Whether `model` is a grader, which reads question, reference and answer together, and no encoder.
    needs_grader: ClassVar[bool] = False
    # The parameter that names a judge beside the encoder `model`; "" where there is none.
    judge_parameter: ClassVar[str] = ""
    # What an item must have so that the metric with its defaults can grade it, beside one reference.
    needs_question: ClassVar[bool] = False
    least_references: ClassVar[int] = 1
    needs_values: ClassVar[bool] = False
    # Whether it counts over references of several items: by default the request's.
    needs_corpus: ClassVar[bool] = False
    # Whether it compares a pair of answers, and grades no item.
    needs_pair: ClassVar[bool] = False
    version: int | None = None

    def __post_init__(self) -> None:
        for name, parameter in wire_parameters(self.name).items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, parameter.checked(value))

    def to_spec(self) -> types_pb2.MetricSpec:
        """The metric as the wire has it, where the reference set belongs to the request."""
        spec = types_pb2.MetricSpec()
        message = getattr(spec, self.name)
        message.SetInParent()
        for name, parameter in wire_parameters(self.name).items():
            parameter.write(message, getattr(self, name))
        return spec

    @classmethod
    def asks_judge(cls) -> bool:
        """Whether it may ask a judge, so that an item may take seconds and not milliseconds."""
        return cls.needs_judge or bool(cls.judge_parameter)

    @property
    def prepared_parameter(self) -> str | None:
        """The parameter whose value prepared reads the call's reference set; None where there is none."""
        return next(
            (name for name, parameter in wire_parameters(self.name).items() if "prepared" in parameter.choices), None
        )

    @property
    def reads_prepared(self) -> bool:
        """Whether the score depends on the call's reference set, as far as the metric says itself."""
        return self.prepared_parameter is not None and getattr(self, self.prepared_parameter) == "prepared"
