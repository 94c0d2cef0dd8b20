// SPDX-License-Identifier: Apache-2.0
// Control flow, barriers, calls and what lanes do together, to handlers.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "softgpu/exec/translator.h"

namespace remora::softgpu {
namespace {

constexpr std::size_t kMaxCallDepth = 64;

}  // namespace

Result<> Translator::translate_branch(const Opcode& o) {
  if (!o.only({"uni"}) || operand_count() != 1) return unsupported("this form");
  if (operand(0).kind != Operand::Kind::label) return wrong("a branch to no label of the function");
  Instruction branch = blank();
  branch.run = branch_handler();
  frame_->branches.emplace_back(emit(branch), operand(0).index);
  return {};
}

/// Returning from the kernel ends the thread; from an expanded function it goes behind it.
Result<> Translator::translate_return() {
  Instruction instruction = blank();
  if (frame_->is_kernel) {
    instruction.run = exit_handler();
    emit(instruction);
  } else {
    instruction.run = branch_handler();
    frame_->returns.push_back(emit(instruction));
  }
  return {};
}

Result<> Translator::translate_barrier(const Opcode& o) {
  const std::string_view form = o.modifier_count != 0 ? o.modifiers[0] : "";
  std::size_t next = 0;
  Instruction barrier = blank();
  if (form == "warp") {
    if (operand_count() != 1) return wrong("one operand belongs here");
    barrier.run = nothing_handler();
    REMORA_TRY(barrier.e, source(operand(0), ScalarType::u32));
    barrier.converge = true;
    emit(barrier);
    return {};
  }
  if (form == "cluster") return unsupported("clusters");
  if (!o.only({"cta", "sync", "arrive", "red", "aligned", "popc", "and", "or"})) {
    return unsupported("this form");
  }
  barrier.run = o.has("arrive") ? barrier_arrive_handler() : barrier_handler();
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < operand_count(); ++i) operands.push_back(operand(i));
  std::optional<Operand> red_predicate;
  if (o.has("red")) {
    if (operands.size() < 3) return wrong("three operands belong here");
    red_predicate = operands.back();
    operands.pop_back();
    next = 1;
  }
  if (operands.size() < next + 1 || operands.size() > next + 2) {
    return wrong("another number of operands belongs here");
  }
  REMORA_TRY(barrier.a, source(operands[next], ScalarType::u32));
  if (operands.size() == next + 2) {
    if (operands[next + 1].kind != Operand::Kind::integer) {
      return unsupported("a thread count that is not constant");
    }
    barrier.immediate = operands[next + 1].bits;
  } else if (o.has("arrive")) {
    return wrong("bar.arrive needs a thread count");
  }
  if (red_predicate) {
    bool negated = false;
    REMORA_TRY(barrier.b, predicate(*red_predicate, negated));
    barrier.target = negated ? 1 : 0;
    barrier.small = o.has("and") ? 1 : o.has("or") ? 2 : 3;
    REMORA_TRY(barrier.d,
               destination(operands[0], barrier.small == 3 ? ScalarType::u32 : ScalarType::pred));
  }
  emit(barrier);
  finish();
  return {};
}

/// The last operand of a .sync form is its member mask.
Result<> Translator::translate_warp_wide(const Opcode& o) {
  Instruction instruction = blank();
  const bool sync = o.has("sync");
  const std::string_view base = o.base;
  const std::size_t count = operand_count();
  if (base == "activemask") {
    instruction.run = active_mask_handler();
    REMORA_TRY(instruction.d, destination(operand(0), ScalarType::u32));
    emit(instruction);
    return {};
  }
  const std::size_t wanted = (base == "shfl" ? 4 : base == "elect" ? 1 : 2) + (sync ? 1 : 0);
  if (count != wanted) return wrong("another number of operands belongs here");
  if (!sync && base != "shfl" && base != "vote") return unsupported("this form");
  if (sync) {
    REMORA_TRY(instruction.e, source(operand(count - 1), ScalarType::u32));
    instruction.converge = true;
  }
  std::string_view mode;
  for (std::size_t i = 0; i < o.modifier_count; ++i) {
    if (o.modifiers[i] != "sync" && !scalar_type(o.modifiers[i])) mode = o.modifiers[i];
  }
  const ScalarType t = o.type();
  ScalarType result = ScalarType::u32;
  if (base == "shfl") {
    instruction.run = shuffle_handler(mode);
    REMORA_TRY(instruction.a, source(operand(1), ScalarType::b32));
    REMORA_TRY(instruction.b, source(operand(2), ScalarType::u32));
    REMORA_TRY(instruction.c, source(operand(3), ScalarType::u32));
  } else if (base == "vote") {
    instruction.run = vote_handler(mode);
    bool negated = false;
    REMORA_TRY(instruction.a, predicate(operand(1), negated));
    instruction.small = negated ? 1 : 0;
    if (mode != "ballot") result = ScalarType::pred;
  } else if (base == "match") {
    instruction.run = match_handler(mode, t);
    REMORA_TRY(instruction.a, source(operand(1), t));
  } else if (base == "redux") {
    instruction.run = redux_handler(mode, t);
    REMORA_TRY(instruction.a, source(operand(1), t));
  } else {
    instruction.run = elect_handler();
  }
  if (instruction.run == nullptr) return unsupported("this form");
  if (operand(0).pair != kNoRegister) {
    instruction.d2 = frame_->registers[operand(0).pair];
    if (base != "vote") instruction.small |= 1;
  } else if (base == "elect") {
    instruction.d2 = new_register(ScalarType::pred);
  }
  REMORA_TRY(instruction.d, destination(operand(0), result));
  emit(instruction);
  finish();
  return {};
}

// --- Calls -------------------------------------------------------------------------------------

Result<> Translator::translate_call(const Opcode& o) {
  if (!o.only({"uni"})) return unsupported("this form");
  std::vector<Operand> results, arguments;
  std::size_t next = 0;
  if (operand_count() > 0 && operand(0).kind == Operand::Kind::list) {
    results = items(operand(0));
    next = 1;
  }
  if (operand_count() <= next) return wrong("a function belongs here");
  const Operand& callee = operand(next++);
  if (callee.kind != Operand::Kind::symbol) return unsupported("an indirect call");
  if (operand_count() > next && operand(next).kind == Operand::Kind::list) {
    arguments = items(operand(next));
  }
  const IndexedFunction* function = module_.find_function(callee.name);
  if (function == nullptr || !function->has_body) {
    return translate_system_call(callee.name, arguments, results);
  }
  return expand_call(*function, arguments, results);
}

Result<> Translator::translate_system_call(std::string_view name,
                                           const std::vector<Operand>& arguments,
                                           const std::vector<Operand>& results) {
  struct SystemCall {
    std::string_view name;
    Handler handler;
    std::vector<ScalarType> arguments;
    ScalarType result;
  };
  const SystemCall calls[] = {
      {"vprintf", print_handler(), {ScalarType::u64, ScalarType::u64}, ScalarType::u32},
      {"__assertfail", assert_handler(),
       {ScalarType::u64, ScalarType::u64, ScalarType::u32, ScalarType::u64}, ScalarType::none},
      {"malloc", allocate_handler(), {ScalarType::u64}, ScalarType::u64},
      {"free", release_handler(), {ScalarType::u64}, ScalarType::none},
  };
  const auto* call = std::find_if(std::begin(calls), std::end(calls),
                                  [&](const SystemCall& known) { return known.name == name; });
  if (call == std::end(calls)) {
    return unsupported(fmt::format("the function {}, which no loaded module defines", name));
  }
  if (arguments.size() < call->arguments.size()) return wrong("more arguments belong here");
  Instruction instruction = blank();
  instruction.run = call->handler;
  Place* const places[] = {&instruction.a, &instruction.b, &instruction.c, &instruction.e};
  for (std::size_t i = 0; i < call->arguments.size(); ++i) {
    const ScalarType t = call->arguments[i];
    if (arguments[i].kind != Operand::Kind::local) {
      REMORA_TRY(*places[i], source(arguments[i], t));
      continue;
    }
    Instruction load = blank();
    load.run = load_handler("local", t, 1);
    REMORA_TRY(load.a, symbol_address(arguments[i], ScalarType::u64));
    load.d = new_register(t);
    emit(load);
    *places[i] = {load.d, false};
  }
  if (call->result == ScalarType::none) {
    emit(instruction);
    return {};
  }
  instruction.d = new_register(call->result);
  emit(instruction);
  if (results.empty()) return {};
  if (results[0].kind != Operand::Kind::local) {
    Instruction move = blank();
    const unsigned bytes = size_bytes(call->result);
    move.run = move_handler(bytes, bytes, false);
    move.a = {instruction.d, false};
    REMORA_TRY(move.d, destination(results[0], call->result));
    emit(move);
    finish();
    return {};
  }
  Instruction store = blank();
  store.run = store_handler("local", call->result, 1);
  REMORA_TRY(store.a, symbol_address(results[0], ScalarType::u64));
  store.b = {instruction.d, false};
  emit(store);
  return {};
}

Result<> Translator::expand_call(const IndexedFunction& callee,
                                 const std::vector<Operand>& arguments,
                                 const std::vector<Operand>& results) {
  if (std::find(call_chain_.begin(), call_chain_.end(), &callee) != call_chain_.end()) {
    return unsupported("a recursive call");
  }
  if (call_chain_.size() >= kMaxCallDepth) return unsupported("calls nested deeper than 64");
  if (arguments.size() != callee.parameters.size() || results.size() != callee.returns.size()) {
    return wrong("another number of arguments belongs here");
  }
  // Lanes that do not call go around.
  std::optional<std::size_t> around;
  if (parsed_->guard != kNoRegister) {
    Instruction skip = blank();
    skip.guard_negated = !skip.guard_negated;
    skip.run = branch_handler();
    around = emit(skip);
  }
  Frame frame;
  frame.function = &callee;
  REMORA_TRY(frame.body, parse_body(callee));
  // Parameters in memory are the caller's variables themselves; in registers they are copied.
  struct Copy {
    Place from;
    std::uint32_t register_index;
  };
  std::vector<Copy> copies_in;
  std::vector<std::optional<std::uint64_t>> variables(frame.body.variables.size());
  const auto bind = [&](const Operand& parameter, const Operand& given, bool in) -> Result<> {
    if (parameter.kind == Operand::Kind::local) {
      if (given.kind != Operand::Kind::local) return unsupported("an argument that is no .param");
      REMORA_TRY(variables[parameter.index], variable_offset(given.index));
      return {};
    }
    if (given.kind == Operand::Kind::local) return unsupported("a .param for a register parameter");
    if (in) {
      REMORA_TRY(const Place from,
                 source(given, frame.body.registers[parameter.index].type));
      copies_in.push_back({from, parameter.index});
    }
    return {};
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    REMORA_TRY_DO(bind(frame.body.parameters[i], arguments[i], true));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    REMORA_TRY_DO(bind(frame.body.returns[i], results[i], false));
  }

  Frame* const caller = std::exchange(frame_, &frame);
  const ParsedInstruction* const call = parsed_;
  call_chain_.push_back(&callee);
  ParsedInstruction plain = *call;
  plain.guard = kNoRegister;
  parsed_ = &plain;
  REMORA_TRY_DO(declare_registers());
  frame.variables = std::move(variables);
  for (const Copy& copy : copies_in) {
    Instruction move = blank();
    const ScalarType t = frame.body.registers[copy.register_index].type;
    const unsigned bytes = size_bytes(t) == 8 ? 8 : 4;
    move.run = t == ScalarType::pred ? predicate_handler("mov") : move_handler(bytes, bytes, false);
    move.a = copy.from;
    move.d = frame.registers[copy.register_index];
    emit(move);
  }
  REMORA_TRY_DO(translate_instructions());
  call_chain_.pop_back();
  frame_ = caller;
  parsed_ = call;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Operand& returned = frame.body.returns[i];
    if (returned.kind != Operand::Kind::reg) continue;
    Instruction move = blank();
    const ScalarType t = frame.body.registers[returned.index].type;
    const unsigned bytes = size_bytes(t) == 8 ? 8 : 4;
    move.run = t == ScalarType::pred ? predicate_handler("mov") : move_handler(bytes, bytes, false);
    move.a = {frame.registers[returned.index], false};
    REMORA_TRY(move.d, destination(results[i], t));
    emit(move);
    finish();
  }
  if (around) program_->code[*around].target = static_cast<std::uint32_t>(program_->code.size());
  return {};
}

}  // namespace remora::softgpu
