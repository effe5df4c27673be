"""When would it start? `sbatch --test-only` as the person, with an argument vector."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from gateway.broker.accounts import Account
from gateway.broker.commands import Commands
from gateway.broker.failures import from_errno
from gateway.errors import BrokerRefused, GatewayError
from gateway.wire import messages as m

_START = re.compile(r"to start at (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)", re.ASCII)
_SAYS = re.compile(r"(?:sbatch: (?:error|fatal)|allocation failure): (.+)")


@dataclass(frozen=True, slots=True)
class Estimator:
    """`numbers` translates Slurm's sentences back: sbatch prints no error number."""

    commands: Commands
    numbers: Mapping[str, int]

    def estimate(self, account: Account, request: m.SubmitRequest) -> m.Estimate:
        done = self.commands.run(
            arguments(request),
            person=account,
            stdin=request.script,
            environment={**account.environment(), "PATH": "/usr/local/bin:/usr/bin:/bin"},
        )
        text = done.stderr.strip()
        found = _START.search(text)
        if done.status == 0 and found:
            start = datetime.fromisoformat(found.group(1)).replace(tzinfo=UTC)
            return m.Estimate(start_time=start, message=text)
        if done.status == 0:
            return m.Estimate(start_time=None, message=text)
        raise self._refusal(text)

    def _refusal(self, text: str) -> GatewayError:
        sentences = [found.strip() for found in _SAYS.findall(text)]
        for sentence in reversed(sentences):
            if sentence in self.numbers:
                return from_errno(self.numbers[sentence], sentence, text)
        return BrokerRefused(text[:500])


def arguments(request: m.SubmitRequest) -> list[str]:
    """Every value is one word with its option: a value can be no option of its own."""
    words = [
        "sbatch",
        "--test-only",
        f"--job-name={request.name}",
        f"--account={request.account}",
        f"--partition={request.partition}",
        f"--qos={request.qos}",
        f"--nodes={request.nodes}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={request.cpus_per_task}",
        f"--time={request.time_limit_minutes}",
        f"--chdir={request.working_directory}",
        f"--output={request.output}",
        "--export=NIL",
    ]
    if request.gpus_per_node:
        kind = f"{request.gpu_type}:" if request.gpu_type else ""
        # As the script's own line says it: Slurm takes no --gres beside --gpus-per-node.
        words.append(f"--gpus-per-node={kind}{request.gpus_per_node}")
    if request.array is not None:
        words.append(f"--array={request.array}")
    if request.on_nodes is not None:
        words.append(f"--nodelist={request.on_nodes}")
    if request.memory_mb_per_node is not None:
        words.append(f"--mem={request.memory_mb_per_node}M")
    if request.after_ok is not None:
        words.append(f"--dependency=afterok:{request.after_ok}")
    return words
