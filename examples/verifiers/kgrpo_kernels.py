"""kgrpo's evaluator as an environment of `verifiers` (0.4): one task a problem, whose reward is what kgrpo pays for the kernel.

    kgrpo-host serve &                                # judges; no GPU needed
    pip install verifiers==0.4.0 uv
    PYTHONPATH=examples/verifiers:python vf-eval kgrpo-kernels -m MODEL -n 5 --no-push \\
      --env.agent.harness.id null --env.agent.runtime.type subprocess \\
      --env.taskset.problems '["transpose","softmax_long"]' --env.taskset.task.device h200

The model answers with a whole kernel in its last ```-block. Trainers that take `verifiers` environments train on it as it is.
Several servers: --env.taskset.task.servers '["http://10.0.0.7:8421","http://10.0.0.8:8421"]'; the token is $KGRPO_TOKEN.
"""
import asyncio
import functools
import re

import verifiers.v1 as vf
from kgrpo_client import Client

__all__ = ["KernelTaskset"]

PROMPT = """Write a faster CUDA kernel.

{task}

The present one:
```cuda
{source}```
Answer with the whole file in a ```cuda block."""


def kernel_of(completion):
    """The last ```-block; the whole text where there is none."""
    blocks = re.findall(r"```[a-z+]*\n(.*?)```", completion, re.DOTALL)
    return blocks[-1] if blocks else completion


@functools.lru_cache(maxsize=None)
def client_of(servers):
    """One a process, which keeps its connections."""
    return Client(list(servers))


class KernelData(vf.TaskData):
    problem: str


class KernelTaskConfig(vf.TaskConfig):
    servers: list[str] = ["http://127.0.0.1:8421"]
    """Addresses of `kgrpo-host serve`."""
    device: str | None = None
    """Which of their devices judges; None: their first."""


class KernelTask(vf.Task[KernelData, vf.State, KernelTaskConfig]):
    @vf.reward
    async def kernel(self, trace: vf.Trace) -> float:
        """-1 where the kernel does not compile, -0.5 where it is wrong, otherwise 0.3 + its speedup over the reference."""
        client = client_of(tuple(self.config.servers))
        result = await asyncio.to_thread(client.evaluate, self.data.problem, kernel_of(trace.last_reply), self.config.device)
        trace.record_metrics({"compiled": result.compiled, "correct": result.correct, "speedup": result.speedup or 0.0})
        trace.info["kgrpo"] = {"device": result.device, "verdict": result.verdict, "diagnosis": result.diagnosis}
        return result.reward()

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Whether the service judges the reference kernel correct."""
        client = client_of(tuple(self.config.servers))
        return (await asyncio.to_thread(client.evaluate, self.data.problem, None, self.config.device)).correct


class KernelTasksetConfig(vf.TasksetConfig):
    problems: list[str] = []
    """Names of the service's problems; none: all of them."""
    task: KernelTaskConfig = KernelTaskConfig()


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    def load(self):
        client = client_of(tuple(self.config.task.servers))
        for name in self.config.problems or client.problems():
            told = client.problem(name)
            prompt = PROMPT.format(task=told["task"], source=told["source"])
            yield KernelTask(KernelData(id=name, name=name, problem=name, prompt=prompt), self.config.task)
