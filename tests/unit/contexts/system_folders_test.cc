#include "contexts/system_folders.h"

#include <catch2/catch.hpp>

TEST_CASE("what a context changes in a system folder is at one place of its upper folder",
          "[contexts]") {
  const auto place = [](const char* path) {
    const auto found = contexts::upper_path("/up", path).value();
    return found.layer + " " + found.below;
  };
  CHECK(place("/usr") == "/up/root/upper usr");
  CHECK(place("/usr/local/bin") == "/up/root/upper usr/local/bin");
  CHECK(place("/var/lib/dpkg") == "/up/root/upper var/lib/dpkg");
}

TEST_CASE("what lies in no system folder has no upper layer", "[contexts]") {
  for (const auto* folder : {"/", "/var", "/var/tmp", "/usrx", "/home/me/usr", "/workspace"}) {
    CAPTURE(folder);
    CHECK_FALSE(contexts::upper_path("/up", folder));
  }
}

TEST_CASE("each file system has layers of its own", "[contexts]") {
  CHECK(contexts::layers_of("/") == "root");
  CHECK(contexts::layers_of("/var") == "root-var");
  CHECK(contexts::layers_of("/mnt/data") == "root-mnt-data");
}

TEST_CASE("a path is within a folder at whole names only", "[contexts]") {
  CHECK(contexts::is_within("/usr", "/usr"));
  CHECK(contexts::is_within("/usr/bin", "/usr"));
  CHECK_FALSE(contexts::is_within("/usrx", "/usr"));
  CHECK_FALSE(contexts::is_within("/us", "/usr"));
}
