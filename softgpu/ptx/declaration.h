// SPDX-License-Identifier: Apache-2.0
// Variable and parameter declarations, which look the same in every state space and at module and
// body level: ".align 4 .b8 name[3][4] = {…}".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "softgpu/ptx/lexer.h"
#include "softgpu/ptx/types.h"

namespace remora::softgpu {

enum class StateSpace : std::uint8_t { generic, global, constant, shared, local, param, reg };

struct Declaration {
  std::string_view name;
  StateSpace space = StateSpace::generic;
  ScalarType type = ScalarType::none;
  std::uint32_t vector_width = 1;
  std::uint32_t alignment = 1;
  std::uint64_t size = 0;      // bytes; 0 with `unbounded`
  std::uint64_t elements = 1;  // scalars
  bool unbounded = false;      // name[]
  bool is_array = false;
  bool managed = false;
  std::string_view initializer;  // text behind '='
  std::uint32_t line = 0;
  std::uint32_t range = 0;  // registers only: count in name<count>; 0 = a single one
};

inline constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 40;

/// ".global", ".shared"…: the space, or nothing for another directive.
bool is_state_space(const Token& token, StateSpace& space);

/// Everything behind the state space up to and without ';' (or ',' / ')' in a parameter list when
/// `single`). Appends to `out`; the declarators of one statement share type and alignment.
Result<void> parse_declaration(Lexer& lexer, StateSpace space, bool single,
                               std::vector<Declaration>& out);

}  // namespace remora::softgpu
