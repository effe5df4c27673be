"""The shape of a job as each message tells it: both ends of the socket compare it."""

from gateway.core.arrays import parse_array
from gateway.core.readback import Shape
from gateway.wire import messages as m


def asked_shape(request: m.SubmitRequest) -> Shape:
    return Shape(
        account=request.account,
        qos=request.qos,
        partition=request.partition,
        nodes=request.nodes,
        gpus=request.nodes * request.gpus_per_node,
        time_limit_minutes=request.time_limit_minutes,
        tasks=parse_array(request.array).count if request.array else None,
    )


def shape_of(job: m.AcceptedJob) -> Shape:
    return Shape(
        account=job.account,
        qos=job.qos,
        partition=job.partition,
        nodes=job.nodes,
        gpus=job.gpus,
        time_limit_minutes=job.time_limit_minutes,
        tasks=job.array_tasks,
    )
