#include "routerd/config_yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

namespace routerd {
namespace {

constexpr std::size_t kMaxDepth = 32;
constexpr std::size_t kMaxNodes = 100'000;            // aliases expanded
constexpr std::size_t kMaxText = 4 * kMaxConfigSize;  // bytes of all scalars, aliases expanded

[[noreturn]] void refuse(const YAML::Mark& mark, const std::string& message) {
  throw YAML::ParserException(mark, message);  // caught in parse_yaml, as yaml-cpp's own
}

// What a tree costs, to be paid for again by each alias.
struct Cost {
  std::size_t nodes = 0;
  std::size_t text = 0;
};

Cost cost_of(const YamlNode& node) {
  Cost cost{1, node.text.size()};
  for (const YamlNode& item : node.items) {
    const Cost inner = cost_of(item);
    cost.nodes += inner.nodes;
    cost.text += inner.text;
  }
  return cost;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) refuse(mark, "expected one YAML document, found a second one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    charge(mark, {1, 0});
    add(mark, make_node(YamlNode::Kind::null, mark), anchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    charge(mark, {1, value.size()});
    YamlNode node = make_node(YamlNode::Kind::scalar, mark);
    node.text = value;
    add(mark, std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) refuse(mark, "found an alias inside what it stands for");
    charge(mark, cost_of(found->second));
    add(mark, found->second, 0);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, tag, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override { close(); }

  YamlNode take_root() { return std::move(root_); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    YAML::Mark mark;
  };

  static YamlNode make_node(YamlNode::Kind kind, const YAML::Mark& mark) {
    return {kind, mark.line + 1, mark.column + 1, {}, {}};
  }

  // yaml-cpp gives "?" for a plain scalar or collection and "!" for a quoted one.
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "YAML tags are not supported");
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    refuse_tag(mark, tag);
    charge(mark, {1, 0});
    if (open_.size() >= kMaxDepth) {
      refuse(mark, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    open_.push_back({make_node(kind, mark), anchor, mark});
  }

  void close() {
    Open last = std::move(open_.back());
    open_.pop_back();
    add(last.mark, std::move(last.node), last.anchor);
  }

  // A complete node, already charged for: into its parent, and into the anchors if it has one.
  void add(const YAML::Mark& mark, YamlNode node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      charge(mark, cost_of(node));
      anchors_[anchor] = node;
    }
    (open_.empty() ? root_ : open_.back().node.items.emplace_back()) = std::move(node);
  }

  void charge(const YAML::Mark& mark, Cost cost) {
    spent_.nodes += cost.nodes;
    spent_.text += cost.text;
    if (spent_.nodes > kMaxNodes || spent_.text > kMaxText) {
      refuse(mark, "the file is too large once its aliases are expanded");
    }
  }

  int documents_ = 0;
  Cost spent_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  YamlNode root_;
};

bool is_allowed(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 || c == '\t' || c == '\n' || c == '\r';
}

// yaml-cpp takes the bytes 0 and 4 for the end of the file, and would ignore what follows.
std::optional<ConfigError> find_control_character(std::string_view text,
                                                  const std::string& file_name) {
  const auto found = std::ranges::find_if_not(text, is_allowed);
  if (found == text.end()) return std::nullopt;
  const std::string_view before = text.substr(0, static_cast<std::size_t>(found - text.begin()));
  const auto line = std::ranges::count(before, '\n') + 1;
  const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  return ConfigError{file_name, static_cast<int>(line), static_cast<int>(column),
                     "expected text, found control character " +
                         std::to_string(static_cast<unsigned char>(*found))};
}

ConfigError syntax_error(const YAML::ParserException& error, const std::string& file_name) {
  if (error.mark.is_null()) return {file_name, 0, 0, "invalid YAML: " + error.msg};
  return {file_name, error.mark.line + 1, error.mark.column + 1, "invalid YAML: " + error.msg};
}

}  // namespace

std::string_view describe(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::null:
      return "nothing";
    case YamlNode::Kind::scalar:
      return "a string";
    case YamlNode::Kind::list:
      return "a list";
    case YamlNode::Kind::map:
      return "a map";
  }
  return "something else";
}

tl::expected<YamlNode, ConfigError> parse_yaml(std::string_view text,
                                               const std::string& file_name) {
  if (auto error = find_control_character(text, file_name)) return tl::unexpected(*error);
  TreeBuilder builder;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::ParserException& error) {
    return tl::unexpected(syntax_error(error, file_name));
  }
  return builder.take_root();
}

}  // namespace routerd
