// SPDX-License-Identifier: Apache-2.0
// The body of one function as parsed: instructions with their operands, the registers and variables
// they name, labels resolved to instruction indices. Names are looked up scope by scope, so what
// comes out has no names left but those of the module (variables, functions) and of special
// registers. No opcode is judged here; that is translation (exec/translate.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "softgpu/ptx/index.h"

namespace remora::softgpu {

inline constexpr std::uint32_t kNoRegister = UINT32_MAX;

struct Operand {
  enum class Kind : std::uint8_t {
    none,
    reg,      // `index`: into ParsedBody::registers
    integer,  // `bits`
    f32,      // `bits`
    f64,      // `bits`
    special,  // `name`: "%tid.x"
    local,    // `index`: into ParsedBody::variables, plus `bits` as offset
    symbol,   // `name`: a variable or function of the module, plus `bits` as offset
    label,    // `index`: the instruction it stands before
    address,  // [base + bits]; the base is `base_kind` with index/name as above
    list,     // {a, b} or (a, b): `index` and `count` into ParsedBody::list_items
    tuple,    // [a, {b, c}]: the same
    discard,  // _
  };
  Kind kind = Kind::none;
  Kind base_kind = Kind::none;  // of an address: none (absolute), reg, local, symbol
  bool negated = false;         // !%p
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  std::uint32_t pair = kNoRegister;  // the register behind '|' in "%r1|%p1"
  std::uint64_t bits = 0;
  std::string_view name;
};

struct ParsedInstruction {
  std::string_view opcode;  // "ld.param.u64"
  std::uint32_t line = 0;
  std::uint32_t source_file = 0;  // from .loc; 0 = none
  std::uint32_t source_line = 0;
  std::uint32_t guard = kNoRegister;
  bool guard_negated = false;
  std::uint32_t first_operand = 0;  // in ParsedBody::operands
  std::uint32_t operand_count = 0;
};

struct RegisterDeclaration {
  std::string_view name;
  ScalarType type = ScalarType::none;
};

struct ParsedBody {
  std::vector<ParsedInstruction> instructions;
  std::vector<Operand> operands;
  std::vector<Operand> list_items;
  std::vector<RegisterDeclaration> registers;  // those that are used
  std::vector<Declaration> variables;          // .shared .local .param of the body and parameters
  // Parameters of the function (indices into variables for .param, into registers for .reg).
  std::vector<Operand> parameters;
  std::vector<Operand> returns;
};

Result<ParsedBody> parse_body(const IndexedFunction& function);

}  // namespace remora::softgpu
