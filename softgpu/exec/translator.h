// SPDX-License-Identifier: Apache-2.0
// Turns the parsed body of a kernel into a Program. Functions that it calls are expanded in place
// (each call with registers and local variables of its own), so a running warp needs no stack; a
// recursive or indirect call is therefore an unsupported instruction.
//
// Anything that is not understood completely (an opcode, a modifier, an operand of another kind) is
// an Error of kind `unsupported` that names instruction, kernel and line.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "softgpu/exec/opcode.h"
#include "softgpu/exec/program.h"
#include "softgpu/ptx/body.h"
#include "softgpu/ptx/module.h"

namespace remora::softgpu {

class Translator {
 public:
  Translator(const Module& module, const IndexedFunction& kernel);
  Result<std::unique_ptr<const Program>> run();

 private:
  /// A body while it is translated: the kernel's, or that of one expanded call.
  struct Frame {
    const IndexedFunction* function = nullptr;
    ParsedBody body;
    bool is_kernel = false;
    std::vector<std::uint32_t> registers;             // by parsed register: byte offset
    std::vector<std::optional<std::uint64_t>> variables;  // by parsed variable: offset in its space
    std::vector<std::uint32_t> starts;                // by parsed instruction: index into code
    std::vector<std::pair<std::size_t, std::uint32_t>> branches;  // code index, parsed target
    std::vector<std::size_t> returns;                 // code indices of jumps to the end
  };

  // One instruction (translate.cpp, translate_memory.cpp, translate_control.cpp).
  Result<> declare_registers();
  Result<> translate_instructions();
  Result<> translate_instruction(const ParsedInstruction& parsed);
  Result<> translate_move(const Opcode& opcode);
  Result<> translate_unpack(const Opcode& opcode);
  Result<> translate_pack(const Opcode& opcode);
  Result<> translate_address_conversion(const Opcode& opcode);
  Result<> translate_compare(const Opcode& opcode);
  Result<> translate_select(const Opcode& opcode);
  Result<> translate_predicate_logic(const Opcode& opcode);
  Result<> translate_shape(const Opcode& opcode, const Shape& shape, std::uint8_t small);
  Result<> translate_arithmetic(const Opcode& opcode);
  Result<> translate_load(const Opcode& opcode);
  Result<> translate_store(const Opcode& opcode);
  Result<> translate_atomic(const Opcode& opcode);
  Result<> translate_warp_wide(const Opcode& opcode);
  Result<> translate_barrier(const Opcode& opcode);
  Result<> translate_call(const Opcode& opcode);
  Result<> translate_system_call(std::string_view name, const std::vector<Operand>& arguments,
                                 const std::vector<Operand>& results);
  Result<> expand_call(const IndexedFunction& callee, const std::vector<Operand>& arguments,
                       const std::vector<Operand>& results);
  Result<> translate_branch(const Opcode& opcode);
  Result<> translate_return();

  // Operands.
  std::size_t operand_count() const { return parsed_->operand_count; }
  const Operand& operand(std::size_t index) const;
  std::vector<Operand> items(const Operand& list) const;
  Result<Place> source(const Operand& operand, ScalarType type);
  Result<Place> predicate(const Operand& operand, bool& negated);
  /// Where the result goes: the register itself, or one that finish() copies from.
  Result<std::uint32_t> destination(const Operand& operand, ScalarType type);
  void finish();
  /// Fills a, immediate and wide_address; tells the space when the operand itself decides it.
  Result<> address(const Operand& operand, Instruction& instruction, std::string_view& space);
  Result<Place> symbol_address(const Operand& operand, ScalarType type);
  Result<std::uint64_t> variable_offset(std::uint32_t variable);
  Result<std::uint64_t> module_address(std::string_view name, bool& dynamic_shared);
  Result<Place> special(std::string_view name, ScalarType type);

  // Making code.
  Instruction blank() const;
  std::size_t emit(Instruction instruction);
  std::uint32_t new_register(ScalarType type);
  Place constant(std::uint64_t bits, unsigned bytes);
  Place dynamic_shared_constant(std::uint64_t addend, unsigned bytes);
  std::uint64_t place_local(std::uint64_t size, std::uint32_t alignment);
  std::uint64_t place_shared(std::uint64_t size, std::uint32_t alignment);
  std::uint32_t carry_flag();
  Error unsupported(std::string_view why) const;
  Error wrong(std::string_view why) const;
  std::string where() const;
  bool is_kernel_parameter(std::uint32_t variable) const;

  const Module& module_;
  const IndexedFunction& kernel_;
  std::unique_ptr<Program> program_;
  Frame* frame_ = nullptr;
  const ParsedInstruction* parsed_ = nullptr;
  std::vector<const IndexedFunction*> call_chain_;

  std::map<std::pair<std::uint64_t, unsigned>, std::uint32_t> constants_;
  std::vector<std::pair<std::uint32_t, unsigned>> dynamic_constants_;  // offset, bytes: add the base
  std::map<std::pair<std::uint64_t, unsigned>, std::uint32_t> dynamic_by_addend_;
  std::unordered_map<std::string_view, std::uint64_t> shared_variables_;  // of the module
  std::unordered_map<std::string_view, std::uint32_t> specials_;
  std::vector<Instruction> pending_;  // what finish() emits
  std::uint64_t local_bytes_ = 0;
  std::uint64_t shared_bytes_ = 0;
  std::optional<std::uint32_t> carry_flag_;
};

}  // namespace remora::softgpu
