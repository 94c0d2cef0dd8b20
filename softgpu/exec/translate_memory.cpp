// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics to handlers.
#include <fmt/core.h>

#include <algorithm>

#include "softgpu/exec/access.h"
#include "softgpu/exec/translator.h"

namespace remora::softgpu {
namespace {

struct MemoryModifiers {
  std::string_view space;  // empty: generic
  unsigned vector = 1;
  bool known = true;
};

/// Order, scope and cache hints do not change what is read here; anything unheard of is refused.
MemoryModifiers read_modifiers(const Opcode& o, std::initializer_list<std::string_view> operations) {
  MemoryModifiers result;
  for (std::size_t i = 0; i < o.modifier_count; ++i) {
    const std::string_view m = o.modifiers[i];
    if (scalar_type(m)) continue;
    if (m == "global" || m == "const" || m == "local") {
      result.space = m;
    } else if (m == "shared" || m == "shared::cta") {
      result.space = "shared";
    } else if (m == "param" || m == "param::entry" || m == "param::func") {
      result.space = "param";
    } else if (m == "v2" || m == "v4") {
      result.vector = m == "v2" ? 2 : 4;
    } else if (m == "weak" || m == "volatile" || m == "relaxed" || m == "acquire" ||
               m == "release" || m == "acq_rel" || m == "sc" || m == "cta" || m == "cluster" ||
               m == "gpu" || m == "sys" || m == "ca" || m == "cg" || m == "cs" || m == "lu" ||
               m == "cv" || m == "wb" || m == "wt" || m == "nc" || m == "uniform" || m == "noftz" ||
               m.starts_with("L1::") || m.starts_with("L2::")) {
      continue;
    } else if (std::find(operations.begin(), operations.end(), m) == operations.end()) {
      result.known = false;
    }
  }
  return result;
}

}  // namespace

Result<> Translator::address(const Operand& operand, Instruction& instruction,
                             std::string_view& space) {
  if (operand.kind != Operand::Kind::address) return wrong("an address belongs here");
  switch (operand.base_kind) {
    case Operand::Kind::reg: {
      const ScalarType declared = frame_->body.registers[operand.index].type;
      instruction.a = {frame_->registers[operand.index], false};
      instruction.wide_address = size_bytes(declared) == 8;
      instruction.immediate = operand.bits;
      if (declared == ScalarType::pred) return wrong("a predicate as an address");
      return {};
    }
    case Operand::Kind::local: {
      Operand variable = operand;
      variable.kind = Operand::Kind::local;
      // A .param variable of a call, or a parameter of an expanded function, lies in local memory.
      if (space == "param" && !is_kernel_parameter(operand.index)) space = "local";
      REMORA_TRY(instruction.a, symbol_address(variable, ScalarType::u64));
      return {};
    }
    case Operand::Kind::symbol: {
      Operand variable = operand;
      variable.kind = Operand::Kind::symbol;
      REMORA_TRY(instruction.a, symbol_address(variable, ScalarType::u64));
      return {};
    }
    default:
      instruction.a = constant(operand.bits, 8);
      return {};
  }
}

Result<> Translator::translate_load(const Opcode& o) {
  MemoryModifiers m = read_modifiers(o, {});
  if (!m.known || operand_count() < 2) return unsupported("this form");
  const ScalarType t = o.type();
  Instruction load = blank();
  REMORA_TRY_DO(address(operand(1), load, m.space));
  // ld.param through a register: cvta'd nowhere, so an offset among the kernel's parameters.
  load.run = load_handler(m.space, t, m.vector);
  if (load.run == nullptr) return unsupported("this state space or type");
  std::vector<Operand> parts{operand(0)};
  if (m.vector != 1) {
    if (operand(0).kind != Operand::Kind::list) return wrong("a vector belongs here");
    parts = items(operand(0));
  }
  if (parts.size() != m.vector) return wrong("a vector of another width belongs here");
  std::uint32_t offsets[4] = {};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    REMORA_TRY(offsets[i], destination(parts[i], t));
  }
  load.d = offsets[0];
  load.d2 = offsets[1];
  load.b.offset = offsets[2];
  load.c.offset = offsets[3];
  emit(load);
  finish();
  return {};
}

Result<> Translator::translate_store(const Opcode& o) {
  MemoryModifiers m = read_modifiers(o, {});
  if (!m.known || operand_count() < 2) return unsupported("this form");
  const ScalarType t = o.type();
  Instruction store = blank();
  REMORA_TRY_DO(address(operand(0), store, m.space));
  store.run = store_handler(m.space, t, m.vector);
  if (store.run == nullptr) return unsupported("this state space or type");
  std::vector<Operand> parts{operand(1)};
  if (m.vector != 1) {
    if (operand(1).kind != Operand::Kind::list) return wrong("a vector belongs here");
    parts = items(operand(1));
  }
  if (parts.size() != m.vector) return wrong("a vector of another width belongs here");
  Place* const places[] = {&store.b, &store.c, &store.e};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    REMORA_TRY(Place place, source(parts[i], t));
    if (i < 3) {
      *places[i] = place;
      continue;
    }
    if (place.constant) {
      Instruction move = blank();
      const unsigned bytes = size_bytes(t) == 8 ? 8 : 4;
      move.run = move_handler(bytes, bytes, false);
      move.a = place;
      move.d = new_register(t);
      emit(move);
      place = {move.d, false};
    }
    store.d = place.offset;
  }
  emit(store);
  return {};
}

Result<> Translator::translate_atomic(const Opcode& o) {
  const bool returns = o.base == "atom";
  constexpr std::string_view kOperations[] = {"add", "exch", "cas", "min", "max",
                                              "and", "or",   "xor", "inc", "dec"};
  MemoryModifiers m =
      read_modifiers(o, {"add", "exch", "cas", "min", "max", "and", "or", "xor", "inc", "dec"});
  std::string_view operation;
  for (const std::string_view known : kOperations) {
    if (o.has(known)) operation = known;
  }
  const ScalarType t = o.type();
  if (!m.known || m.vector != 1 || operation.empty()) return unsupported("this form");
  if (m.space == "local" || m.space == "param" || m.space == "const") {
    return unsupported("this state space");
  }
  const std::size_t first = returns ? 1 : 0;
  const std::size_t values = operation == "cas" ? 2 : 1;
  if (operand_count() != first + 1 + values) return unsupported("this number of operands");
  Instruction atomic = blank();
  REMORA_TRY_DO(address(operand(first), atomic, m.space));
  atomic.run = atomic_handler(operation, t, m.space == "shared");
  if (atomic.run == nullptr) return unsupported("this type");
  REMORA_TRY(atomic.b, source(operand(first + 1), t));
  atomic.c = atomic.b;
  if (values == 2) {
    REMORA_TRY(atomic.c, source(operand(first + 2), t));
  }
  if (returns) {
    REMORA_TRY(atomic.d, destination(operand(0), t));
  } else {
    atomic.d = new_register(t);
  }
  emit(atomic);
  finish();
  return {};
}

}  // namespace remora::softgpu
