"""examples/verifiers against a service of evaluator_sim: rewards of a fast, a wrong and a broken answer. Exit code 77: verifiers is
not installed.

usage: verifiers_example.py KGRPO_HOST    (run by ctest)
"""
import asyncio
import pathlib
import re
import signal
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]
WRONG = "#include <cuda_runtime.h>\n%s {}\n"


def check(address):
    """Runs in the Python that has verifiers."""
    sys.path[:0] = [str(SOURCE / "examples/verifiers"), str(SOURCE / "python")]
    import verifiers.v1 as vf
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.trace import AgentInfo, TraceTask

    taskset = vf.load_taskset(vf.taskset_config_type("kgrpo-kernels").model_validate(
        {"id": "kgrpo-kernels", "task": {"servers": [address], "device": "h200"}}))
    tasks = list(taskset)
    assert [task.data.name for task in tasks] == ["transpose"], tasks
    task = tasks[0]
    assert "launch" in task.data.prompt and "```cuda" in task.data.prompt

    def traced(reply):
        trace = vf.Trace(task=TraceTask(type="KernelTask", data=task.data), agent=AgentInfo(config=vf.AgentConfig()))
        trace.nodes.append(MessageNode(message=vf.AssistantMessage(content=reply), sampled=True))
        asyncio.run(task.score(trace))
        return trace

    reference = re.search(r"```cuda\n(.*?)```", task.data.prompt, re.DOTALL).group(1)
    same = traced("A first try:\n```cuda\nint x\n```\nBetter:\n```cuda\n" + reference + "```\n")
    assert abs(same.reward - 1.3) < 1e-6, same.rewards
    assert same.metrics == {"compiled": 1.0, "correct": 1.0, "speedup": 1.0}, same.metrics
    assert same.info["kgrpo"]["device"] == "h200" and same.info["kgrpo"]["verdict"] == "correct"
    signature = re.search(r'extern "C" void launch\([^)]*\)', reference).group()
    wrong = traced("```\n" + WRONG % signature + "```")
    assert wrong.reward == -0.5 and wrong.metrics["compiled"] == 1, (wrong.rewards, wrong.info)
    broken = traced("I do not know.")
    assert broken.reward == -1 and broken.info["kgrpo"]["verdict"] == "not_compiled", broken.info
    assert asyncio.run(task.validate(None)) is True
    print("rewards: reference %.2f, wrong %.2f, no kernel %.2f" % (same.reward, wrong.reward, broken.reward))


def main():
    if subprocess.run([sys.executable, "-c", "import verifiers.v1"], stderr=subprocess.DEVNULL).returncode != 0:
        print("skipped: %s has no verifiers 0.4 (pip install verifiers==0.4.0)" % sys.executable)
        return 77
    service = subprocess.Popen([sys.argv[1], "serve", "--listen", "127.0.0.1:0", "--devices", "all", "--problems", "problems/transpose"],
                               cwd=SOURCE, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", service.stdout.readline()).group()
        subprocess.run([sys.executable, __file__, "--check", address], check=True)
    finally:
        service.send_signal(signal.SIGTERM)
        assert service.wait(60) == 0
    return 0


if __name__ == "__main__":
    sys.exit(check(sys.argv[2]) if sys.argv[1] == "--check" else main())
