#include "interpreter/client/stream_capture.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "interpreter/client/connection.h"

namespace kgrpo::interpreter {
namespace {

constexpr unsigned kNonBlocking = 1;
constexpr int kRelaxed = 2;

// A stream's part in a capture.
struct Part {
  size_t last = 0;      // the graph's node count after this stream's last work
  size_t joined = 0;    // the part of `last` that other streams wait for
  size_t launched = 0;  // `last`, if that work is a launch, and the stream has waited for nothing since; else 0
};
struct Capture {
  Graph* graph = nullptr;
  void* origin = nullptr;
  int mode = 0;
  bool invalid = false;
  std::map<void*, Part> parts;  // by stream
};
struct Mark {
  Capture* capture = nullptr;  // null: recorded outside of any
  void* stream = nullptr;
  size_t nodes = 0;
};

std::vector<std::unique_ptr<Capture>>& Captures() {
  static std::vector<std::unique_ptr<Capture>> captures;
  return captures;
}
std::map<void*, unsigned>& StreamFlags() {
  static std::map<void*, unsigned> flags;
  return flags;
}
std::map<void*, Mark>& Marks() {
  static std::map<void*, Mark> marks;
  return marks;
}

// The stream of the last launch, if nothing was done since that waits for it: then the next launch there may overlap.
const void* g_launched_on = nullptr;
bool g_may_still_run = false;
bool g_submitted = false;  // work or an event, since the host last waited for the device

int RunNow(const void* stream, Work work) {
  const bool launches = work.kind == Work::Kind::kLaunch;
  if (!g_may_still_run || g_launched_on != stream) work.launch.overlaps = 0;
  g_launched_on = stream;
  g_submitted = true;
  g_may_still_run = launches;
  return Run(work);
}

bool IsLegacy(const void* stream) {
  return reinterpret_cast<uintptr_t>(stream) <= 1;  // 0 or cudaStreamLegacy
}

Capture* CaptureOf(void* stream) {
  for (const std::unique_ptr<Capture>& capture : Captures()) {
    if (capture->parts.count(stream) != 0) return capture.get();
  }
  return nullptr;
}

bool IsActive(const Capture* capture) {
  return std::any_of(Captures().begin(), Captures().end(),
                     [&](const std::unique_ptr<Capture>& one) { return one.get() == capture; });
}

// Work on the legacy stream waits for all blocking streams, which is not allowed while one of them is captured.
int CheckLegacy(const void* stream) {
  if (!IsLegacy(stream)) return kCudaSuccess;
  int error = kCudaSuccess;
  for (const std::unique_ptr<Capture>& capture : Captures()) {
    for (const auto& [part, ignored] : capture->parts) {
      const auto flags = StreamFlags().find(part);
      if (flags != StreamFlags().end() && (flags->second & kNonBlocking) != 0) continue;
      capture->invalid = true;
      error = kCudaStreamCaptureImplicit;
    }
  }
  return error;
}

}  // namespace

Graph::Node* Graph::Find(const void* handle) {
  for (Node& node : nodes) {
    if (node.number == reinterpret_cast<uintptr_t>(handle)) return &node;
  }
  return nullptr;
}

uintptr_t NewNodeNumber() {
  static uintptr_t last = 0x100;
  return ++last;
}

int Submit(void* stream, Work work) {
  if (Captures().empty()) return RunNow(stream, std::move(work));
  Capture* capture = CaptureOf(stream);
  if (capture == nullptr) {
    const int error = CheckLegacy(stream);
    return error != kCudaSuccess ? error : RunNow(stream, std::move(work));
  }
  if (capture->invalid) return kCudaStreamCaptureInvalidated;
  Part& part = capture->parts[stream];
  const bool launches = work.kind == Work::Kind::kLaunch;
  if (part.launched == 0 || part.launched != capture->graph->nodes.size()) work.launch.overlaps = 0;
  capture->graph->nodes.push_back({NewNodeNumber(), std::move(work)});
  part.last = capture->graph->nodes.size();
  part.launched = launches ? part.last : 0;
  return kCudaSuccess;
}

void EndOverlap() { g_may_still_run = false; }

int WaitForStream(void* stream) {
  g_may_still_run = false;
  Capture* capture = CaptureOf(stream);
  if (capture == nullptr) return CheckLegacy(stream);
  capture->invalid = true;
  return kCudaStreamCaptureUnsupported;
}

int WaitForDevice() {
  g_may_still_run = false;
  for (const std::unique_ptr<Capture>& capture : Captures()) capture->invalid = true;
  return Captures().empty() ? kCudaSuccess : kCudaStreamCaptureUnsupported;
}

int Waited(int error) {
  if (error == kCudaSuccess) Ask(Operation::kWait, std::exchange(g_submitted, false) ? 1 : 0);
  return error;
}

int WorkAtOnce() {
  g_may_still_run = false;
  int error = kCudaSuccess;
  for (const std::unique_ptr<Capture>& capture : Captures()) {
    if (capture->mode == kRelaxed) continue;
    capture->invalid = true;
    error = kCudaStreamCaptureUnsupported;
  }
  return error;
}

int RunAtOnce(const Work& work) {
  const int error = WorkAtOnce();
  return error != kCudaSuccess ? error : Submit(nullptr, work);
}

bool IsCapturing(void* stream) { return CaptureOf(stream) != nullptr; }

void AddStream(void* stream, unsigned flags) { StreamFlags()[stream] = flags; }

void RemoveStream(void* stream) {
  StreamFlags().erase(stream);
  std::erase_if(Captures(), [&](const std::unique_ptr<Capture>& capture) { return capture->origin == stream; });
}

int RecordEvent(void* event, void* stream) {
  Capture* capture = CaptureOf(stream);
  if (capture == nullptr) {
    const int error = CheckLegacy(stream);
    if (error != kCudaSuccess) return error;
    Marks()[event] = {};
    g_submitted = true;
    return kCudaSuccess;
  }
  if (capture->invalid) return kCudaStreamCaptureInvalidated;
  Marks()[event] = {capture, stream, capture->parts[stream].last};
  return kCudaSuccess;
}

int StreamWaitsForEvent(void* stream, void* event) {
  g_may_still_run = false;
  const auto found = Marks().find(event);
  if (found == Marks().end()) return kCudaSuccess;  // never recorded
  const Mark mark = found->second;
  Capture* capture = CaptureOf(stream);
  if (mark.capture == nullptr) {
    if (capture == nullptr) return kCudaSuccess;
    capture->invalid = true;
    return kCudaStreamCaptureIsolation;
  }
  if (!IsActive(mark.capture)) return kCudaCapturedEvent;
  if (capture != nullptr && capture != mark.capture) {
    capture->invalid = mark.capture->invalid = true;
    return kCudaStreamCaptureMerge;
  }
  if (mark.capture->invalid) return kCudaStreamCaptureInvalidated;
  if (IsLegacy(stream)) {
    mark.capture->invalid = true;
    return kCudaStreamCaptureImplicit;
  }
  if (stream != mark.stream) {
    Part& from = mark.capture->parts[mark.stream];
    from.joined = std::max(from.joined, mark.nodes);
  }
  mark.capture->parts[stream].last = mark.capture->graph->nodes.size();
  mark.capture->parts[stream].launched = 0;
  return kCudaSuccess;
}

int WaitForEvent(void* event) {
  g_may_still_run = false;
  const auto found = Marks().find(event);
  return found != Marks().end() && found->second.capture != nullptr ? kCudaCapturedEvent : kCudaSuccess;
}

void RemoveEvent(void* event) { Marks().erase(event); }

int BeginCapture(void* stream, Graph* graph, int mode) {
  if (mode < 0 || mode > kRelaxed) return kCudaInvalidValue;
  if (IsLegacy(stream)) return kCudaStreamCaptureUnsupported;
  if (CaptureOf(stream) != nullptr) return kCudaIllegalState;
  auto capture = std::make_unique<Capture>();
  capture->graph = graph != nullptr ? graph : new Graph;
  capture->origin = stream;
  capture->mode = mode;
  capture->parts[stream] = {};
  Captures().push_back(std::move(capture));
  return kCudaSuccess;
}

int EndCapture(void* stream, Graph** graph) {
  *graph = nullptr;
  Capture* capture = CaptureOf(stream);
  if (capture == nullptr) return kCudaIllegalState;
  if (capture->origin != stream) {
    capture->invalid = true;
    return kCudaStreamCaptureUnmatched;
  }
  int error = capture->invalid ? kCudaStreamCaptureInvalidated : kCudaSuccess;
  for (const auto& [other, part] : capture->parts) {
    if (error == kCudaSuccess && other != stream && part.joined < part.last) error = kCudaStreamCaptureUnjoined;
  }
  if (error == kCudaSuccess) *graph = capture->graph;
  std::erase_if(Captures(), [&](const std::unique_ptr<Capture>& one) { return one.get() == capture; });
  return error;
}

int CaptureStatus(void* stream, int* status) {
  const Capture* capture = CaptureOf(stream);
  *status = capture == nullptr ? 0 : capture->invalid ? 2 : 1;
  return capture == nullptr ? CheckLegacy(stream) : kCudaSuccess;
}

}  // namespace kgrpo::interpreter
