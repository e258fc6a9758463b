// Streams, events and graphs: everything runs in order of issue, except work on a stream that is captured: it is kept
// in a graph, to run when the graph is launched. The rules and errors are CUDA's (CUDA programming guide,
// stream capture). One thread at a time, as the sandbox allows a candidate no more.
#pragma once

#include <cstdint>
#include <vector>

#include "interpreter/client/device_work.h"

namespace kgrpo::interpreter {

// Work in order of issue, which is one that respects every dependency; a node's number is its handle.
struct Graph {
  struct Node {
    uintptr_t number;
    Work work;
  };
  std::vector<Node> nodes;
  Node* Find(const void* handle);
};
uintptr_t NewNodeNumber();

// All int functions return a CudaError. Streams and events are the caller's handles, which are never dereferenced.

// Runs the work, or adds it to the graph if the stream is captured.
int Submit(void* stream, Work work);
// The next launch begins only when all before it have ended, whatever its attributes allow.
void EndOverlap();
// Check a call that waits for a stream or for the whole device, or that runs at once (cudaMemcpy, cudaMalloc). The
// result says whether the captures in progress allow it; a capture that does not becomes invalid.
int WaitForStream(void* stream);
int WaitForDevice();
int WorkAtOnce();
// Tells the evaluator that the host waits for the device, unless the call fails with `error`. Returns it.
int Waited(int error);
// Runs the work immediately on the default stream, if the captures in progress allow it.
int RunAtOnce(const Work& work);
bool IsCapturing(void* stream);

void AddStream(void* stream, unsigned flags);
void RemoveStream(void* stream);

int RecordEvent(void* event, void* stream);
int StreamWaitsForEvent(void* stream, void* event);
int WaitForEvent(void* event);
void RemoveEvent(void* event);

// `graph`: to add to, or null for a new one.
int BeginCapture(void* stream, Graph* graph, int mode);
// Sets *graph to null on an error.
int EndCapture(void* stream, Graph** graph);
int CaptureStatus(void* stream, int* status);

}  // namespace kgrpo::interpreter
