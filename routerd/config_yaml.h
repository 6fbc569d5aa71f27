#pragma once

// YAML text as a tree with positions: the only file that knows yaml-cpp, and where hostile input
// (alias bombs, deep nesting, control characters) stops.

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "routerd/config.h"

namespace routerd {

struct YamlNode {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  int line = 0;                      // from 1
  int column = 0;                    // from 1, bytes
  std::string text = {};             // of a scalar
  std::vector<YamlNode> items = {};  // of a list; of a map, keys and values in turn
};

/// "a string", "a list", "a map" or "nothing".
std::string_view describe(YamlNode::Kind kind);

/// The only document in `text`, a null node if it is empty. Aliases are expanded: a copy keeps the
/// position of the original. Refuses more than 100000 nodes after that, nesting deeper than 32,
/// control characters, tags and further documents.
tl::expected<YamlNode, ConfigError> parse_yaml(std::string_view text, const std::string& file_name);

}  // namespace routerd
