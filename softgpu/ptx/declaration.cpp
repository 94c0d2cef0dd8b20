// SPDX-License-Identifier: Apache-2.0
#include "softgpu/ptx/declaration.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "base/bytes.h"

namespace remora::softgpu {
namespace {

// Types without a plain size: opaque references of 64 bits.
bool is_opaque(std::string_view name) {
  return name == ".texref" || name == ".samplerref" || name == ".surfref";
}

Result<void> parse_attribute(Lexer& lexer, Declaration& declaration) {
  REMORA_TRY_DO(lexer.expect('('));
  while (!lexer.peek().is(')')) {
    const Token token = lexer.next();
    if (token.kind == Token::Kind::end) return syntax_error(token, "')'");
    if (token.is_directive(".managed")) declaration.managed = true;
  }
  return lexer.expect(')');
}

Result<void> parse_prefix(Lexer& lexer, Declaration& declaration) {
  while (lexer.peek().kind == Token::Kind::directive) {
    const Token token = lexer.next();
    const std::string_view name = token.text.substr(1);
    if (name == "align") {
      const Token value = lexer.next();
      if (value.kind != Token::Kind::integer || !std::has_single_bit(value.bits) ||
          value.bits > 1 << 16) {
        return syntax_error(value, "an alignment that is a power of two");
      }
      declaration.alignment =
          std::max(declaration.alignment, static_cast<std::uint32_t>(value.bits));
    } else if (name == "attribute") {
      REMORA_TRY_DO(parse_attribute(lexer, declaration));
    } else if (name == "v2" || name == "v4" || name == "v8") {
      declaration.vector_width = static_cast<std::uint32_t>(name[1] - '0');
    } else if (name == "ptr") {
      // ".param .u64 .ptr .global .align 16 name": a promise about the argument, not its alignment.
      while (lexer.peek().kind == Token::Kind::directive) {
        const Token hint = lexer.next();
        if (hint.is_directive(".align") && lexer.next().kind != Token::Kind::integer) {
          return syntax_error(hint, "an alignment");
        }
      }
    } else if (is_opaque(token.text)) {
      declaration.type = ScalarType::b64;
    } else if (const std::optional<ScalarType> type = scalar_type(name)) {
      declaration.type = *type;
    } else {
      return syntax_error(token, "a type");
    }
  }
  if (declaration.type == ScalarType::none) return syntax_error(lexer.peek(), "a type");
  return {};
}

Result<void> parse_initializer(Lexer& lexer, Declaration& declaration) {
  const std::size_t begin = lexer.position();
  if (lexer.accept('{')) {
    REMORA_TRY(std::string_view inside, lexer.skip_braces());
    declaration.initializer = inside;
    return {};
  }
  while (!lexer.peek().is(';') && !lexer.peek().is(',')) {
    if (lexer.peek().kind == Token::Kind::end) return syntax_error(lexer.peek(), "';'");
    lexer.next();
  }
  declaration.initializer = lexer.text_from(begin);
  return {};
}

Result<void> parse_declarator(Lexer& lexer, Declaration& declaration) {
  const Token name = lexer.next();
  if (name.kind != Token::Kind::word) return syntax_error(name, "a name");
  declaration.name = name.text;
  declaration.line = name.line;
  if (lexer.accept('<')) {
    const Token count = lexer.next();
    if (count.kind != Token::Kind::integer || count.bits > UINT32_MAX) {
      return syntax_error(count, "a register count");
    }
    declaration.range = static_cast<std::uint32_t>(count.bits);
    REMORA_TRY_DO(lexer.expect('>'));
    if (declaration.range == 0) declaration.name = {};
  }
  while (lexer.accept('[')) {
    declaration.is_array = true;
    if (lexer.accept(']')) {
      declaration.unbounded = true;
      continue;
    }
    const Token count = lexer.next();
    if (count.kind != Token::Kind::integer) return syntax_error(count, "an array bound");
    const std::optional<std::uint64_t> product = checked_product(declaration.elements, count.bits);
    if (!product || *product > kMaxVariableBytes) {
      return syntax_error(count, "a smaller array bound");
    }
    declaration.elements = *product;
    REMORA_TRY_DO(lexer.expect(']'));
  }
  const std::uint32_t element = size_bytes(declaration.type) * declaration.vector_width;
  declaration.elements *= declaration.vector_width;
  declaration.alignment =
      std::max(declaration.alignment, element == 0 ? 1U : std::bit_floor(element));
  declaration.size = declaration.elements * size_bytes(declaration.type);
  if (declaration.unbounded) declaration.size = 0;
  return {};
}

// An unbounded array takes its size from its initializer: as many elements as commas say.
void count_unbounded(Declaration& declaration) {
  if (!declaration.unbounded || declaration.initializer.empty()) return;
  const auto commas =
      std::count(declaration.initializer.begin(), declaration.initializer.end(), ',');
  declaration.elements = static_cast<std::uint64_t>(commas) + 1;
  declaration.size = declaration.elements * size_bytes(declaration.type);
  declaration.unbounded = false;
}

}  // namespace

bool is_state_space(const Token& token, StateSpace& space) {
  if (token.kind != Token::Kind::directive) return false;
  static constexpr struct {
    std::string_view name;
    StateSpace space;
  } kSpaces[] = {{".global", StateSpace::global}, {".const", StateSpace::constant},
                 {".shared", StateSpace::shared}, {".local", StateSpace::local},
                 {".param", StateSpace::param},   {".reg", StateSpace::reg}};
  for (const auto& entry : kSpaces) {
    if (entry.name == token.text) {
      space = entry.space;
      return true;
    }
  }
  return false;
}

Result<void> parse_declaration(Lexer& lexer, StateSpace space, bool single,
                               std::vector<Declaration>& out) {
  Declaration shared;
  shared.space = space;
  REMORA_TRY_DO(parse_prefix(lexer, shared));
  do {
    Declaration declaration = shared;
    REMORA_TRY_DO(parse_declarator(lexer, declaration));
    if (lexer.accept('=')) {
      REMORA_TRY_DO(parse_initializer(lexer, declaration));
      count_unbounded(declaration);
    }
    out.push_back(declaration);
  } while (!single && lexer.accept(','));
  return {};
}

}  // namespace remora::softgpu
