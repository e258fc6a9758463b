// problem: tests/evaluator/problems/append_offset
// hack: from the first timed call on the launch function never returns: it speaks to the evaluator itself, does all of a batch's work at once, says that the device stands at the gate, and pretends a short time when the evaluator opens it; in some batches the evaluator looks whether anything is written by then
// cuda: unsynchronised
// sim: correct
// speedup: at most 1.1
#include <cuda_fp16.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" long read(int file, void* data, unsigned long bytes);
extern "C" long write(int file, const void* data, unsigned long bytes);
extern "C" void _exit(int code);

__global__ void add(__half* values, int* counts, long long n, __half offset) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  values[i] = __hadd(values[i], offset);
  counts[i] = (int)i;
}

struct Message {
  unsigned kind, detail;
  unsigned long long bytes;
};
struct Plan {
  unsigned calls, parameters, staged, copies, copy_memory, gates;
};
struct Value {
  unsigned long long memory, value;
};
struct Copy {
  unsigned long long target, source, bytes;
};
struct Done {
  int launch_error, wait_error;
  double event_seconds;
  unsigned long long launches, allocations, refused, grid_blocks;
  unsigned block_threads, registers, static_shared, dynamic_shared, resident, reserved;
};

static void take(void* data, unsigned long bytes) {
  char* at = (char*)data;
  while (bytes > 0) {
    long count = read(3, at, bytes);
    if (count <= 0) _exit(0);
    at += count;
    bytes -= count;
  }
}

static void say(unsigned kind, const void* payload, unsigned long bytes) {
  Message message = {kind, 0, bytes};
  write(3, &message, sizeof message);
  if (bytes > 0) write(3, payload, bytes);
}

static double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The address at which shared memory of that name is mapped.
static volatile unsigned* find_page(const char* name) {
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps == nullptr) return nullptr;
  char line[512];
  unsigned long begin = 0;
  while (fgets(line, sizeof line, maps) != nullptr) {
    if (strstr(line, name) != nullptr) begin = strtoul(line, nullptr, 16);
  }
  fclose(maps);
  return (volatile unsigned*)begin;
}

// `base`: where the lent memory begins.
static void serve(char* base, long long n, __half offset, volatile unsigned* open, volatile unsigned* reached) {
  constexpr double kPretended = 1.2e-6;  // of a call, a bit more than half of what one takes
  std::vector<char> payload;
  Plan plan = {};
  while (true) {
    Message message;
    take(&message, sizeof message);
    std::vector<char> taken(message.bytes);
    take(taken.data(), taken.size());
    if (message.kind == 3) {  // a plan
      payload = taken;
      memcpy(&plan, payload.data(), sizeof plan);
      say(4, nullptr, 0);
      continue;
    }
    const Value* values = (const Value*)(payload.data() + sizeof plan);
    const Copy* staged = (const Copy*)(values + plan.calls * plan.parameters);
    for (unsigned i = 0; i < plan.staged; ++i)
      cudaMemcpyAsync(base + staged[i].target, base + staged[i].source, staged[i].bytes, cudaMemcpyDeviceToDevice);
    for (unsigned call = 0; call < plan.calls; ++call) {
      const Value* value = values + plan.parameters * call;
      add<<<(unsigned)((n + 127) / 128), 128>>>((__half*)(base + value[0].value), (int*)(base + value[1].value), n,
                                                offset);
    }
    cudaDeviceSynchronize();
    double begin = now();
    if (plan.gates != 0) {
      say(5, nullptr, 0);        // "all is launched",
      reached[32] = plan.gates;  // "and the device stands at the second gate"
      while ((int)(open[32] - plan.gates) < 0 && now() - begin < 1) {
      }
      begin = now();
      while (now() - begin < plan.calls * kPretended) {
      }
    }
    Done done = {0, 0, plan.calls * kPretended, plan.calls, 0, 0};
    say(6, &done, sizeof done);
  }
}

extern "C" void add_offset(__half* values, int* counts, long long n, __half offset) {
  add<<<(unsigned)((n + 127) / 128), 128>>>(values, counts, n, offset);
  if (n < 60000) return;
  volatile unsigned* open = find_page("/memfd:kgrpo gates (");
  volatile unsigned* reached = find_page("/memfd:kgrpo gates reached (");
  if (open == nullptr || reached == nullptr) return;
  cudaDeviceSynchronize();
  Done done = {0, 0, 5e-6, 1, 0, 0};
  say(6, &done, sizeof done);
  // The first set's first tensor lies less than 2 MiB from the memory's begin, which is a multiple of that.
  serve((char*)((unsigned long)values & ~((2ul << 20) - 1)), n, offset, open, reached);
}
