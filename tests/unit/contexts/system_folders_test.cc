#include "contexts/system_folders.h"

#include <catch2/catch.hpp>

TEST_CASE("what a context changes in a system folder is at one place of its upper folder",
          "[contexts]") {
  CHECK(contexts::upper_of("/up", "/usr") == "/up/usr/upper");
  CHECK(contexts::upper_of("/up", "/usr/local/bin") == "/up/usr/upper/local/bin");
  CHECK(contexts::upper_of("/up", "/var/lib/dpkg") == "/up/var-lib/upper/dpkg");
}

TEST_CASE("what lies in no system folder has no upper layer", "[contexts]") {
  for (const auto* folder : {"/", "/var", "/var/tmp", "/usrx", "/home/me/usr", "/workspace"}) {
    CAPTURE(folder);
    CHECK(contexts::upper_of("/up", folder).empty());
  }
}

TEST_CASE("a path is within a folder at whole names only", "[contexts]") {
  CHECK(contexts::is_within("/usr", "/usr"));
  CHECK(contexts::is_within("/usr/bin", "/usr"));
  CHECK_FALSE(contexts::is_within("/usrx", "/usr"));
  CHECK_FALSE(contexts::is_within("/us", "/usr"));
}
