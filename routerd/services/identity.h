#pragma once

#include <string>

#include "base/result.h"
#include "routerd/services/spec.h"
#include "wire/message.h"

namespace routerd::services {

/// As whom a service runs.
struct Identity {
  wire::Credentials credentials;
  std::string user;   ///< its name, or the service's where the uid has none
  std::string home;   ///< of passwd(5); else the service's working folder
  std::string shell;  ///< for SHELL
};

/// The uid of a service without `user:`: one of 61184–65519, the range for such users
/// (systemd.exec(5), DynamicUser), made from its name so that its files stay its own, and not one
/// of passwd(5).
unsigned own_uid(const std::string& service);

/// ENOENT: no such user. EPERM: a user other than this daemon's, whose ids it may not take.
base::Result<Identity> identify(const ServiceSpec& spec);

}  // namespace routerd::services
