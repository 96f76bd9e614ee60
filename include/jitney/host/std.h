/* std.h — the standard headers that users of torch's headers lean on without naming them, and how errors leave an op. */
#ifndef JITNEY_HOST_STD_H
#define JITNEY_HOST_STD_H

/* libstdc++'s special functions (std::beta and friends) cost every translation unit 20 ms in instantiations that nobody
 * asked for. They are left out of <cmath> unless JITNEY_WHOLE_STD is defined; Jitney defines it, and compiles again, when a
 * source turns out to use something of std that is missing. */
#include <cstddef>
#if !defined(JITNEY_WHOLE_STD) && defined(_GLIBCXX_USE_STD_SPEC_FUNCS)
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#endif

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#ifdef JITNEY_WHOLE_STD
#include <atomic>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#endif

#include "jitney/abi.h"

/* Everything here is private to one shared object: two modules built by different versions of these headers can live in
 * one process, and a module can be closed. */
#define JTN_HIDDEN_BEGIN _Pragma("GCC visibility push(hidden)")
#define JTN_HIDDEN_END _Pragma("GCC visibility pop")

/* What is not a template and not tiny is defined in runtime.inc: inline in the user's file, or, with JITNEY_HOST_RUNTIME, in
 * one object (runtime.cpp) that Jitney compiles once per compiler and links into every module. That halves a small build. */
#ifdef JITNEY_HOST_RUNTIME
#define JTN_RT
#else
#define JTN_RT inline
#endif

#define JTN_PASTE_(a, b) a##b
#define JTN_PASTE(a, b) JTN_PASTE_(a, b)

JTN_HIDDEN_BEGIN
namespace jitney {

/* The library's table, set by jtn_ext_init before any of the user's functions runs. */
inline const jtn_abi *abi = nullptr;

/* An allocation for a result, or (call NULL) for a default or a value of the module: that lives until the module is set up. */
JTN_RT void *result_alloc(void *call, size_t bytes);

} // namespace jitney
JTN_HIDDEN_END
#endif
