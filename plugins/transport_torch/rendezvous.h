// The meeting place of the ranks: c10d's TCPStore, opened by rank 0 or by torchrun's agent. Used by torch_transport.cc.
#pragma once

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <exception>
#include <string>

namespace c10d {
class Store;
}

namespace kgrpo::transport {

struct Options {
  uint32_t rank = 0, size = 1;
  uint32_t local_rank = 0, local_size = 1;
  std::string address;  // of the rendezvous: a host name or an IP address
  uint16_t port = 0;
  bool hosted = false;    // it exists already; else rank 0 opens it
  std::string run;        // prefix of the keys, which separates runs at one rendezvous
  double patience = 300;  // seconds to wait for the other ranks
  std::string nccl = "libnccl.so.2", cudart = "libcudart.so.13";  // the versions in libtorch's wheel
};

const char* OptionsSchema();
// `json` satisfies the schema.
Options ReadOptions(const std::string& json);

// A connection to the rendezvous whose operations wait for `seconds` at most. Throws KGRPO_ERROR_UNAVAILABLE, naming
// address and port. `opens`: this process opens the rendezvous, unless options.hosted.
c10::intrusive_ptr<c10d::Store> Connect(const Options& options, bool opens, double seconds);

// The message of a libtorch exception: its first line, without the C++ stack that libtorch appends.
std::string Reason(const std::exception& error);

// "10.0.0.1:29500"
std::string PlaceText(const Options& options);

// The address of this machine's interface that leads to the rendezvous: where other ranks reach this one.
std::string OwnAddress(const Options& options);

}  // namespace kgrpo::transport
