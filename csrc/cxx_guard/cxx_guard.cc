// libort_abi_cxx_guard.so: calls into plugins that catch what C++ code throws. The host loads it where a
// plugin may be written in C++, and calls every plugin through it from then on.
#include "base/cxx_guard.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <typeinfo>

namespace {

const GuardHost* guard_host;

// Calls `tell` with type and text of the exception that is being handled; nullptr for what is not known. No
// exception leaves it.
template <typename Tell>
void tell_exception(Tell tell) {
  bool is_cxx = std::current_exception() != nullptr;  // what other languages throw is null there
  const std::type_info* type = is_cxx ? abi::__cxa_current_exception_type() : nullptr;
  int failed = 0;
  char* readable = type != nullptr ? abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed) : nullptr;
  const char* name = readable != nullptr || type == nullptr ? readable : type->name();
  try {
    throw;
  } catch (const std::exception& exception) {
    const char* what = exception.what();
    tell(name, what != nullptr ? what : "");
  } catch (...) {
    tell(name, nullptr);
  }
  std::free(readable);
}

// The end of a thread (pthread_exit, pthread_cancel) unwinds the stack as an exception does, and must go on.
template <typename Call>
OrtStatus* guarded(Call call) {
  OrtStatus* status = nullptr;
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    tell_exception([&](const char* type, const char* what) { status = guard_host->failure(type, what); });
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
    tell_exception(
        [&](const char* type, const char* what) { guard_host->unreturned(slot, type, what, thrown); });
  }
  return decltype(call())();
}

#include "guarded_calls.inc"

}  // namespace

const GuardedCalls* ortabi_cxx_guard(const GuardHost* host, size_t calls_size) {
  guard_host = host;
  return calls_size == sizeof calls ? &calls : nullptr;
}
