// SPDX-License-Identifier: Apache-2.0
// The translator's ground floor: frames, operands, constants, registers.
#include "softgpu/exec/translator.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"
#include "softgpu/exec/access.h"

namespace remora::softgpu {
namespace {

constexpr std::uint32_t kRegisterAlignment = 64;
constexpr std::uint64_t kMaxLocalBytes = 512 << 10;       // CUDA's limit per thread
constexpr std::size_t kMaxInstructions = 4'000'000;       // after expansion of calls
constexpr std::uint32_t kMaxRegisterBytes = 256u << 20;   // per warp

/// Lanes of a register: 0 for a predicate's mask, else 4 or 8 bytes each.
unsigned lane_bytes(ScalarType type) {
  return type == ScalarType::pred ? 0 : size_bytes(type) <= 4 ? 4 : 8;
}

struct SpecialName {
  std::string_view name;
  SpecialRegister::Kind kind;
};
using Kind = SpecialRegister::Kind;
constexpr SpecialName kSpecials[] = {
    {"%tid.x", Kind::tid_x},       {"%tid.y", Kind::tid_y},
    {"%tid.z", Kind::tid_z},       {"%ntid.x", Kind::ntid_x},
    {"%ntid.y", Kind::ntid_y},     {"%ntid.z", Kind::ntid_z},
    {"%ctaid.x", Kind::ctaid_x},   {"%ctaid.y", Kind::ctaid_y},
    {"%ctaid.z", Kind::ctaid_z},   {"%nctaid.x", Kind::nctaid_x},
    {"%nctaid.y", Kind::nctaid_y}, {"%nctaid.z", Kind::nctaid_z},
    {"%laneid", Kind::laneid},     {"%warpid", Kind::warpid},
    {"%nwarpid", Kind::nwarpid},   {"%smid", Kind::smid},
    {"%nsmid", Kind::nsmid},       {"%gridid", Kind::gridid},
    {"%lanemask_eq", Kind::lanemask_eq}, {"%lanemask_le", Kind::lanemask_le},
    {"%lanemask_lt", Kind::lanemask_lt}, {"%lanemask_ge", Kind::lanemask_ge},
    {"%lanemask_gt", Kind::lanemask_gt}, {"%dynamic_smem_size", Kind::dynamic_smem_size},
    {"%total_smem_size", Kind::total_smem_size},
};

}  // namespace

Translator::Translator(const Module& module, const IndexedFunction& kernel)
    : module_(module), kernel_(kernel), program_(std::make_unique<Program>()) {}

Result<std::unique_ptr<const Program>> Translator::run() {
  Frame frame;
  frame.function = &kernel_;
  frame.is_kernel = true;
  REMORA_TRY(frame.body, parse_body(kernel_));
  program_->name = std::string(kernel_.name);
  frame_ = &frame;
  call_chain_.push_back(&kernel_);
  REMORA_TRY_DO(declare_registers());
  REMORA_TRY_DO(translate_instructions());
  Instruction end;
  end.run = exit_handler();
  program_->code.push_back(end);

  program_->dynamic_shared_offset = static_cast<std::uint32_t>(align_up(shared_bytes_, 16));
  for (const auto& [offset, bytes] : dynamic_constants_) {
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      std::byte* at = program_->constants.data() + offset + lane * bytes;
      if (bytes == 8) {
        store_unaligned(at, load_unaligned<std::uint64_t>(at) + program_->dynamic_shared_offset);
      } else {
        store_unaligned(at, load_unaligned<std::uint32_t>(at) + program_->dynamic_shared_offset);
      }
    }
  }
  KernelResources& resources = program_->resources;
  const KernelSignature& signature = kernel_.signature;
  resources.static_shared_bytes = static_cast<std::uint32_t>(shared_bytes_);
  resources.local_bytes = static_cast<std::uint32_t>(align_up(local_bytes_, 16));
  for (const GlobalInfo& global : module_.globals()) {
    if (global.space == GlobalSpace::constant) {
      resources.constant_bytes += static_cast<std::uint32_t>(global.size);
    }
  }
  // Virtual registers are reused by a real compiler; a quarter is a fair guess.
  resources.registers = std::clamp(program_->register_bytes / (4 * kWarpLanes) / 4 + 8, 16u, 128u);
  if (signature.max_registers != 0) {
    resources.registers = std::min(resources.registers, signature.max_registers);
  }
  resources.parameter_bytes = signature.parameter_bytes;
  const auto product = [](const std::uint32_t (&n)[3]) {
    return std::uint64_t{n[0]} * n[1] * n[2];
  };
  std::uint64_t threads = 1024;
  if (product(signature.max_threads) != 0) threads = product(signature.max_threads);
  if (product(signature.required_threads) != 0) threads = product(signature.required_threads);
  resources.max_threads_per_block = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 1024));
  resources.uses_dynamic_shared = !dynamic_constants_.empty();
  resources.ptx_version = module_.version();
  resources.target = module_.target();
  return std::unique_ptr<const Program>(std::move(program_));
}

Result<> Translator::declare_registers() {
  Frame& frame = *frame_;
  frame.registers.reserve(frame.body.registers.size());
  for (const RegisterDeclaration& declared : frame.body.registers) {
    if (size_bytes(declared.type) > 8) {
      return Error{ErrorKind::unsupported, 0,
                   fmt::format("Kernel {} uses the 128-bit register {}.", kernel_.name, declared.name)};
    }
    frame.registers.push_back(new_register(declared.type));
  }
  frame.variables.resize(frame.body.variables.size());
  return {};
}

Result<> Translator::translate_instructions() {
  Frame& frame = *frame_;
  for (const ParsedInstruction& parsed : frame.body.instructions) {
    frame.starts.push_back(static_cast<std::uint32_t>(program_->code.size()));
    parsed_ = &parsed;
    REMORA_TRY_DO(translate_instruction(parsed));
    if (program_->code.size() > kMaxInstructions || program_->register_bytes > kMaxRegisterBytes) {
      return unsupported("the kernel is too large for this engine");
    }
  }
  const auto end = static_cast<std::uint32_t>(program_->code.size());
  frame.starts.push_back(end);
  for (const auto& [at, target] : frame.branches) {
    program_->code[at].target = frame.starts[target];
  }
  for (const std::size_t at : frame.returns) program_->code[at].target = end;
  return {};
}

// --- Operands ----------------------------------------------------------------------------------

const Operand& Translator::operand(std::size_t index) const {
  return frame_->body.operands[parsed_->first_operand + index];
}

std::vector<Operand> Translator::items(const Operand& list) const {
  const auto begin = frame_->body.list_items.begin() + list.index;
  return {begin, begin + list.count};
}

Result<Place> Translator::source(const Operand& operand, ScalarType type) {
  const unsigned bytes = lane_bytes(type);
  switch (operand.kind) {
    case Operand::Kind::reg: {
      const ScalarType declared = frame_->body.registers[operand.index].type;
      const Place place{frame_->registers[operand.index], false};
      if (lane_bytes(declared) == bytes) return place;
      if (lane_bytes(declared) == 0 || bytes == 0) return wrong("a predicate where a number belongs");
      // A wider or narrower register than the type: its low bits, or extended.
      Instruction move = blank();
      move.run = move_handler(lane_bytes(declared), bytes, is_signed(type));
      move.a = place;
      move.d = new_register(type);
      emit(move);
      return Place{move.d, false};
    }
    case Operand::Kind::integer: {
      if (bytes == 0) return constant(operand.bits != 0 ? UINT32_MAX : 0, 0);
      // An integer literal is a bit pattern, except for floats, where it is a number.
      std::uint64_t bits = operand.bits;
      if (type == ScalarType::f32) {
        bits = std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int64_t>(bits)));
      } else if (type == ScalarType::f64) {
        bits = std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(bits)));
      } else if (size_bytes(type) < 4) {
        const unsigned shift = 64 - 8 * size_bytes(type);
        bits = is_signed(type) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift)
                               : bits << shift >> shift;
      }
      return constant(bits, bytes);
    }
    case Operand::Kind::f32:
      if (bytes == 8) {
        return constant(std::bit_cast<std::uint64_t>(static_cast<double>(
                            std::bit_cast<float>(static_cast<std::uint32_t>(operand.bits)))), 8);
      }
      return constant(operand.bits, 4);
    case Operand::Kind::f64:
      if (bytes == 4) {
        return constant(std::bit_cast<std::uint32_t>(
                            static_cast<float>(std::bit_cast<double>(operand.bits))), 4);
      }
      return constant(operand.bits, 8);
    case Operand::Kind::special:
      return special(operand.name, type);
    case Operand::Kind::symbol:
    case Operand::Kind::local:
      return symbol_address(operand, type);
    default:
      return unsupported("an operand of this kind");
  }
}

Result<Place> Translator::predicate(const Operand& operand, bool& negated) {
  negated = operand.negated;
  return source(operand, ScalarType::pred);
}

Result<std::uint32_t> Translator::destination(const Operand& operand, ScalarType type) {
  if (operand.kind == Operand::Kind::discard) return new_register(type);
  if (operand.kind != Operand::Kind::reg) return wrong("a destination that is no register");
  const ScalarType declared = frame_->body.registers[operand.index].type;
  const std::uint32_t offset = frame_->registers[operand.index];
  const unsigned have = lane_bytes(declared), need = lane_bytes(type);
  if (have == need) return offset;
  if (have == 0 || need == 0) return wrong("a predicate where a number belongs");
  Instruction move = blank();
  move.run = move_handler(need, have, is_signed(type));
  move.a = {new_register(type), false};
  move.d = offset;
  pending_.push_back(move);
  return move.a.offset;
}

void Translator::finish() {
  for (Instruction& move : pending_) emit(move);
  pending_.clear();
}

Result<Place> Translator::special(std::string_view name, ScalarType type) {
  if (name == "WARP_SZ") return constant(kWarpLanes, lane_bytes(type));
  const auto* found = std::find_if(std::begin(kSpecials), std::end(kSpecials),
                                   [&](const SpecialName& known) { return known.name == name; });
  if (found == std::end(kSpecials)) {
    return unsupported(fmt::format("the special register {}", name));
  }
  auto [at, inserted] = specials_.try_emplace(found->name, 0);
  if (inserted) {
    at->second = new_register(ScalarType::u32);
    program_->specials.push_back({found->kind, at->second});
  }
  if (lane_bytes(type) == 4) return Place{at->second, false};
  Instruction move = blank();
  move.run = move_handler(4, 8, false);
  move.a = {at->second, false};
  move.d = new_register(type);
  emit(move);
  return Place{move.d, false};
}

bool Translator::is_kernel_parameter(std::uint32_t variable) const {
  if (!frame_->is_kernel) return false;
  return std::any_of(frame_->body.parameters.begin(), frame_->body.parameters.end(),
                     [&](const Operand& p) { return p.index == variable; });
}

Result<std::uint64_t> Translator::variable_offset(std::uint32_t variable) {
  std::optional<std::uint64_t>& known = frame_->variables[variable];
  if (known) return *known;
  const Declaration& declared = frame_->body.variables[variable];
  if (is_kernel_parameter(variable)) {
    for (std::size_t i = 0; i < frame_->body.parameters.size(); ++i) {
      if (frame_->body.parameters[i].index == variable) {
        known = kernel_.signature.parameters[i].offset;
      }
    }
  } else if (declared.space == StateSpace::shared) {
    known = place_shared(declared.size, declared.alignment);
  } else if (declared.space == StateSpace::local || declared.space == StateSpace::param) {
    known = place_local(declared.size, declared.alignment);
    if (local_bytes_ > kMaxLocalBytes) return unsupported("more local memory than CUDA allows");
  } else {
    return unsupported(fmt::format("the variable {} within a body", declared.name));
  }
  return *known;
}

Result<std::uint64_t> Translator::module_address(std::string_view name, bool& dynamic_shared) {
  dynamic_shared = false;
  if (const IndexedVariable* variable = module_.find_variable(name)) {
    const Declaration& declared = variable->declaration;
    if (declared.space == StateSpace::shared) {
      if (declared.unbounded || variable->linkage == Linkage::external) {
        dynamic_shared = true;
        return std::uint64_t{0};
      }
      auto [at, inserted] = shared_variables_.try_emplace(name, 0);
      if (inserted) at->second = place_shared(declared.size, declared.alignment);
      return at->second;
    }
    const std::uint64_t address =
        variable->global_index < 0
            ? 0
            : module_.global_addresses()[static_cast<std::size_t>(variable->global_index)];
    if (address != 0) return address;
    return Error{ErrorKind::not_found, 0,
                 fmt::format("{} uses {}, which no loaded module defines.", where(), name)};
  }
  if (const IndexedFunction* function = module_.find_function(name)) {
    return Module::function_address(static_cast<std::size_t>(function - module_.functions().data()));
  }
  return wrong(fmt::format("the unknown name {}", name));
}

Result<Place> Translator::symbol_address(const Operand& operand, ScalarType type) {
  const unsigned bytes = lane_bytes(type);
  if (operand.kind == Operand::Kind::local) {
    const Declaration& declared = frame_->body.variables[operand.index];
    if (declared.space == StateSpace::shared && declared.unbounded) {
      return dynamic_shared_constant(operand.bits, bytes);
    }
    REMORA_TRY(const std::uint64_t offset, variable_offset(operand.index));
    return constant(offset + operand.bits, bytes);
  }
  bool dynamic = false;
  REMORA_TRY(const std::uint64_t address, module_address(operand.name, dynamic));
  if (dynamic) return dynamic_shared_constant(operand.bits, bytes);
  return constant(address + operand.bits, bytes);
}

// --- Code --------------------------------------------------------------------------------------

Instruction Translator::blank() const {
  Instruction instruction;
  instruction.line = parsed_->line;
  if (parsed_->guard != kNoRegister) {
    instruction.has_guard = true;
    instruction.guard = frame_->registers[parsed_->guard];
    instruction.guard_negated = parsed_->guard_negated;
  }
  return instruction;
}

std::size_t Translator::emit(Instruction instruction) {
  program_->code.push_back(instruction);
  return program_->code.size() - 1;
}

std::uint32_t Translator::new_register(ScalarType type) {
  const unsigned bytes = lane_bytes(type);
  const std::uint32_t size = bytes == 0 ? 4 : bytes * kWarpLanes;
  const std::uint32_t alignment = bytes == 0 ? 4 : kRegisterAlignment;
  const auto offset = static_cast<std::uint32_t>(align_up(program_->register_bytes, alignment));
  program_->register_bytes = offset + size;
  return offset;
}

Place Translator::constant(std::uint64_t bits, unsigned bytes) {
  if (bytes <= 4) bits &= UINT32_MAX;
  auto [at, inserted] = constants_.try_emplace({bits, bytes}, 0);
  if (inserted) {
    auto& pool = program_->constants;
    const unsigned width = bytes == 0 ? 4 : bytes;
    const unsigned count = bytes == 0 ? 1 : kWarpLanes;
    const std::size_t offset = align_up(pool.size(), kRegisterAlignment);
    pool.resize(offset + std::size_t{width} * count);
    for (unsigned i = 0; i < count; ++i) std::memcpy(&pool[offset + i * width], &bits, width);
    at->second = static_cast<std::uint32_t>(offset);
  }
  return {at->second, true};
}

Place Translator::dynamic_shared_constant(std::uint64_t addend, unsigned bytes) {
  auto [at, inserted] = dynamic_by_addend_.try_emplace({addend, bytes}, 0);
  if (inserted) {
    auto& pool = program_->constants;
    const std::size_t offset = align_up(pool.size(), kRegisterAlignment);
    pool.resize(offset + std::size_t{bytes} * kWarpLanes);
    for (unsigned i = 0; i < kWarpLanes; ++i) std::memcpy(&pool[offset + i * bytes], &addend, bytes);
    at->second = static_cast<std::uint32_t>(offset);
    dynamic_constants_.emplace_back(at->second, bytes);
  }
  return {at->second, true};
}

std::uint64_t Translator::place_local(std::uint64_t size, std::uint32_t alignment) {
  const std::uint64_t offset = align_up(local_bytes_, std::max(alignment, 1u));
  local_bytes_ = offset + size;
  return offset;
}

std::uint64_t Translator::place_shared(std::uint64_t size, std::uint32_t alignment) {
  const std::uint64_t offset = align_up(shared_bytes_, std::max(alignment, 1u));
  shared_bytes_ = offset + size;
  return offset;
}

std::uint32_t Translator::carry_flag() {
  if (!carry_flag_) carry_flag_ = new_register(ScalarType::pred);
  return *carry_flag_;
}

std::string Translator::where() const {
  return fmt::format("Kernel {}, PTX line {}: {}", kernel_.name, parsed_->line, parsed_->opcode);
}
Error Translator::unsupported(std::string_view why) const {
  return {ErrorKind::unsupported, 0, fmt::format("{}: not supported ({}).", where(), why)};
}
Error Translator::wrong(std::string_view why) const {
  return {ErrorKind::invalid_input, 0, fmt::format("{}: {}.", where(), why)};
}

Result<std::unique_ptr<const Program>> translate(const Module& module, std::string_view name) {
  const IndexedFunction* kernel = module.find_function(name);
  if (kernel == nullptr || !kernel->is_kernel || !kernel->has_body) {
    return Error{ErrorKind::not_found, 0, fmt::format("The module has no kernel {}.", name)};
  }
  return Translator(module, *kernel).run();
}

}  // namespace remora::softgpu
