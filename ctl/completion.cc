// airlock completion: scripts that know the commands and options of this very program, and ask the
// daemon for the names of contexts.

#include <iostream>

#include "ctl/commands.h"

namespace ctl {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

/// A function `_airlock_words` that prints what may follow the command given as its argument.
void print_words_function(const std::vector<CompletionRow>& rows) {
  std::cout << "_airlock_words() {\n  case $1 in\n";
  for (const auto& row : rows) {
    std::cout << "    '" << row.command << "') printf '%s\\n' " << joined(row.commands) << " "
              << joined(row.options) << "\n";
    if (row.takes_context) {
      std::cout << "      airlock ctx ls 2>/dev/null | awk 'NR > 1 { print $1 }'\n";
    }
    std::cout << "      ;;\n";
  }
  std::cout << "  esac\n}\n";
}

/// A function that prints the command that the words given as its arguments begin with.
void print_command_function(const std::vector<CompletionRow>& rows) {
  std::cout << "_airlock_command() {\n"
               "  local found= word\n"
               "  for word in \"$@\"; do\n"
               "    case \"${found:+$found }$word\" in\n      ";
  bool is_first = true;
  for (const auto& row : rows) {
    if (row.command.empty()) continue;
    std::cout << (is_first ? "" : "|") << "'" << row.command << "'";
    is_first = false;
  }
  std::cout << ") found=${found:+$found }$word ;;\n"
               "    esac\n"
               "  done\n"
               "  printf '%s\\n' \"$found\"\n"
               "}\n";
}

void print_bash(const std::vector<CompletionRow>& rows) {
  print_words_function(rows);
  print_command_function(rows);
  std::cout << "_airlock() {\n"
               "  local command\n"
               "  command=$(_airlock_command \"${COMP_WORDS[@]:1:COMP_CWORD-1}\")\n"
               "  mapfile -t COMPREPLY < <(compgen -W \"$(_airlock_words \"$command\")\" -- "
               "\"${COMP_WORDS[COMP_CWORD]}\")\n"
               "}\n"
               "complete -o default -F _airlock airlock\n";
}

void print_zsh(const std::vector<CompletionRow>& rows) {
  std::cout << "#compdef airlock\n";
  print_words_function(rows);
  print_command_function(rows);
  std::cout << "_airlock() {\n"
               "  local command\n"
               "  command=$(_airlock_command \"${(@)words[2,CURRENT-1]}\")\n"
               "  compadd -- ${(f)\"$(_airlock_words \"$command\")\"} || _files\n"
               "}\n"
               "compdef _airlock airlock\n";
}

void print_fish(const std::vector<CompletionRow>& rows) {
  std::cout << "function __airlock_command\n"
               "  set -l found ''\n"
               "  for word in (commandline -opc)[2..-1]\n"
               "    set -l longer (string trim -- \"$found $word\")\n"
               "    if contains -- $longer";
  for (const auto& row : rows) {
    if (!row.command.empty()) std::cout << " '" << row.command << "'";
  }
  std::cout << "\n      set found $longer\n    end\n  end\n  test \"$found\" = \"$argv[1]\"\nend\n";
  for (const auto& row : rows) {
    const std::string condition =
        "complete -c airlock -n \"__airlock_command '" + row.command + "'\"";
    for (const auto& word : row.commands) std::cout << condition << " -f -a " << word << "\n";
    for (const auto& option : row.options) {
      const bool is_long = option.starts_with("--");
      std::cout << condition << (is_long ? " -l " : " -s ") << option.substr(is_long ? 2 : 1)
                << "\n";
    }
    if (!row.takes_context) continue;
    std::cout << condition
              << " -f -a \"(airlock ctx ls 2>/dev/null | awk 'NR > 1 { print \\$1 }')\"\n";
  }
}

}  // namespace

int completion(const std::string& shell, const std::vector<CompletionRow>& rows) {
  if (shell == "bash") print_bash(rows);
  if (shell == "zsh") print_zsh(rows);
  if (shell == "fish") print_fish(rows);
  return 0;
}

}  // namespace ctl
