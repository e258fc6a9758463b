// The table of pinned_products.h over the cuBLASLt that libtorch has loaded. The library is opened at run time: there
// may be none, and the build needs its header only.
#include "policy_qwen/gpu/pinned_products.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstdio>
#include <memory>
#include <string>

#include "policy_qwen/gpu/launch.cuh"

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>

namespace kgrpo::policy {
namespace {

constexpr int kMostCandidates = 32;

// Functions of the library; `handle` is null if it is missing.
struct Library {
  void* handle;
#define KGRPO_LT(name) decltype(&cublasLt##name) name = Find<decltype(&cublasLt##name)>(handle, "cublasLt" #name)
  KGRPO_LT(Create);
  KGRPO_LT(Destroy);
  KGRPO_LT(GetVersion);
  KGRPO_LT(Matmul);
  KGRPO_LT(MatmulAlgoConfigGetAttribute);
  KGRPO_LT(MatmulAlgoGetHeuristic);
  KGRPO_LT(MatmulDescCreate);
  KGRPO_LT(MatmulDescDestroy);
  KGRPO_LT(MatmulDescSetAttribute);
  KGRPO_LT(MatmulPreferenceCreate);
  KGRPO_LT(MatmulPreferenceDestroy);
  KGRPO_LT(MatmulPreferenceSetAttribute);
  KGRPO_LT(MatrixLayoutCreate);
  KGRPO_LT(MatrixLayoutDestroy);
  KGRPO_LT(MatrixLayoutSetAttribute);
#undef KGRPO_LT

  template <typename Function>
  static Function Find(void* handle, const char* name) {
    return handle == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(handle, name));
  }
};

#define KGRPO_TEXT_OF(value) #value
#define KGRPO_LIBRARY(major) "libcublasLt.so." KGRPO_TEXT_OF(major)
constexpr const char* kLibrary = KGRPO_LIBRARY(CUBLAS_VER_MAJOR);

const Library& Lt() {
  static const Library library{::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL)};
  return library;
}

const char* Text(const std::string& text) {
  static thread_local std::string kept;
  kept = text;
  return kept.c_str();
}

void Check(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw status;
}

// Runs `work`, which throws a cublasStatus_t if it fails, with `device` current.
template <typename Work>
const char* OnLt(const char* what, int32_t device, Work&& work) {
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const char* failure = OnDevice(what, device, [&] {
    try {
      work();
    } catch (cublasStatus_t thrown) {
      status = thrown;
    }
    return cudaSuccess;
  });
  if (failure != nullptr || status == CUBLAS_STATUS_SUCCESS) return failure;
  return Text(std::string(what) + ": cuBLASLt's status " + std::to_string(status));
}

}  // namespace

// In the library's terms, column by column: y^T [outputs, rows] = weight [inputs, outputs]^T x^T [inputs, rows].
struct PinnedProduct {
  int32_t device = 0;
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t weight = nullptr, x = nullptr, y = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  float add = 0;  // how much of the old y is added
  bool has_bias = false;
  std::string name;

  void Open(const PinnedShape& shape) {
    const Library& lt = Lt();
    const auto inputs = static_cast<uint64_t>(shape.inputs), outputs = static_cast<uint64_t>(shape.outputs);
    add = shape.result == PinnedShape::Result::kAdd ? 1.0F : 0.0F;
    has_bias = shape.has_bias;
    Check(lt.Create(&handle));
    Check(lt.MatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    Set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
    if (has_bias) Set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    Check(lt.MatrixLayoutCreate(&weight, CUDA_R_16BF, inputs, outputs, shape.inputs));
    Check(lt.MatrixLayoutCreate(&x, CUDA_R_16BF, inputs, 1, shape.inputs));
    const auto out = shape.result == PinnedShape::Result::kFloat32 ? CUDA_R_32F : CUDA_R_16BF;
    Check(lt.MatrixLayoutCreate(&y, out, outputs, 1, shape.outputs));
  }

  template <typename Value>
  void Set(cublasLtMatmulDescAttributes_t attribute, const Value& value) {
    Check(Lt().MatmulDescSetAttribute(operation, attribute, &value, sizeof value));
  }

  void SetRows(int64_t rows) {
    const auto columns = static_cast<uint64_t>(rows);
    for (cublasLtMatrixLayout_t layout : {x, y}) {
      Check(Lt().MatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns));
    }
  }

  // Sets `algorithm`; throws CUBLAS_STATUS_NOT_SUPPORTED if there are fewer.
  void Choose(int64_t rows, int32_t candidate) {
    const Library& lt = Lt();
    SetRows(rows);
    cublasLtMatmulPreference_t wish = nullptr;
    Check(lt.MatmulPreferenceCreate(&wish));
    const std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, cublasStatus_t (*)(cublasLtMatmulPreference_t)> owned(
        wish, lt.MatmulPreferenceDestroy);
    const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      Check(lt.MatmulPreferenceSetAttribute(wish, attribute, &value, sizeof value));
    };
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{0});
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, uint32_t{CUBLASLT_REDUCTION_SCHEME_NONE});
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      set(attribute, uint32_t{16});
    }
    cublasLtMatmulHeuristicResult_t found[kMostCandidates];
    int count = 0;
    Check(lt.MatmulAlgoGetHeuristic(handle, operation, weight, x, y, y, wish, kMostCandidates, found, &count));
    if (candidate >= count) throw CUBLAS_STATUS_NOT_SUPPORTED;
    algorithm = found[candidate].algo;
    name = "algorithm";
    for (const auto attribute : {CUBLASLT_ALGO_CONFIG_ID, CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_STAGES_ID,
                                 CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID}) {
      int value = 0;  // the 16-bit attributes fill its lower half
      lt.MatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(int), nullptr);
      if (value == 0) {
        lt.MatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof(uint16_t), nullptr);
      }
      name += (attribute == CUBLASLT_ALGO_CONFIG_ID ? " " : ".") + std::to_string(value);
    }
    const size_t version = lt.GetVersion();
    name += " of cuBLASLt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
            std::to_string(version % 100);
  }

  ~PinnedProduct() {
    const Library& lt = Lt();
    for (cublasLtMatrixLayout_t layout : {weight, x, y}) {
      if (layout != nullptr) lt.MatrixLayoutDestroy(layout);
    }
    if (operation != nullptr) lt.MatmulDescDestroy(operation);
    if (handle != nullptr) lt.Destroy(handle);
  }
};

namespace {

const PinnedProducts kProducts = {
    .struct_size = sizeof(PinnedProducts),
    .pin = [](int32_t device, const PinnedShape& shape, int64_t rows, int32_t candidate,
              PinnedProduct** pinned) -> const char* {
      if (Lt().handle == nullptr) return Text(std::string("no ") + kLibrary + " is loaded");
      auto made = std::make_unique<PinnedProduct>();
      made->device = device;
      const char* failure = OnLt("pin", device, [&] {
        made->Open(shape);
        made->Choose(rows, candidate);
      });
      if (failure == nullptr) *pinned = made.release();
      return failure;
    },
    .release =
        [](PinnedProduct* pinned) { static_cast<void>(OnLt("release", pinned->device, [&] { delete pinned; })); },
    .name = [](const PinnedProduct* pinned) { return pinned->name.c_str(); },
    .run = [](PinnedProduct* pinned, const void* x, const void* weight, const void* bias, int64_t rows, void* y,
              GpuStream stream) -> const char* {
      return OnLt("product", pinned->device, [&] {
        pinned->SetRows(rows);
        if (pinned->has_bias) pinned->Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        const float one = 1;
        Check(Lt().Matmul(pinned->handle, pinned->operation, &one, weight, pinned->weight, x, pinned->x, &pinned->add,
                          y, pinned->y, y, pinned->y, &pinned->algorithm, nullptr, 0, StreamOf(stream)));
      });
    },
};

}  // namespace
}  // namespace kgrpo::policy

#else  // without the header

namespace kgrpo::policy {
namespace {

const PinnedProducts kProducts = {
    .struct_size = sizeof(PinnedProducts),
    .pin = [](int32_t, const PinnedShape&, int64_t, int32_t, PinnedProduct**) -> const char* {
      return "kgrpo was built without cublasLt.h";
    },
};

}  // namespace
}  // namespace kgrpo::policy

#endif

extern "C" __attribute__((visibility("default"))) const kgrpo::policy::PinnedProducts* kgrpo_policy_pinned_products() {
  return &kgrpo::policy::kProducts;
}
