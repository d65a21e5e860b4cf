// libort_abi_cxx_guard.so: calls into plugins that catch what C++ code throws. The host loads it where a plugin may be
// written in C++, and calls every plugin through it from then on.
#include "base/cxx_guard.h"

#include <cxxabi.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <typeinfo>
#include <utility>

namespace {

const GuardHost* guard_host;

// The type of the exception that is being handled, "" if it is not one of C++'s.
std::string type_name() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "";
  int failed = 0;
  char* readable = abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed);
  std::string name = readable != nullptr ? readable : type->name();
  std::free(readable);
  return name;
}

// Calls `tell` with the text of the exception that is being handled.
template <typename Tell>
void tell_exception(Tell tell) {
  try {
    try {
      throw;
    } catch (const std::exception& exception) {
      const char* what = exception.what();
      tell(("C++ exception " + type_name() + ": " + (what != nullptr ? what : "")).c_str());
    } catch (...) {
      std::string name = type_name();
      tell(("unknown C++ exception" + (name.empty() ? name : " of type " + name)).c_str());
    }
  } catch (...) {
    tell("C++ exception; no memory for its text");
  }
}

// The end of a thread (pthread_exit, pthread_cancel) unwinds the stack as an exception does, and must go on.
template <typename Call>
OrtStatus* guarded(const char* slot, Call call) {
  OrtStatus* status = nullptr;
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    tell_exception([&](const char* what) { status = guard_host->failure(slot, what); });
  }
  return status;
}

// For what cannot return a status: gives the neutral value, and the status in *thrown.
template <typename Call>
auto guarded(const char* slot, Call call, OrtStatus** thrown) -> decltype(call()) {
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    tell_exception([&](const char* what) { guard_host->unreturned(slot, what, thrown); });
  }
  return decltype(call())();
}

#include "guarded_calls.inc"

}  // namespace

const GuardedCalls* ortabi_cxx_guard(const GuardHost* host, size_t calls_size) {
  guard_host = host;
  return calls_size == sizeof calls ? &calls : nullptr;
}
