// PyTorch's dispatch over dtypes (torch_types.h).
#pragma once

#include <kgrpo/torch_types.h>

#define AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, hint, ...)            \
  case enum_type: {                                                      \
    using hint [[maybe_unused]] = ::at::ScalarTypeToCPPTypeT<enum_type>; \
    return __VA_ARGS__();                                                \
  }
#define AT_DISPATCH_CASE(enum_type, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                                             \
  [&] {                                                                                 \
    switch (static_cast<::at::ScalarType>(TYPE)) {                                      \
      __VA_ARGS__ default : ::at::detail::Fail(NAME, "not implemented for this dtype"); \
    }                                                                                   \
  }()
#define AT_DISPATCH_CASE_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(::at::ScalarType::Double, __VA_ARGS__) AT_DISPATCH_CASE(::at::ScalarType::Float, __VA_ARGS__)
#define AT_DISPATCH_CASE_REDUCED_FLOATING_TYPES(...) \
  AT_DISPATCH_CASE(::at::ScalarType::Half, __VA_ARGS__) AT_DISPATCH_CASE(::at::ScalarType::BFloat16, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)            \
  AT_DISPATCH_CASE(::at::ScalarType::Byte, __VA_ARGS__) \
  AT_DISPATCH_CASE(::at::ScalarType::Char, __VA_ARGS__) \
  AT_DISPATCH_CASE(::at::ScalarType::Int, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::at::ScalarType::Long, __VA_ARGS__) \
  AT_DISPATCH_CASE(::at::ScalarType::Short, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...) \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)
#define KGRPO_DISPATCH(KIND, TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_##KIND(__VA_ARGS__))
#define KGRPO_DISPATCH_AND(KIND, T1, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_##KIND(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__))
#define KGRPO_DISPATCH_AND2(KIND, T1, T2, TYPE, NAME, ...)                                  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                            \
                     AT_DISPATCH_CASE_##KIND(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__) \
                         AT_DISPATCH_CASE(T2, __VA_ARGS__))
#define KGRPO_DISPATCH_AND3(KIND, T1, T2, T3, TYPE, NAME, ...)                              \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                            \
                     AT_DISPATCH_CASE_##KIND(__VA_ARGS__) AT_DISPATCH_CASE(T1, __VA_ARGS__) \
                         AT_DISPATCH_CASE(T2, __VA_ARGS__) AT_DISPATCH_CASE(T3, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES(...) KGRPO_DISPATCH(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(...) KGRPO_DISPATCH_AND(FLOATING_TYPES, ::at::ScalarType::Half, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(...) KGRPO_DISPATCH_AND(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(...) KGRPO_DISPATCH_AND2(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND3(...) KGRPO_DISPATCH_AND3(FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(...) KGRPO_DISPATCH(REDUCED_FLOATING_TYPES, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(...) KGRPO_DISPATCH(INTEGRAL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(...) KGRPO_DISPATCH(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND_HALF(...) KGRPO_DISPATCH_AND(ALL_TYPES, ::at::ScalarType::Half, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(...) KGRPO_DISPATCH_AND(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(...) KGRPO_DISPATCH_AND2(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(...) KGRPO_DISPATCH_AND3(ALL_TYPES, __VA_ARGS__)
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                  \
                     AT_PRIVATE_CASE_TYPE_USING_HINT(::at::ScalarType::Int, index_t, __VA_ARGS__) \
                         AT_PRIVATE_CASE_TYPE_USING_HINT(::at::ScalarType::Long, index_t, __VA_ARGS__))
