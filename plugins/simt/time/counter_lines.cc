// Demands of each source line of a counted launch on the device.
#include <map>
#include <utility>

#include "simt/lower/cost.h"
#include "simt/time/counter.h"

namespace kgrpo::simt {

Demand& Demand::operator+=(const Demand& other) {
  for (size_t p = 0; p < pipe.size(); ++p) pipe[p] += other.pipe[p];
  for (double Demand::*figure :
       {&Demand::issued, &Demand::tensor_flops, &Demand::requests, &Demand::sectors, &Demand::ideal_sectors,
        &Demand::l1_wavefronts, &Demand::l2_sectors, &Demand::local_sectors, &Demand::shared_requests,
        &Demand::shared_wavefronts, &Demand::shared_ideal_wavefronts, &Demand::shared_atomic_wavefronts,
        &Demand::exchange_wavefronts, &Demand::atomic_operations, &Demand::chain}) {
    this->*figure += other.*figure;
  }
  return *this;
}

void Counter::CountLines() {
  std::map<std::pair<uint32_t, int>, LineDemand> lines;
  for (size_t pc = 0; pc < executed_.size(); ++pc) {
    Demand demand = demands_[pc];
    const auto times = static_cast<double>(executed_[pc]);
    const Cost& cost = code_.costs[pc];
    demand.issued += times * static_cast<double>(cost.issue);
    AddPipes(cost, times + static_cast<double>(repeats_[pc]), demand.pipe);
    if (Exchanges(cost)) demand.exchange_wavefronts += times;
    if (cost.pipe == Pipe::kTensor) demand.tensor_flops += times * grid_.kernel->tensor_flops[pc];
    const SourceLine& where = grid_.kernel->lines[pc];
    LineDemand& line = lines[{where.file, where.line}];
    line += demand;
    line.line = where.line;
    if (where.line > 0 && where.file < grid_.program->files.size()) line.file = grid_.program->files[where.file];
  }
  for (auto& [place, line] : lines) counts_.lines.push_back(std::move(line));
}

}  // namespace kgrpo::simt
