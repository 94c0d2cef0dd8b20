// SPDX-License-Identifier: Apache-2.0
// The functions that device code calls and no module defines (CUDA programming guide, printf,
// assert, malloc): vprintf, __assertfail, malloc, free.
#include <fmt/core.h>

#include <cstdio>

#include "softgpu/exec/lanes.h"
#include "softgpu/exec/opcode.h"

namespace remora::softgpu {
namespace {

constexpr std::size_t kMaxText = 1 << 16;

/// Device memory as a kernel sees it; reading fails once and for all at the first bad byte.
class Reader {
 public:
  Reader(Warp& warp, const Instruction& at, std::uint32_t lane) : warp_(warp), at_(at), lane_(lane) {}
  bool ok() const { return ok_; }

  template <typename T>
  T read(std::uint64_t address) {
    T value{};
    const std::byte* from = ok_ ? warp_.generic(address, sizeof(T), false, lane_, at_) : nullptr;
    if (from == nullptr) {
      ok_ = false;
    } else {
      std::memcpy(&value, from, sizeof value);
    }
    return value;
  }
  std::string text(std::uint64_t address) {
    std::string result;
    while (result.size() < kMaxText) {
      const char c = read<char>(address++);
      if (!ok_ || c == 0) break;
      result += c;
    }
    return result;
  }

 private:
  Warp& warp_;
  const Instruction& at_;
  const std::uint32_t lane_;
  bool ok_ = true;
};

template <typename T>
void append(std::string& out, const std::string& specification, T value) {
  char buffer[512];
  const int length = std::snprintf(buffer, sizeof buffer, specification.c_str(), value);
  if (length > 0) out.append(buffer, std::min<std::size_t>(static_cast<std::size_t>(length), sizeof buffer - 1));
}

/// printf's conversions over an argument buffer in which each argument stands at its own alignment.
std::string format_print(Reader& reader, const std::string& format, std::uint64_t arguments) {
  std::string out;
  const auto next = [&]<typename T>(T) {
    arguments = (arguments + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const T value = reader.read<T>(arguments);
    arguments += sizeof(T);
    return value;
  };
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    std::size_t end = at + 1;
    std::string specification = "%";
    unsigned longs = 0;
    while (end < format.size() && std::strchr("-+ #0123456789.*hlzjtL", format[end]) != nullptr) {
      const char c = format[end++];
      if (c == '*') {
        specification += std::to_string(next(std::int32_t{}));
      } else if (std::strchr("hlzjtL", c) != nullptr) {
        longs += c == 'l' || c == 'z' || c == 'j' || c == 't' ? 1 : 0;
        if (c == 'h') specification += c;
      } else {
        specification += c;
      }
    }
    const char conversion = end < format.size() ? format[end] : '%';
    at = end + 1;
    switch (conversion) {
      case '%':
        out += '%';
        break;
      case 'd':
      case 'i':
        if (longs != 0) {
          append(out, specification + "ll" + conversion, static_cast<long long>(next(std::int64_t{})));
        } else {
          append(out, specification + conversion, next(std::int32_t{}));
        }
        break;
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        if (longs != 0) {
          append(out, specification + "ll" + conversion,
                 static_cast<unsigned long long>(next(std::uint64_t{})));
        } else {
          append(out, specification + conversion, next(std::uint32_t{}));
        }
        break;
      case 'c':
        append(out, specification + conversion, next(std::int32_t{}));
        break;
      case 'f':
      case 'F':
      case 'e':
      case 'E':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        append(out, specification + conversion, next(double{}));
        break;
      case 'p':
        append(out, specification + conversion, reinterpret_cast<void*>(next(std::uint64_t{})));
        break;
      case 's':
        out += reader.text(next(std::uint64_t{}));
        break;
      default:
        out += specification + conversion;
    }
    if (!reader.ok() || out.size() > kMaxText) break;
  }
  return out;
}

/// d = vprintf(a, b)
Flow print(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto& hooks = warp.block().grid().hooks;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    Reader reader(warp, i, lane);
    const std::string format = reader.text(warp.in<std::uint64_t>(i.a)[lane]);
    const std::string text = format_print(reader, format, warp.in<std::uint64_t>(i.b)[lane]);
    if (!reader.ok()) return Flow::fault;
    if (hooks.print) hooks.print(text);
    warp.out<std::uint32_t>(i.d)[lane] = static_cast<std::uint32_t>(text.size());
  }
  return Flow::next;
}

/// __assertfail(a message, b file, c line, e function)
Flow assert_failed(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
  const Dim3 block = warp.block().index();
  const Dim3 shape = warp.block().grid().shape.block;
  const std::uint32_t thread = warp.index() * kWarpLanes + lane;
  Reader reader(warp, i, lane);
  const std::string line = fmt::format(
      "{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.",
      reader.text(warp.in<std::uint64_t>(i.b)[lane]), warp.in<std::uint32_t>(i.c)[lane],
      reader.text(warp.in<std::uint64_t>(i.e)[lane]), block.x, block.y, block.z, thread % shape.x,
      thread / shape.x % shape.y, thread / (shape.x * shape.y),
      reader.text(warp.in<std::uint64_t>(i.a)[lane]));
  const auto& hooks = warp.block().grid().hooks;
  if (hooks.report_assert) hooks.report_assert(line);
  return warp.fault(Fault::Kind::assert_failed, lane, i, line);
}

/// d = malloc(a)
Flow allocate(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto& hooks = warp.block().grid().hooks;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    if (!hooks.allocate) {
      return warp.fault(Fault::Kind::illegal_instruction, lane, i, "there is no device heap");
    }
    warp.out<std::uint64_t>(i.d)[lane] = hooks.allocate(warp.in<std::uint64_t>(i.a)[lane]);
  }
  return Flow::next;
}
/// free(a)
Flow release(Warp& warp, const Instruction& i, std::uint32_t mask) {
  const auto& hooks = warp.block().grid().hooks;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::uint64_t address = warp.in<std::uint64_t>(i.a)[lane];
    if (address != 0 && (!hooks.release || !hooks.release(address))) {
      return warp.fault(Fault::Kind::illegal_address, lane, i, "frees what was not allocated");
    }
  }
  return Flow::next;
}

}  // namespace

Handler print_handler() { return print; }
Handler assert_handler() { return assert_failed; }
Handler allocate_handler() { return allocate; }
Handler release_handler() { return release; }

}  // namespace remora::softgpu
