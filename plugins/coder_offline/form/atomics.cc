// Atomic operations of every thread on global memory: a block adds up first, in registers where all threads add to one
// address, in counters of its own in shared memory where the address depends on the data.
#include <algorithm>

#include "coder_offline/form/form.h"
#include "coder_offline/plain/elements.h"
#include "coder_offline/text.h"

namespace kgrpo::coder_offline {
namespace {

constexpr int kMostCounters = 4096;  // of a block: 16 KiB

constexpr const char* kOneAddress = R"(

  __shared__ @type@ block_parts[32];
  @type@ block_total = 0;
  for (@index_type@ @index@ = blockIdx.x * (@index_type@)blockDim.x + threadIdx.x; @index@ < @limit@; @index@ += blockDim.x * gridDim.x) {
    @work@
  }
  for (int offset = 16; offset > 0; offset >>= 1) block_total += __shfl_down_sync(0xffffffffu, block_total, offset);
  if (threadIdx.x % 32 == 0) block_parts[threadIdx.x / 32] = block_total;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < (int)(blockDim.x / 32); ++warp) block_total += block_parts[warp];
    atomicAdd(@address@, block_total);
  }
)";

constexpr const char* kCounters = R"(

  __shared__ @type@ block_counters[@room@];
  const int counters = (@count@) <= @room@ ? (@count@) : 0;  // 0: they do not fit
  for (int counter = threadIdx.x; counter < counters; counter += blockDim.x) block_counters[counter] = 0;
  __syncthreads();
  for (@index_type@ @index@ = blockIdx.x * (@index_type@)blockDim.x + threadIdx.x; @index@ < @limit@; @index@ += blockDim.x * gridDim.x) {
    @work@
  }
  __syncthreads();
  for (int counter = threadIdx.x; counter < counters; counter += blockDim.x) {
    if (block_counters[counter] != 0) atomicAdd(&@array@[counter], block_counters[counter]);
  }
)";

struct Atomic {
  Range statement, address, amount;  // atomicAdd(address, amount);
  std::string array;
  std::optional<Range> index;  // of &array[index]
};

std::vector<Atomic> AtomicsIn(const PlainSource& source, Range range) {
  std::vector<Atomic> atomics;
  for (size_t i = range.begin; i < range.end; ++i) {
    if (!source.Follows(i, {"atomicAdd", "("})) continue;
    const size_t close = source.Close(i + 1);
    const std::vector<Range> arguments = source.Split({i + 2, close});
    if (arguments.size() != 2) continue;
    Atomic atomic{{i, close + 1}, arguments[0], arguments[1], "", std::nullopt};
    Range address = arguments[0];
    if (source.At(address.begin).Is("&")) ++address.begin;
    while (source.At(address.begin).Is("(") && source.Close(address.begin) + 1 == address.end)
      ++address.begin, --address.end;
    atomic.array = source.At(address.begin).text;
    if (source.Follows(address.begin + 1, {"["}))
      atomic.index = Range{address.begin + 2, source.Close(address.begin + 1)};
    if (source.Follows(address.begin + 1, {"+"})) atomic.index = Range{address.begin + 2, address.end};
    atomics.push_back(atomic);
    i = close;
  }
  return atomics;
}

bool NamesCounters(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const char* word : {"bin", "bucket", "level", "class", "cluster", "num_out", "counters", "categor", "label"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

// The number of counters: what the index is reduced by, a parameter or a constant that is named so; empty if unknown.
std::string CountOf(const PlainSource& source, const PlainFunction& kernel, const Elements& elements,
                    const Atomic& atomic) {
  std::string text = source.Plain(*atomic.index);
  for (size_t i = atomic.index->begin; i + 1 < atomic.index->end; ++i) {
    if (source.At(i).Is("%") && i + 2 == atomic.index->end) return std::string(source.At(i + 1).text);
    if (source.At(i).Is("&") && source.Value(i + 1)) return std::to_string(*source.Value(i + 1) + 1);
  }
  for (const PlainParameter& parameter : kernel.parameters) {
    if (!parameter.pointer && parameter.name != elements.limit && NamesCounters(parameter.name)) return parameter.name;
  }
  for (size_t i = 0; i + 2 < source.size(); ++i) {
    if (source.IsName(i) && NamesCounters(std::string(source.At(i).text)) && source.Number({i, i + 1}))
      return std::string(source.At(i).text);
    if (source.At(i).kind != cuda_source::Token::Kind::kDirective) continue;
    const cuda_source::Directive directive = cuda_source::ReadDirective(source.At(i).text);
    const std::string name(directive.rest.substr(0, directive.rest.find_first_of(" \t(")));
    if (directive.word == "define" && NamesCounters(name)) return name;
  }
  for (const PlainParameter& parameter : kernel.parameters) {
    if (parameter.pointer && IsOneOf(parameter.type, {"unsigned char", "uint8_t", "uchar"})) return "256";
  }
  return "";
}

std::string Work(const PlainSource& source, const Elements& elements, const std::vector<Atomic>& atomics) {
  std::string text;
  size_t at = elements.work.begin;
  for (const Atomic& atomic : atomics) {
    text += source.Text({at, atomic.statement.begin}) + " ";
    const std::string amount = source.Text(atomic.amount);
    text += atomic.index && !atomics.empty() && !atomic.array.empty()
                ? "(counters > 0 ? atomicAdd(&block_counters[" + source.Text(*atomic.index) + "], " + amount +
                      ") : atomicAdd(&" + atomic.array + "[" + source.Text(*atomic.index) + "], " + amount + "))"
                : "block_total += " + amount;
    at = atomic.statement.end;
  }
  return text + source.Text({at, elements.work.end});
}

}  // namespace

PlainResult GatherAtomics(const PlainSource& source) {
  std::vector<Edit> edits;
  std::string why = "it has no kernel whose threads add to global memory by atomicAdd", done;
  for (const PlainFunction& kernel : source.functions()) {
    if (!kernel.global || source.LaunchesOf(kernel).empty()) continue;
    std::vector<Atomic> atomics = AtomicsIn(source, kernel.body);
    if (atomics.empty()) continue;
    const auto elements = ReadElements(source, kernel);
    why = kernel.name + kNotElements;
    if (!elements || !WhyNotPlain(source, kernel, *elements).empty()) continue;
    const Atomic& first = atomics.front();
    std::string type;
    for (const PlainParameter& parameter : kernel.parameters) {
      if (parameter.pointer && parameter.name == first.array) type = parameter.type;
    }
    const bool one_address = !first.index || source.Value(first.index->begin).has_value();
    why = kernel.name + " adds to several arrays";
    if (type.empty() || (one_address && atomics.size() > 1)) continue;
    if (std::any_of(atomics.begin(), atomics.end(), [&](const Atomic& a) { return a.array != first.array; })) continue;
    std::string count;
    if (one_address) {
      atomics[0].index = std::nullopt;
    } else if (count = CountOf(source, kernel, *elements, first); count.empty()) {
      why = "the number of counters of " + kernel.name + " is not known";
      continue;
    }
    const std::string body = Fill(one_address ? kOneAddress : kCounters,
                                  {{"type", type},
                                   {"index_type", elements->type},
                                   {"index", elements->index},
                                   {"limit", elements->limit},
                                   {"work", Trim(Work(source, *elements, atomics))},
                                   {"address", source.Text(first.address)},
                                   {"array", first.array},
                                   {"count", count},
                                   {"room", std::any_of(kernel.parameters.begin(), kernel.parameters.end(),
                                                        [&](const PlainParameter& p) { return p.name == count; })
                                                ? std::to_string(kMostCounters)
                                                : count}});
    std::vector<Edit> own = {{source.At(kernel.body.begin - 1).end, source.At(kernel.body.end).begin, body}};
    std::string refused;
    for (const PlainLaunch* launch : source.LaunchesOf(kernel)) {
      if (refused.empty()) refused = WhyNotGrid(source, *launch);
      const std::string grid = source.Text(launch->grid), most = one_address ? "1056" : "528";
      own.push_back({source.At(launch->grid.begin).begin, source.At(launch->grid.end - 1).end,
                     "(" + grid + ") < " + most + " ? (" + grid + ") : " + most});
    }
    if (!refused.empty()) {
      why = refused;
      continue;
    }
    edits.insert(edits.end(), own.begin(), own.end());
    done = one_address ? "sums of each block before one atomic" : "counters of each block in shared memory";
  }
  if (done.empty()) return {"", why};
  return {source.Edited(edits), done};
}

}  // namespace kgrpo::coder_offline
