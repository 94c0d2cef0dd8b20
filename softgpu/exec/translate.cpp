// SPDX-License-Identifier: Apache-2.0
// Instructions to handlers: dispatch by opcode, moves, comparisons, arithmetic.
#include <fmt/core.h>

#include <algorithm>

#include "softgpu/exec/access.h"
#include "softgpu/exec/translator.h"

namespace remora::softgpu {

Opcode::Opcode(std::string_view text) : text(text) {
  base = text.substr(0, text.find('.'));
  std::size_t at = base.size();
  while (at < text.size() && modifier_count < modifiers.size()) {
    const std::size_t end = std::min(text.find('.', at + 1), text.size());
    const std::string_view modifier = text.substr(at + 1, end - at - 1);
    modifiers[modifier_count++] = modifier;
    if (const auto type = scalar_type(modifier); type && type_count < types.size()) {
      types[type_count++] = *type;
    }
    at = end;
  }
}

bool Opcode::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.begin() + modifier_count, modifier) !=
         modifiers.begin() + modifier_count;
}

bool Opcode::only(std::initializer_list<std::string_view> known) const {
  return std::all_of(modifiers.begin(), modifiers.begin() + modifier_count, [&](auto modifier) {
    return scalar_type(modifier) || std::find(known.begin(), known.end(), modifier) != known.end();
  });
}

Result<> Translator::translate_instruction(const ParsedInstruction& parsed) {
  const Opcode o(parsed.opcode);
  const std::string_view base = o.base;
  if (base == "mov") return translate_move(o);
  if (base == "cvta") return translate_address_conversion(o);
  if (base == "ld" || base == "ldu") return translate_load(o);
  if (base == "st") return translate_store(o);
  if (base == "atom" || base == "red") return translate_atomic(o);
  if (base == "setp" || base == "set") return translate_compare(o);
  if (base == "selp" || base == "slct") return translate_select(o);
  if (base == "bra") return translate_branch(o);
  if (base == "ret" || base == "exit") {
    if (base == "exit") {
      Instruction end = blank();
      end.run = exit_handler();
      emit(end);
      return {};
    }
    return translate_return();
  }
  if (base == "call") return translate_call(o);
  if (base == "bar" || base == "barrier") return translate_barrier(o);
  if (base == "shfl" || base == "vote" || base == "match" || base == "activemask" ||
      base == "redux" || base == "elect") {
    return translate_warp_wide(o);
  }
  if (o.type() == ScalarType::pred) return translate_predicate_logic(o);
  if (base == "membar" || base == "fence") {
    Instruction fence = blank();
    fence.run = fence_handler();
    emit(fence);
    return {};
  }
  if (base == "prefetch" || base == "prefetchu" || base == "pmevent" || base == "brkpt" ||
      base == "applypriority" || base == "griddepcontrol") {
    return {};  // hints, and what only a profiler or debugger sees
  }
  if (base == "trap" || base == "nanosleep") {
    Instruction instruction = blank();
    instruction.run = base == "trap" ? trap_handler() : yield_handler();
    emit(instruction);
    return {};
  }
  return translate_arithmetic(o);
}

Result<> Translator::translate_move(const Opcode& o) {
  if (operand_count() != 2) return wrong("two operands belong here");
  if (operand(0).kind == Operand::Kind::list) return translate_unpack(o);
  if (operand(1).kind == Operand::Kind::list) return translate_pack(o);
  const ScalarType t = o.type();
  if (t == ScalarType::pred) return translate_predicate_logic(o);
  if (t == ScalarType::none || size_bytes(t) > 8 || !o.only({})) return unsupported("this form");
  if (operand(1).kind == Operand::Kind::special) {
    const std::string_view name = operand(1).name;
    if (name == "%clock" || name == "%clock64" || name == "%clock_hi" || name == "%globaltimer" ||
        name == "%globaltimer_lo") {
      Instruction clock = blank();
      clock.run = clock_handler(size_bytes(t) == 8);
      REMORA_TRY(clock.d, destination(operand(0), t));
      emit(clock);
      finish();
      return {};
    }
  }
  Instruction move = blank();
  REMORA_TRY(move.a, source(operand(1), t));
  REMORA_TRY(move.d, destination(operand(0), t));
  const unsigned bytes = size_bytes(t) == 8 ? 8 : 4;
  move.run = move_handler(bytes, bytes, false);
  emit(move);
  finish();
  return {};
}

Result<> Translator::translate_pack(const Opcode& o) {
  const std::vector<Operand> parts = items(operand(1));
  const unsigned whole = size_bytes(o.type());
  if (parts.empty() || parts.size() > 4 || whole % parts.size() != 0) return unsupported("this packing");
  const auto part_bytes = static_cast<unsigned>(whole / parts.size());
  const ScalarType part = part_bytes == 1   ? ScalarType::b8
                          : part_bytes == 2 ? ScalarType::b16
                                            : ScalarType::b32;
  Instruction pack = blank();
  pack.run = pack_handler(part_bytes, static_cast<unsigned>(parts.size()));
  if (pack.run == nullptr) return unsupported("this packing");
  Place* const places[] = {&pack.a, &pack.b, &pack.c, &pack.e};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    REMORA_TRY(*places[i], source(parts[i], part));
  }
  REMORA_TRY(pack.d, destination(operand(0), o.type()));
  emit(pack);
  finish();
  return {};
}

Result<> Translator::translate_unpack(const Opcode& o) {
  const std::vector<Operand> parts = items(operand(0));
  const unsigned whole = size_bytes(o.type());
  if (parts.empty() || parts.size() > 4 || whole % parts.size() != 0) return unsupported("this unpacking");
  const auto part_bytes = static_cast<unsigned>(whole / parts.size());
  const ScalarType part = part_bytes == 1   ? ScalarType::b8
                          : part_bytes == 2 ? ScalarType::b16
                                            : ScalarType::b32;
  REMORA_TRY(Place from, source(operand(1), o.type()));
  // A part may be the very register that is taken apart: by way of a copy.
  Instruction copy = blank();
  const unsigned bytes = whole == 8 ? 8 : 4;
  copy.run = move_handler(bytes, bytes, false);
  copy.a = from;
  copy.d = new_register(o.type());
  emit(copy);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].kind == Operand::Kind::discard) continue;
    Instruction unpack = blank();
    unpack.run = unpack_handler(part_bytes, whole);
    if (unpack.run == nullptr) return unsupported("this unpacking");
    unpack.a = {copy.d, false};
    unpack.small = static_cast<std::uint8_t>(i);
    REMORA_TRY(unpack.d, destination(parts[i], part));
    emit(unpack);
    finish();
  }
  return {};
}

/// cvta: between the addresses of a state space and generic ones, which differ by the window.
Result<> Translator::translate_address_conversion(const Opcode& o) {
  const ScalarType t = o.type();
  if (size_bytes(t) != 8) return unsupported("32-bit addresses");
  std::uint64_t window = 0;
  if (o.has("shared") || o.has("shared::cta")) window = kSharedWindow;
  if (o.has("local")) window = kLocalWindow;
  if (o.has("param") || o.has("param::entry")) window = kParamWindow;
  if (!o.only({"to", "global", "const", "shared", "shared::cta", "local", "param", "param::entry"})) {
    return unsupported("this state space");
  }
  // A parameter of an expanded function lies in local memory.
  if (window == kParamWindow && !frame_->is_kernel) window = kLocalWindow;
  Instruction convert = blank();
  REMORA_TRY(convert.a, source(operand(1), t));
  REMORA_TRY(convert.d, destination(operand(0), t));
  convert.b = constant(o.has("to") ? 0 - window : window, 8);
  convert.run = integer_shape(Opcode("add.u64")).handler;
  emit(convert);
  finish();
  return {};
}

Result<> Translator::translate_compare(const Opcode& o) {
  const bool to_register = o.base == "set";
  if (o.type_count != (to_register ? 2u : 1u)) return unsupported("this form");
  const ScalarType compared = o.last_type();
  const bool combined = o.has("and") || o.has("or") || o.has("xor");
  if (operand_count() != (combined ? 4u : 3u)) return wrong("another number of operands belongs here");
  std::string_view comparison;
  for (std::size_t i = 0; i < o.modifier_count; ++i) {
    const std::string_view m = o.modifiers[i];
    if (scalar_type(m) || m == "ftz" || m == "and" || m == "or" || m == "xor") continue;
    if (!comparison.empty()) return unsupported("this modifier");
    comparison = m;
  }
  Instruction compare = blank();
  compare.run = compare_handler(comparison, compared, o.has("ftz"));
  if (compare.run == nullptr) return unsupported("this comparison");
  REMORA_TRY(compare.a, source(operand(1), compared));
  REMORA_TRY(compare.b, source(operand(2), compared));
  if (combined) {
    bool negated = false;
    REMORA_TRY(compare.c, predicate(operand(3), negated));
    compare.small = static_cast<std::uint8_t>((o.has("and") ? 1 : o.has("or") ? 2 : 3) |
                                              (negated ? 4 : 0));
  }
  if (!to_register) {
    REMORA_TRY(compare.d, destination(operand(0), ScalarType::pred));
    if (operand(0).pair != kNoRegister) {
      compare.d2 = frame_->registers[operand(0).pair];
      compare.small |= 8;
    }
    emit(compare);
    return {};
  }
  compare.d = new_register(ScalarType::pred);
  emit(compare);
  const ScalarType result = o.types[0];
  if (result != ScalarType::u32 && result != ScalarType::s32 && result != ScalarType::f32) {
    return unsupported("this result type");
  }
  Instruction select = blank();
  select.run = select_handler(4, false, false);
  select.a = constant(result == ScalarType::f32 ? 0x3f800000u : UINT32_MAX, 4);
  select.b = constant(0, 4);
  select.c = {compare.d, false};
  REMORA_TRY(select.d, destination(operand(0), result));
  emit(select);
  finish();
  return {};
}

Result<> Translator::translate_select(const Opcode& o) {
  if (operand_count() != 4) return wrong("four operands belong here");
  const ScalarType t = o.type();
  if (t == ScalarType::none || t == ScalarType::pred || size_bytes(t) > 8) return unsupported("this type");
  Instruction select = blank();
  REMORA_TRY(select.a, source(operand(1), t));
  REMORA_TRY(select.b, source(operand(2), t));
  if (o.base == "selp") {
    if (o.type_count != 1 || !o.only({})) return unsupported("this form");
    bool negated = false;
    REMORA_TRY(select.c, predicate(operand(3), negated));
    select.small = negated ? 1 : 0;
    select.run = select_handler(size_bytes(t), false, false);
  } else {
    const ScalarType by = o.last_type();
    if (o.type_count != 2 || (by != ScalarType::s32 && by != ScalarType::f32) || !o.only({"ftz"})) {
      return unsupported("this form");
    }
    REMORA_TRY(select.c, source(operand(3), by));
    select.run = select_handler(size_bytes(t), by == ScalarType::f32, by == ScalarType::s32);
  }
  REMORA_TRY(select.d, destination(operand(0), t));
  emit(select);
  finish();
  return {};
}

Result<> Translator::translate_predicate_logic(const Opcode& o) {
  Instruction logic = blank();
  logic.run = predicate_handler(o.base);
  const bool one_source = o.base == "mov" || o.base == "not";
  if (logic.run == nullptr || !o.only({})) return unsupported("this operation on predicates");
  if (operand_count() != (one_source ? 2u : 3u)) return wrong("another number of operands belongs here");
  bool negated = false;
  REMORA_TRY(logic.a, predicate(operand(1), negated));
  logic.small = negated ? 1 : 0;
  if (!one_source) {
    REMORA_TRY(logic.b, predicate(operand(2), negated));
    if (negated) logic.small |= 2;
  }
  REMORA_TRY(logic.d, destination(operand(0), ScalarType::pred));
  emit(logic);
  return {};
}

Result<> Translator::translate_shape(const Opcode& o, const Shape& shape, std::uint8_t small) {
  // Beyond the shape's sources: bfi's length, lop3's table.
  const std::size_t extra = o.base == "bfi" || o.base == "lop3" ? 1 : 0;
  if (operand_count() != 1 + shape.source_count + extra) {
    return wrong("another number of operands belongs here");
  }
  Instruction instruction = blank();
  instruction.run = shape.handler;
  instruction.small = small;
  Place* const places[] = {&instruction.a, &instruction.b, &instruction.c};
  for (std::size_t i = 0; i < shape.source_count; ++i) {
    REMORA_TRY(*places[i], source(operand(i + 1), shape.sources[i]));
  }
  if (o.base == "bfi") {
    REMORA_TRY(instruction.e, source(operand(4), ScalarType::u32));
  } else if (o.base == "lop3") {
    if (operand(4).kind != Operand::Kind::integer || operand(0).pair != kNoRegister) {
      return unsupported("this form");
    }
    instruction.immediate = operand(4).bits;
  }
  if (o.base == "addc" || o.base == "subc" || o.has("cc")) {
    instruction.d2 = carry_flag();
    const bool reads = o.base == "addc" || o.base == "subc";
    instruction.small = static_cast<std::uint8_t>((reads ? 1 : 0) | (o.has("cc") ? 2 : 0) |
                                                  (o.base.starts_with("sub") ? 4 : 0));
  }
  REMORA_TRY(instruction.d, destination(operand(0), shape.result));
  emit(instruction);
  finish();
  return {};
}

Result<> Translator::translate_arithmetic(const Opcode& o) {
  if (o.base == "cvt") {
    const Shape shape = convert_shape(o);
    if (shape.handler == nullptr) return unsupported("this conversion");
    REMORA_TRY_DO(translate_shape(o, shape, convert_small(o)));
    // Float to the same float: rounds to a whole number when it says so.
    const bool whole = o.has("rni") || o.has("rzi") || o.has("rmi") || o.has("rpi");
    for (std::size_t i = program_->code.size(); whole && i-- > 0;) {
      if (program_->code[i].run != shape.handler) continue;
      program_->code[i].immediate = 1;
      break;
    }
    return {};
  }
  if (o.base == "isspacep") {
    Instruction ask = blank();
    ask.run = is_space_handler();
    if (o.has("shared") || o.has("shared::cta")) {
      ask.immediate = kSharedWindow;
    } else if (o.has("local")) {
      ask.immediate = kLocalWindow;
    } else if (o.has("param") || o.has("param::entry")) {
      ask.immediate = kParamWindow;
    } else if (!o.has("global") && !o.has("const")) {
      return unsupported("this state space");
    }
    REMORA_TRY(ask.a, source(operand(1), ScalarType::u64));
    REMORA_TRY(ask.d, destination(operand(0), ScalarType::pred));
    emit(ask);
    return {};
  }
  const Shape real = float_shape(o);
  if (real.handler != nullptr) return translate_shape(o, real, float_small(o));
  const Shape whole = integer_shape(o);
  if (whole.handler == nullptr ||
      !o.only({"lo", "hi", "wide", "sat", "cc", "l", "r", "wrap", "clamp", "shiftamt", "f4e", "b4e",
               "rc8", "ecl", "ecr", "rc16"})) {
    return unsupported("an instruction that this engine does not know");
  }
  std::uint8_t small = 0;
  if (o.base == "dp2a" && o.has("hi")) small = 2;
  return translate_shape(o, whole, small);
}

}  // namespace remora::softgpu
