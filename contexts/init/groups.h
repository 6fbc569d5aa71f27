#pragma once

#include <memory>
#include <vector>

namespace contexts::init {

/// Process groups for programs that do not lead theirs. A shell's or an agent's child shares its
/// parent's group, so setsid(2) works for it and getpgrp() is not its pid; but it must be possible
/// to signal each routed program with its descendants. So each gets a group of its own, made by a
/// process that only lends its pid: it leads the group until the program has joined, then waits
/// elsewhere (a group lives as long as it has members, setpgid(2)).
class ProcessGroups {
 public:
  ProcessGroups() = default;
  ~ProcessGroups();
  ProcessGroups(const ProcessGroups&) = delete;
  ProcessGroups& operator=(const ProcessGroups&) = delete;

  /// A group of this session for the next child to join by setpgid(2); 0 if no process can be had.
  int take();
  /// The program has joined: from now on the group's members are its own.
  static void settle(int group);
  /// The program has ended. What it left in the group keeps it; else the next one gets it.
  void give_back(int group);
  /// A child has ended: perhaps one of ours, killed by a program with uid 0.
  void forget(int pid);

 private:
  static constexpr std::size_t kKept = 64;
  struct Stack {
    char bytes[4096];
  };

  struct Lender {
    int pid = 0;
    bool is_free = false;
    std::unique_ptr<Stack> stack;
  };

  Lender* find(int pid);
  void dismiss(int pid);
  std::vector<Lender> lenders_;
};

}  // namespace contexts::init
