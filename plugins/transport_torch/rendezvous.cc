#include "transport_torch/rendezvous.h"

#include <arpa/inet.h>
#include <kgrpo/sdk/error.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

namespace kgrpo::transport {
std::string Reason(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

const char* OptionsSchema() {
  return R"json({
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "transport_torch",
  "description": "Several ranks of one run, by libtorch's c10d. The host fills the options in from what torchrun, srun or mpirun set.",
  "type": "object",
  "additionalProperties": false,
  "required": ["rank", "size", "address", "port"],
  "properties": {
    "rank": {"title": "Rank", "type": "integer", "minimum": 0, "description": "Of this process."},
    "size": {"title": "Ranks", "type": "integer", "minimum": 1, "description": "Of the run."},
    "local_rank": {"title": "Local rank", "type": "integer", "minimum": 0, "default": 0, "description": "Of this process on its machine."},
    "local_size": {"title": "Local ranks", "type": "integer", "minimum": 1, "default": 1, "description": "Of the run on this machine."},
    "address": {"title": "Address", "type": "string", "description": "Of the rendezvous."},
    "port": {"title": "Port", "type": "integer", "minimum": 1, "maximum": 65535, "description": "Of the rendezvous."},
    "hosted": {"title": "Hosted", "type": "boolean", "default": false, "description": "The rendezvous is there already (torchrun's agent); else rank 0 opens it."},
    "run": {"title": "Run", "type": "string", "default": "kgrpo", "description": "Keeps runs at one rendezvous apart."},
    "patience": {"title": "Patience", "type": "number", "exclusiveMinimum": 0, "default": 300, "description": "Seconds to wait for the other ranks."},
    "nccl": {"title": "NCCL", "type": "string", "default": "libnccl.so.2", "description": "The library's name or path, for ranks on GPUs."},
    "cudart": {"title": "CUDA runtime", "type": "string", "default": "libcudart.so.13", "description": "The same of CUDA's runtime."}
  }
})json";
}

Options ReadOptions(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  Options options;
  options.rank = json.at("rank").get<uint32_t>();
  options.size = json.at("size").get<uint32_t>();
  options.local_rank = json.at("local_rank").get<uint32_t>();
  options.local_size = json.at("local_size").get<uint32_t>();
  options.address = json.at("address").get<std::string>();
  options.port = json.at("port").get<uint16_t>();
  options.hosted = json.at("hosted").get<bool>();
  options.run = json.at("run").get<std::string>();
  options.patience = json.at("patience").get<double>();
  options.nccl = json.value("nccl", options.nccl);
  options.cudart = json.value("cudart", options.cudart);
  if (options.rank >= options.size)
    throw Error(KGRPO_ERROR_INVALID, "rank " + std::to_string(options.rank) + " of " + std::to_string(options.size));
  return options;
}

std::string PlaceText(const Options& options) { return options.address + ":" + std::to_string(options.port); }

namespace {

constexpr std::chrono::seconds kResolvePatience(5);  // for a busy name server or a new name

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

Addresses Resolve(const Options& options) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  do {
    status = getaddrinfo(options.address.c_str(), std::to_string(options.port).c_str(), &hints, &found);
    if (status != 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  } while (status != 0 && std::chrono::steady_clock::now() - begin < kResolvePatience);
  if (status != 0) {
    throw Error(KGRPO_ERROR_UNAVAILABLE,
                "the host where the ranks are to meet, " + options.address + ", cannot be resolved (" +
                    gai_strerror(status) +
                    "): set MASTER_ADDR to a name or an address of rank 0's machine that every "
                    "rank can reach");
  }
  return {found, freeaddrinfo};
}

}  // namespace

c10::intrusive_ptr<c10d::Store> Connect(const Options& options, bool opens, double seconds) {
  Resolve(options);  // the store would retry forever, without a message
  c10d::TCPStoreOptions store;
  store.port = options.port;
  store.isServer = opens && !options.hosted;
  store.numWorkers = options.size;
  store.waitWorkers = false;
  store.timeout = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
  try {
    return c10::make_intrusive<c10d::PrefixStore>(options.run,
                                                  c10::make_intrusive<c10d::TCPStore>(options.address, store));
  } catch (const std::exception& error) {
    if (store.isServer) {
      throw Error(KGRPO_ERROR_UNAVAILABLE, "cannot listen at " + PlaceText(options) + " for the other ranks: " +
                                               Reason(error) + "; is MASTER_PORT in use by another run?");
    }
    throw Error(KGRPO_ERROR_UNAVAILABLE, "nobody answered at " + PlaceText(options) + " within " +
                                             std::to_string(static_cast<int>(seconds)) +
                                             " s: is rank 0 running, and are MASTER_ADDR and MASTER_PORT its own?");
  }
}

std::string OwnAddress(const Options& options) {
  const Addresses found = Resolve(options);
  for (const addrinfo* place = found.get(); place != nullptr; place = place->ai_next) {
    // Connecting a datagram socket sends nothing: it makes the kernel choose the interface.
    const int socket_fd = socket(place->ai_family, place->ai_socktype, 0);
    if (socket_fd < 0) continue;
    sockaddr_storage own{};
    socklen_t size = sizeof(own);
    const bool known = connect(socket_fd, place->ai_addr, place->ai_addrlen) == 0 &&
                       getsockname(socket_fd, reinterpret_cast<sockaddr*>(&own), &size) == 0;
    close(socket_fd);
    char text[NI_MAXHOST];
    if (known &&
        getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) == 0) {
      return text;
    }
  }
  throw Error(KGRPO_ERROR_UNAVAILABLE, "this machine has no network route to " + options.address);
}

}  // namespace kgrpo::transport
