// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error. The only way in which a function of ours reports failure; no
// exception crosses an interface.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"

namespace remora {

template <typename T = void>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  /// Calling value() on an error, or error() on a value, is a bug and terminates.
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }

  Error& error() & { return error_.value(); }
  const Error& error() const& { return error_.value(); }
  Error&& error() && { return std::move(error_).value(); }

 private:
  std::optional<Error> error_;
};

}  // namespace remora

#define REMORA_CONCAT_INNER(a, b) a##b
#define REMORA_CONCAT(a, b) REMORA_CONCAT_INNER(a, b)

/// REMORA_TRY(auto x, f()): x gets f()'s value, or the enclosing function returns f()'s error.
#define REMORA_TRY(declaration, ...)                                            \
  auto REMORA_CONCAT(remora_try_, __LINE__) = (__VA_ARGS__);                    \
  if (!REMORA_CONCAT(remora_try_, __LINE__).ok())                               \
    return std::move(REMORA_CONCAT(remora_try_, __LINE__)).error();             \
  declaration = std::move(REMORA_CONCAT(remora_try_, __LINE__)).value()

/// REMORA_TRY_DO(f()): the same for a Result<void>.
#define REMORA_TRY_DO(...)                                            \
  do {                                                                \
    auto remora_try_result = (__VA_ARGS__);                           \
    if (!remora_try_result.ok()) return std::move(remora_try_result).error(); \
  } while (false)
