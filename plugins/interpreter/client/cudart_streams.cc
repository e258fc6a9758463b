// Our libcudart.so.13, third part: streams and events (everything runs in order of issue), and graphs of launches,
// copies and memsets, captured from streams or built from kernel nodes. A graph runs its nodes in order; the evaluator
// sees the same requests as without a graph. See cudart.cc; functions that are missing here fail to load, by name.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "interpreter/client/connection.h"
#include "interpreter/client/stream_capture.h"

using namespace kgrpo::interpreter;  // NOLINT: a C interface in the global namespace over our own types

namespace {

// Streams and events are tokens: there is one order, that of issue.
void* NewToken() {
  static uintptr_t next = 0x1000;
  next += 16;
  return reinterpret_cast<void*>(next);
}

// The graphs whose handles were given out. A handle is looked up here and never dereferenced.
std::vector<std::unique_ptr<Graph>>& Graphs() {
  static std::vector<std::unique_ptr<Graph>> graphs;
  return graphs;
}
std::vector<std::unique_ptr<Graph>>& Executables() {
  static std::vector<std::unique_ptr<Graph>> executables;
  return executables;
}

Graph* Find(std::vector<std::unique_ptr<Graph>>& among, const void* handle) {
  for (const std::unique_ptr<Graph>& graph : among) {
    if (graph.get() == handle) return graph.get();
  }
  return nullptr;
}

int Destroy(std::vector<std::unique_ptr<Graph>>& among, const void* handle, const char* call) {
  const Graph* found = Find(among, handle);
  Spend(call, found == nullptr || &among == &Graphs() ? 0 : static_cast<double>(found->nodes.size()));
  const auto erased = std::erase_if(among, [&](const std::unique_ptr<Graph>& graph) { return graph.get() == handle; });
  return SetError(erased > 0 ? kCudaSuccess : kCudaInvalidValue);
}

int MakeKernelWork(const CudaKernelNodeParameters* parameters, Work* work) {
  if (parameters == nullptr || parameters->arguments == nullptr) return kCudaInvalidValue;
  return MakeLaunch(parameters->function, parameters->grid, parameters->block, parameters->arguments,
                    parameters->shared_bytes, false, work);
}

// Replaces the parameters of a kernel node. The node keeps its cooperative flag.
int SetKernelNode(Graph* graph, const void* node, const CudaKernelNodeParameters* parameters) {
  Graph::Node* found = graph == nullptr ? nullptr : graph->Find(node);
  if (found == nullptr || found->work.kind != Work::Kind::kLaunch) return SetError(kCudaInvalidValue);
  Work work;
  const int error = MakeKernelWork(parameters, &work);
  if (error != kCudaSuccess) return SetError(error);
  work.launch.cooperative = found->work.launch.cooperative;
  work.launch.overlaps = found->work.launch.overlaps;
  found->work = std::move(work);
  return kCudaSuccess;
}

Graph* GraphOfNode(const void* node) {
  for (const std::unique_ptr<Graph>& graph : Graphs()) {
    if (graph->Find(node) != nullptr) return graph.get();
  }
  return nullptr;
}

}  // namespace

extern "C" {

int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  Spend(__func__);
  *stream = NewToken();
  AddStream(*stream, flags);
  return kCudaSuccess;
}

int cudaStreamCreate(void** stream) { return cudaStreamCreateWithFlags(stream, 0); }
int cudaStreamCreateWithPriority(void** stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
int cudaStreamDestroy(void* stream) {
  Spend(__func__);
  RemoveStream(stream);
  return kCudaSuccess;
}
int cudaStreamSynchronize(void* stream) { return Spent(__func__, Waited(WaitForStream(stream))); }
int cudaStreamQuery(void* stream) { return Spent(__func__, WaitForStream(stream)); }
int cudaStreamWaitEvent(void* stream, void* event, unsigned) {
  return Spent(__func__, StreamWaitsForEvent(stream, event));
}

int cudaEventCreate(void** event) {
  Spend(__func__);
  *event = NewToken();
  return kCudaSuccess;
}

int cudaEventCreateWithFlags(void** event, unsigned) { return cudaEventCreate(event); }
int cudaEventDestroy(void* event) {
  Spend(__func__);
  RemoveEvent(event);
  return kCudaSuccess;
}
int cudaEventRecord(void* event, void* stream) { return Spent(__func__, RecordEvent(event, stream)); }
int cudaEventSynchronize(void* event) { return Spent(__func__, Waited(WaitForEvent(event))); }
int cudaEventQuery(void* event) { return Spent(__func__, WaitForEvent(event)); }

// Returns 0: a candidate must not see the model's time.
int cudaEventElapsedTime(float* milliseconds, void*, void*) {
  *milliseconds = 0;
  return kCudaSuccess;
}

int cudaStreamBeginCapture(void* stream, int mode) { return Spent(__func__, BeginCapture(stream, nullptr, mode)); }

int cudaStreamBeginCaptureToGraph(void* stream, void* graph, void* const* dependencies, const void*, size_t count,
                                  int mode) {
  Spend(__func__);
  Graph* into = Find(Graphs(), graph);
  if (into == nullptr || (count > 0 && dependencies == nullptr)) return SetError(kCudaInvalidValue);
  return SetError(BeginCapture(stream, into, mode));
}

int cudaStreamEndCapture(void* stream, void** graph) {
  Graph* captured = nullptr;
  const int error = EndCapture(stream, &captured);
  Spend(__func__, captured == nullptr ? 0 : static_cast<double>(captured->nodes.size()));
  if (captured != nullptr && Find(Graphs(), captured) == nullptr) Graphs().emplace_back(captured);
  if (graph != nullptr) *graph = captured;
  return SetError(error);
}

int cudaStreamIsCapturing(void* stream, int* status) { return SetError(CaptureStatus(stream, status)); }

int cudaGraphCreate(void** graph, unsigned) {
  Spend(__func__);
  Graphs().push_back(std::make_unique<Graph>());
  *graph = Graphs().back().get();
  return kCudaSuccess;
}

int cudaGraphDestroy(void* graph) { return Destroy(Graphs(), graph, __func__); }

int cudaGraphInstantiate(void** executable, void* graph, unsigned long long) {
  const Graph* from = Find(Graphs(), graph);
  if (from == nullptr) return SetError(kCudaInvalidValue);
  Spend(__func__, static_cast<double>(from->nodes.size()));
  Executables().push_back(std::make_unique<Graph>(*from));
  *executable = Executables().back().get();
  return kCudaSuccess;
}

int cudaGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags) {
  return cudaGraphInstantiate(executable, graph, flags);
}

int cudaGraphExecDestroy(void* executable) { return Destroy(Executables(), executable, __func__); }

int cudaGraphUpload(void* executable, void*) {
  return Spent(__func__, Find(Executables(), executable) != nullptr ? kCudaSuccess : kCudaInvalidValue);
}

int cudaGraphLaunch(void* executable, void* stream) {
  Spend(__func__);
  const Graph* graph = Find(Executables(), executable);
  if (graph == nullptr) return SetError(kCudaInvalidValue);
  if (IsCapturing(stream)) RefuseCall("cudaGraphLaunch into a stream that is being captured");
  EndOverlap();  // within a graph launches may overlap, but not with those before and after it
  for (const Graph::Node& node : graph->nodes) {
    const int error = Submit(stream, node.work);
    if (error != kCudaSuccess) return SetError(error);
  }
  EndOverlap();
  return kCudaSuccess;
}

int cudaGraphGetNodes(void* graph, void** nodes, size_t* count) {
  const Graph* from = Find(Graphs(), graph);
  if (from == nullptr || count == nullptr) return SetError(kCudaInvalidValue);
  if (nodes == nullptr) {
    *count = from->nodes.size();
    return kCudaSuccess;
  }
  for (size_t i = 0; i < *count; ++i)
    nodes[i] = i < from->nodes.size() ? reinterpret_cast<void*>(from->nodes[i].number) : nullptr;
  *count = std::min(*count, from->nodes.size());
  return kCudaSuccess;
}

int cudaGraphNodeGetType(void* node, int* type) {
  Graph* graph = GraphOfNode(node);
  if (graph == nullptr) return SetError(kCudaInvalidValue);
  *type = static_cast<int>(graph->Find(node)->work.kind);  // as cudaGraphNodeType: kernel, memcpy, memset
  return kCudaSuccess;
}

// Dependencies must be nodes of the graph already, so the order of insertion is a valid order of execution.
int cudaGraphAddKernelNode(void** node, void* graph, void* const* dependencies, size_t count,
                           const CudaKernelNodeParameters* parameters) {
  Spend(__func__);
  Graph* into = Find(Graphs(), graph);
  if (into == nullptr || node == nullptr) return SetError(kCudaInvalidValue);
  for (size_t i = 0; i < count; ++i) {
    if (dependencies == nullptr || into->Find(dependencies[i]) == nullptr) return SetError(kCudaInvalidValue);
  }
  Work work;
  const int error = MakeKernelWork(parameters, &work);
  if (error != kCudaSuccess) return SetError(error);
  into->nodes.push_back({NewNodeNumber(), std::move(work)});
  *node = reinterpret_cast<void*>(into->nodes.back().number);
  return kCudaSuccess;
}

int cudaGraphKernelNodeSetParams(void* node, const CudaKernelNodeParameters* parameters) {
  Spend(__func__);
  return SetKernelNode(GraphOfNode(node), node, parameters);
}

int cudaGraphExecKernelNodeSetParams(void* executable, void* node, const CudaKernelNodeParameters* parameters) {
  Spend(__func__);
  return SetKernelNode(Find(Executables(), executable), node, parameters);
}

// The other graph must have the same nodes in the same order; their parameters, shapes and addresses may differ.
int cudaGraphExecUpdate(void* executable, void* graph, CudaGraphUpdateResult* result) {
  Graph* into = Find(Executables(), executable);
  const Graph* from = Find(Graphs(), graph);
  if (into == nullptr || from == nullptr) return SetError(kCudaInvalidValue);
  Spend(__func__, static_cast<double>(from->nodes.size()));
  CudaGraphUpdateResult outcome = {};
  if (into->nodes.size() != from->nodes.size()) outcome.result = 2;  // TopologyChanged
  for (size_t i = 0; outcome.result == 0 && i < into->nodes.size(); ++i) {
    const Work &old = into->nodes[i].work, &now = from->nodes[i].work;
    if (old.kind != now.kind) outcome.result = 3;                                       // NodeTypeChanged
    if (old.kind == Work::Kind::kCopy && old.detail != now.detail) outcome.result = 5;  // ParametersChanged
    if (outcome.result != 0) outcome.error_node = reinterpret_cast<void*>(into->nodes[i].number);
  }
  if (result != nullptr) *result = outcome;
  if (outcome.result != 0) return SetError(kCudaGraphExecUpdateFailure);
  for (size_t i = 0; i < into->nodes.size(); ++i) into->nodes[i].work = from->nodes[i].work;
  return kCudaSuccess;
}

}  // extern "C"
