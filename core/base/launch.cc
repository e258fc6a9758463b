#include "base/launch.h"

#include <kgrpo/sdk/error.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace kgrpo {
namespace {

// Range of default ports: below the ephemeral ports, and wide, so that jobs on one machine are unlikely to collide.
constexpr uint64_t kFirstPort = 20000, kPorts = 12000;

class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  bool Has(const char* name) const { return !environment_(name).empty(); }
  std::string Text(const char* name) const { return environment_(name); }

  uint64_t Number(const char* name, uint64_t most) const {
    const std::string text = environment_(name);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value > most) {
      throw Error(KGRPO_ERROR_INVALID, std::string("the environment variable ") + name + " is \"" + text +
                                           "\", where a launcher sets a whole number up to " + std::to_string(most));
    }
    return value;
  }
  uint32_t Count(const char* name) const { return static_cast<uint32_t>(Number(name, 1 << 20)); }
  uint32_t CountOr(const char* name, uint32_t otherwise) const { return Has(name) ? Count(name) : otherwise; }

 private:
  const Environment& environment_;
};

void Check(const Launch& launch, const char* rank, const char* size) {
  if (launch.size > 0 && launch.rank < launch.size) return;
  throw Error(KGRPO_ERROR_INVALID, launch.by + " says that this is rank " + std::to_string(launch.rank) + " of " +
                                       std::to_string(launch.size) + " (" + rank + ", " + size + ")");
}

uint16_t PortOr(const Reader& reader, uint64_t job) {
  if (reader.Has("MASTER_PORT")) return static_cast<uint16_t>(reader.Number("MASTER_PORT", 65535));
  return static_cast<uint16_t>(kFirstPort + job % kPorts);
}

Launch ReadTorchrun(const Reader& reader) {
  Launch launch;
  launch.by = "torchrun";
  launch.rank = reader.Count("RANK");
  launch.size = reader.Count("WORLD_SIZE");
  launch.local_rank = reader.CountOr("LOCAL_RANK", launch.rank);
  launch.local_size = reader.CountOr("LOCAL_WORLD_SIZE", launch.size);
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT"}) {
    if (launch.size > 1 && !reader.Has(name)) {
      throw Error(KGRPO_ERROR_INVALID, std::string("RANK and WORLD_SIZE are set and ") + name +
                                           " is not: start with torchrun, or set all four; for a run of one process "
                                           "unset WORLD_SIZE");
    }
  }
  launch.address = reader.Text("MASTER_ADDR");
  launch.port = PortOr(reader, 0);
  launch.hosted = reader.Text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  launch.run = "kgrpo " + reader.Text("TORCHELASTIC_RUN_ID") + " " + reader.Text("TORCHELASTIC_RESTART_COUNT");
  Check(launch, "RANK", "WORLD_SIZE");
  return launch;
}

// Entry number `node` of a list like "4(x2),3", which is 4, 4, 3. 0 where it has none.
uint32_t TasksOfNode(const std::string& list, uint32_t node) {
  std::istringstream entries(list);
  for (std::string entry; std::getline(entries, entry, ',');) {
    unsigned tasks = 0, repeats = 1;
    if (std::sscanf(entry.c_str(), "%u(x%u)", &tasks, &repeats) < 1) return 0;
    if (node < repeats) return tasks;
    node -= repeats;
  }
  return 0;
}

// Slurm sets some of these variables in a batch script too; only srun sets SLURM_STEP_NUM_TASKS.
Launch ReadSlurm(const Reader& reader) {
  Launch launch;
  launch.by = "srun";
  launch.rank = reader.Count("SLURM_PROCID");
  launch.size = reader.Count("SLURM_STEP_NUM_TASKS");
  launch.local_rank = reader.CountOr("SLURM_LOCALID", 0);
  launch.local_size = TasksOfNode(reader.Text("SLURM_STEP_TASKS_PER_NODE"), reader.CountOr("SLURM_NODEID", 0));
  if (launch.local_size == 0) launch.local_size = launch.size;
  launch.address =
      reader.Has("MASTER_ADDR") ? reader.Text("MASTER_ADDR") : FirstHost(reader.Text("SLURM_STEP_NODELIST"));
  if (launch.address.empty() && launch.size > 1)
    throw Error(KGRPO_ERROR_INVALID,
                "srun started this, and neither SLURM_STEP_NODELIST nor MASTER_ADDR says where rank 0 is");
  const uint64_t job = reader.Has("SLURM_JOB_ID") ? reader.Number("SLURM_JOB_ID", UINT64_MAX) : 0;
  launch.port = PortOr(reader, job);
  launch.run = "kgrpo " + reader.Text("SLURM_JOB_ID") + "." + reader.Text("SLURM_STEP_ID");
  Check(launch, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  return launch;
}

struct MpiNames {
  const char *rank, *size, *local_rank, *local_size;
};
constexpr MpiNames kMpi[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"}};  // Hydra: MPICH, Intel MPI

Launch ReadMpi(const Reader& reader, const MpiNames& names) {
  Launch launch;
  launch.by = "mpirun";
  launch.rank = reader.Count(names.rank);
  launch.size = reader.Count(names.size);
  launch.local_rank = reader.Count(names.local_rank);
  launch.local_size = reader.Count(names.local_size);
  launch.address = reader.Text("MASTER_ADDR");
  if (launch.address.empty()) {
    if (launch.local_size < launch.size) {
      throw Error(KGRPO_ERROR_INVALID,
                  "mpirun started ranks on several machines: say where rank 0 is, for example mpirun -x "
                  "MASTER_ADDR=node01 -x MASTER_PORT=29500");
    }
    launch.address = "127.0.0.1";
  }
  // One daemon starts all ranks of one machine.
  launch.port = PortOr(reader, static_cast<uint64_t>(getppid()));
  launch.run = "kgrpo";
  Check(launch, names.rank, names.size);
  return launch;
}

std::optional<Launch> ReadAny(const Reader& reader) {
  if (reader.Has("RANK") && reader.Has("WORLD_SIZE")) return ReadTorchrun(reader);
  // Slurm's own PMI sets PMI_RANK too, but knows nothing of MPI_LOCALNRANKS.
  for (const MpiNames& names : kMpi) {
    if (reader.Has(names.rank) && reader.Has(names.size) && reader.Has(names.local_size)) return ReadMpi(reader, names);
  }
  if (reader.Has("SLURM_PROCID") && reader.Has("SLURM_STEP_NUM_TASKS")) return ReadSlurm(reader);
  return std::nullopt;
}

}  // namespace

std::optional<Launch> ReadLaunch(const Environment& environment) {
  std::optional<Launch> launch = ReadAny(Reader(environment));
  if (launch && launch->size == 1) launch.reset();
  return launch;
}

std::optional<Launch> ReadLaunch() {
  return ReadLaunch([](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  });
}

std::string ResumeCommand(const std::string& folder) {
  const std::optional<Launch> launch = ReadLaunch();
  std::string command = "kgrpo-host resume " + folder;
  if (!launch || launch->size == 1) return command;
  if (launch->local_size == launch->size) return command + " --ranks " + std::to_string(launch->size);
  return command + ", started on all " + std::to_string(launch->size) + " ranks by " + launch->by + " as before";
}

std::string FirstHost(const std::string& list) {
  const size_t bracket = list.find('[');
  const size_t comma = list.find(',');
  if (comma < bracket || bracket == std::string::npos) return list.substr(0, comma);
  const size_t end = list.find_first_of(",-]", bracket);
  const size_t close = list.find(']', bracket);
  if (end == std::string::npos || close == std::string::npos) return "";
  const size_t after = list.find(',', close);
  return list.substr(0, bracket) + list.substr(bracket + 1, end - bracket - 1) +
         list.substr(close + 1, after == std::string::npos ? after : after - close - 1);
}

}  // namespace kgrpo
