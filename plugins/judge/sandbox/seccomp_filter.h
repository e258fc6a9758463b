// The system call filters: for compilers (a list of what is denied), for workers that run a candidate's host code (a
// list of what is allowed), and for those that do so on a GPU (denied). Installed by the sandbox launcher and by the
// workers themselves; all are irrevocable.
#pragma once

#include <string>

namespace kgrpo::evaluator {

// Denies what a compiler never needs and an attacker would like: other architectures, ptrace, mounts, keys, io_uring,
// bpf, sockets, kernel modules, namespaces, terminals' input queue. Denied calls fail with EPERM. Returns "" or why it
// could not be installed.
std::string InstallCompilerFilter();

// The same for a profiler and what it runs, whose processes speak through sockets and named pipes: those are allowed.
// Only for where the network is a namespace of its own.
std::string InstallProfilerFilter();

// Allows reading and writing open descriptors, memory, time, its own signals, opening files for reading; any other
// system call raises SIGSYS (the worker reports its number). No new process or thread, no exec, no socket.
std::string InstallWorkerFilter();

// The filter for a worker that runs a candidate beside a live CUDA context, whose driver needs most of the kernel:
// denies what would start a process or thread, reach the network, other processes, or files; such a call raises SIGSYS
// (the worker reports its number). To be installed once the context is made. Returns "" or why it could not be
// installed.
std::string InstallGpuWorkerFilter();

// The name of a system call of this machine ("clone"), or its number.
std::string SystemCallName(int number);

}  // namespace kgrpo::evaluator
