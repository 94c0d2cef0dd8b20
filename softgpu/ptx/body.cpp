// SPDX-License-Identifier: Apache-2.0
#include "softgpu/ptx/body.h"

#include <fmt/core.h>

#include <charconv>
#include <unordered_map>

#include "softgpu/ptx/lexer.h"

namespace remora::softgpu {
namespace {

constexpr std::size_t kMaxScopes = 64;
constexpr std::size_t kMaxListItems = 1024;

struct Scope {
  struct Name {
    enum class Kind { reg, variable, label } kind;
    std::uint32_t index;
  };
  std::unordered_map<std::string_view, Name> names;
  std::unordered_map<std::string_view, Declaration> single_registers;
  std::unordered_map<std::string_view, Declaration> register_ranges;  // by prefix
};

class BodyParser {
 public:
  explicit BodyParser(const IndexedFunction& function)
      : function_(function), lexer_(function.body, function.body_line) {}

  Result<ParsedBody> run() {
    scopes_.emplace_back();
    for (const Declaration& declaration : function_.parameters) {
      body_.parameters.push_back(declare_parameter(declaration));
    }
    for (const Declaration& declaration : function_.returns) {
      body_.returns.push_back(declare_parameter(declaration));
    }
    while (lexer_.peek().kind != Token::Kind::end) REMORA_TRY_DO(read_statement());
    if (scopes_.size() != 1) return syntax_error(lexer_.peek(), "'}'");
    REMORA_TRY_DO(resolve_labels());
    return std::move(body_);
  }

 private:
  Operand declare_parameter(const Declaration& declaration) {
    Operand operand;
    if (declaration.space == StateSpace::reg) {
      operand.kind = Operand::Kind::reg;
      operand.index = add_register(declaration.name, declaration.type);
      scopes_.back().names[declaration.name] = {Scope::Name::Kind::reg, operand.index};
    } else {
      operand.kind = Operand::Kind::local;
      operand.index = add_variable(declaration);
    }
    return operand;
  }

  std::uint32_t add_register(std::string_view name, ScalarType type) {
    body_.registers.push_back({name, type});
    return static_cast<std::uint32_t>(body_.registers.size() - 1);
  }

  std::uint32_t add_variable(const Declaration& declaration) {
    const auto index = static_cast<std::uint32_t>(body_.variables.size());
    body_.variables.push_back(declaration);
    scopes_.back().names[declaration.name] = {Scope::Name::Kind::variable, index};
    return index;
  }

  Result<void> read_statement() {
    if (lexer_.accept(';')) return {};
    if (lexer_.accept('{')) {
      if (scopes_.size() >= kMaxScopes) return syntax_error(lexer_.peek(), "fewer nested scopes");
      scopes_.emplace_back();
      return {};
    }
    if (lexer_.peek().is('}')) {
      const Token token = lexer_.next();
      if (scopes_.size() == 1) return syntax_error(token, "an instruction");
      scopes_.pop_back();
      return {};
    }
    if (lexer_.peek().kind == Token::Kind::directive) return read_directive();
    ParsedInstruction instruction;
    if (lexer_.accept('@')) {
      instruction.guard_negated = lexer_.accept('!');
      const Token name = lexer_.next();
      REMORA_TRY(Operand guard, resolve(name));
      if (guard.kind != Operand::Kind::reg ||
          body_.registers[guard.index].type != ScalarType::pred) {
        return syntax_error(name, "a predicate register");
      }
      instruction.guard = guard.index;
    }
    const Token opcode = lexer_.next();
    if (opcode.kind != Token::Kind::word) return syntax_error(opcode, "an instruction");
    if (instruction.guard == kNoRegister && lexer_.accept(':')) return define_label(opcode);
    instruction.opcode = opcode.text;
    instruction.line = opcode.line;
    instruction.source_file = source_file_;
    instruction.source_line = source_line_;
    REMORA_TRY_DO(read_operands(instruction));
    body_.instructions.push_back(instruction);
    return {};
  }

  Result<void> define_label(const Token& name) {
    // ".branchtargets" and ".callprototype" stand behind a label, and only name things.
    const auto index = static_cast<std::uint32_t>(body_.instructions.size());
    if (!labels_.try_emplace(name.text, index).second) {
      return syntax_error(name, "a label that is not defined already");
    }
    if (lexer_.peek().is_directive(".callprototype") ||
        lexer_.peek().is_directive(".branchtargets")) {
      return skip_to_semicolon();
    }
    return {};
  }

  Result<void> skip_to_semicolon() {
    while (!lexer_.accept(';')) {
      if (lexer_.next().kind == Token::Kind::end) return syntax_error(lexer_.peek(), "';'");
    }
    return {};
  }

  Result<void> read_directive() {
    const Token directive = lexer_.next();
    if (directive.text == ".loc") {
      const Token file = lexer_.next();
      const Token line = lexer_.next();
      source_file_ = static_cast<std::uint32_t>(file.bits);
      source_line_ = static_cast<std::uint32_t>(line.bits);
      lexer_.skip_line();
      return {};
    }
    if (directive.text == ".pragma") return skip_to_semicolon();
    StateSpace space;
    if (!is_state_space(directive, space)) return syntax_error(directive, "an instruction");
    std::vector<Declaration> declarations;
    REMORA_TRY_DO(parse_declaration(lexer_, space, false, declarations));
    REMORA_TRY_DO(lexer_.expect(';'));
    for (const Declaration& declaration : declarations) {
      Scope& scope = scopes_.back();
      if (space == StateSpace::reg) {
        if (declaration.is_array || declaration.vector_width != 1) {
          return syntax_error(directive, "a scalar register");
        }
        if (declaration.range != 0) {
          scope.register_ranges[declaration.name] = declaration;
        } else if (!declaration.name.empty()) {
          scope.single_registers[declaration.name] = declaration;
        }
        // A name of the outer scope that was used before is hidden from here on.
        scope.names.erase(declaration.name);
      } else {
        add_variable(declaration);
      }
    }
    return {};
  }

  // The declaration of a register in this scope: by its whole name, or as prefix<n>.
  const Declaration* declared_in(const Scope& scope, std::string_view name) const {
    if (const auto at = scope.single_registers.find(name); at != scope.single_registers.end()) {
      return &at->second;
    }
    if (scope.register_ranges.empty()) return nullptr;
    std::size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    // Prefixes may end in a digit themselves ("%f16_1"), so every split is tried.
    for (; digits < name.size(); ++digits) {
      const auto at = scope.register_ranges.find(name.substr(0, digits));
      if (at == scope.register_ranges.end()) continue;
      std::uint32_t number = 0;
      const auto [end, error] =
          std::from_chars(name.data() + digits, name.data() + name.size(), number);
      if (error == std::errc{} && number < at->second.range) return &at->second;
    }
    return nullptr;
  }

  Result<Operand> resolve(const Token& token) {
    Operand operand;
    if (token.kind != Token::Kind::word) return syntax_error(token, "an operand");
    if (token.text == "_") {
      operand.kind = Operand::Kind::discard;
      return operand;
    }
    for (std::size_t i = scopes_.size(); i-- > 0;) {
      Scope& scope = scopes_[i];
      if (const auto at = scope.names.find(token.text); at != scope.names.end()) {
        operand.index = at->second.index;
        operand.kind =
            at->second.kind == Scope::Name::Kind::reg ? Operand::Kind::reg : Operand::Kind::local;
        return operand;
      }
      if (const Declaration* declaration = declared_in(scope, token.text)) {
        operand.kind = Operand::Kind::reg;
        operand.index = add_register(token.text, declaration->type);
        scope.names[token.text] = {Scope::Name::Kind::reg, operand.index};
        return operand;
      }
    }
    operand.name = token.text;
    operand.kind = token.text[0] == '%' || token.text == "WARP_SZ" ? Operand::Kind::special
                                                                   : Operand::Kind::symbol;
    return operand;
  }

  Result<std::int64_t> read_offset() {
    std::int64_t total = 0;
    while (lexer_.peek().is('+') || lexer_.peek().is('-')) {
      bool minus = lexer_.next().is('-');
      if (lexer_.accept('-')) minus = !minus;
      const Token number = lexer_.next();
      if (number.kind != Token::Kind::integer) return syntax_error(number, "an offset");
      total += static_cast<std::int64_t>(minus ? 0 - number.bits : number.bits);
    }
    return total;
  }

  Result<Operand> read_list(char close, Operand::Kind kind, unsigned depth) {
    std::vector<Operand> items;
    while (!lexer_.accept(close)) {
      if (items.size() >= kMaxListItems) return syntax_error(lexer_.peek(), "a shorter list");
      REMORA_TRY(Operand item, read_operand(depth + 1));
      items.push_back(item);
      if (!lexer_.accept(',') && !lexer_.peek().is(close)) {
        return syntax_error(lexer_.peek(), fmt::format("',' or '{}'", close));
      }
    }
    Operand operand;
    operand.kind = kind;
    operand.index = static_cast<std::uint32_t>(body_.list_items.size());
    operand.count = static_cast<std::uint32_t>(items.size());
    body_.list_items.insert(body_.list_items.end(), items.begin(), items.end());
    return operand;
  }

  Result<Operand> read_address(unsigned depth) {
    REMORA_TRY(Operand base, read_operand(depth + 1));
    if (lexer_.accept(',')) {
      // [tensor or texture, {coordinates}] and the like.
      REMORA_TRY(Operand rest, read_list(']', Operand::Kind::tuple, depth));
      Operand tuple;
      tuple.kind = Operand::Kind::tuple;
      tuple.index = static_cast<std::uint32_t>(body_.list_items.size());
      tuple.count = rest.count + 1;
      body_.list_items.push_back(base);
      for (std::uint32_t i = 0; i < rest.count; ++i) {
        const Operand item = body_.list_items[rest.index + i];
        body_.list_items.push_back(item);
      }
      return tuple;
    }
    REMORA_TRY_DO(lexer_.expect(']'));
    Operand address = base;
    address.kind = Operand::Kind::address;
    switch (base.kind) {
      case Operand::Kind::integer:
        address.base_kind = Operand::Kind::none;
        break;
      case Operand::Kind::reg:
      case Operand::Kind::local:
      case Operand::Kind::symbol:
        address.base_kind = base.kind;
        break;
      default:
        return syntax_error(lexer_.peek(), "an address");
    }
    return address;
  }

  Result<Operand> read_operand(unsigned depth = 0) {
    if (depth > 4) return syntax_error(lexer_.peek(), "a simpler operand");
    Operand operand;
    if (lexer_.accept('{')) return read_list('}', Operand::Kind::list, depth);
    if (lexer_.accept('(')) return read_list(')', Operand::Kind::list, depth);
    if (lexer_.accept('[')) return read_address(depth);
    if (lexer_.accept('!')) {
      REMORA_TRY(operand, resolve(lexer_.next()));
      operand.negated = true;
      return operand;
    }
    bool minus = false;
    while (lexer_.accept('-')) minus = !minus;
    const bool inverted = !minus && lexer_.accept('~');
    const Token token = lexer_.next();
    switch (token.kind) {
      case Token::Kind::integer:
        operand.kind = Operand::Kind::integer;
        operand.bits = minus ? 0 - token.bits : inverted ? ~token.bits : token.bits;
        return operand;
      case Token::Kind::f32:
        operand.kind = Operand::Kind::f32;
        operand.bits = minus ? token.bits ^ 0x8000'0000 : token.bits;
        return operand;
      case Token::Kind::f64:
        operand.kind = Operand::Kind::f64;
        operand.bits = minus ? token.bits ^ (std::uint64_t{1} << 63) : token.bits;
        return operand;
      default:
        break;
    }
    if (minus || inverted) return syntax_error(token, "a number");
    if (token.is_word("generic") && lexer_.accept('(')) {
      REMORA_TRY(operand, read_operand(depth + 1));
      REMORA_TRY_DO(lexer_.expect(')'));
      return operand;
    }
    REMORA_TRY(operand, resolve(token));
    if (lexer_.accept('|')) {
      const Token second = lexer_.next();
      REMORA_TRY(Operand pair, resolve(second));
      if (pair.kind == Operand::Kind::reg) {
        operand.pair = pair.index;
      } else if (pair.kind != Operand::Kind::discard) {
        return syntax_error(second, "a register");
      }
      return operand;
    }
    REMORA_TRY(std::int64_t offset, read_offset());
    operand.bits = static_cast<std::uint64_t>(offset);
    return operand;
  }

  Result<void> read_operands(ParsedInstruction& instruction) {
    std::vector<Operand> operands;
    if (!lexer_.accept(';')) {
      do {
        if (operands.size() >= 16) return syntax_error(lexer_.peek(), "';'");
        REMORA_TRY(Operand operand, read_operand());
        operands.push_back(operand);
      } while (lexer_.accept(','));
      REMORA_TRY_DO(lexer_.expect(';'));
    }
    instruction.first_operand = static_cast<std::uint32_t>(body_.operands.size());
    instruction.operand_count = static_cast<std::uint32_t>(operands.size());
    body_.operands.insert(body_.operands.end(), operands.begin(), operands.end());
    return {};
  }

  Result<void> resolve_labels() {
    for (Operand& operand : body_.operands) {
      if (operand.kind != Operand::Kind::symbol) continue;
      const auto at = labels_.find(operand.name);
      if (at == labels_.end()) continue;
      operand.kind = Operand::Kind::label;
      operand.index = at->second;
    }
    return {};
  }

  const IndexedFunction& function_;
  Lexer lexer_;
  ParsedBody body_;
  std::vector<Scope> scopes_;
  std::unordered_map<std::string_view, std::uint32_t> labels_;
  std::uint32_t source_file_ = 0;
  std::uint32_t source_line_ = 0;
};

}  // namespace

Result<ParsedBody> parse_body(const IndexedFunction& function) {
  return BodyParser(function).run();
}

}  // namespace remora::softgpu
